"""The host link: requests over a channel with faults, and a link that is pulled.

The gateware runs in Verilator, byte by byte with random stalls; the host is the driver of every
board. Each answer is compared with what it must be: a register that adds what is written shows a
request that was executed twice or never, and rows that count show bytes lost or doubled.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

from ember_hw.bench.registry import Job
from ember_hw.bench.result import Row
from ember_hw.boards.host.client import LinkClient
from ember_hw.boards.simulated.channel import FaultyChannel, SimulatedChannel
from ember_hw.boards.simulated.exercise import PROBE, ProbeExerciser
from ember_hw.boards.simulated.model import BoardModel
from ember_hw.errors import LinkError

FRAMES = 10_000
QUICK_FRAMES = 1_000
PULLS = 50
QUICK_PULLS = 5
#: Share of bytes, or of frames, that are hit.
CHANCE = 0.01
#: Name: share that is hit, whether of frames, most bytes of data in a frame.
WORKLOADS = {
    "no faults": (0.0, True, 512),
    "1 % of bytes": (CHANCE, False, 48),
    "1 % of frames": (CHANCE, True, 512),
}
PULLED = "pulled mid-run"
#: The slowest answer, a check of 512 bytes with four frames on the way, takes a tenth of it.
TIMEOUT_SECONDS = 4e-4
#: A channel on which half of all frames are bad may well be silent for ten of them.
PATIENCE_SECONDS = 0.1


def run(job: Job) -> Iterator[Row]:
    """Run each workload to its end; a wrong answer ends the suite."""
    wanted = [name for name in (*WORKLOADS, PULLED) if job.wants(name)]
    if wanted:
        yield from _on_the_probe(job, wanted)


def _on_the_probe(job: Job, wanted: list[str]) -> Iterator[Row]:
    job.watcher("link: opening the simulated link")
    with BoardModel(PROBE, top="probe", seed=job.seed + 1, progress=job.watcher.detail) as model:
        model.stall(0.2, 0.2)
        for name in wanted:
            job.watcher(f"link: {name}")
            yield from _pulled(model, job) if name == PULLED else _faulty(model, name, job)


def _client(channel: FaultyChannel, seed: int) -> LinkClient:
    return LinkClient(
        channel, timeout_seconds=TIMEOUT_SECONDS, patience_seconds=PATIENCE_SECONDS, seed=seed
    )


def _faulty(model: BoardModel, name: str, job: Job) -> Iterator[Row]:
    chance, by_frame, most_bytes = WORKLOADS[name]
    frames = QUICK_FRAMES if job.quick else FRAMES
    channel = FaultyChannel(
        SimulatedChannel(model), chance=chance, seed=job.seed, by_frame=by_frame
    )
    client = _client(channel, job.seed)
    exerciser = ProbeExerciser(client, seed=job.seed, most_bytes=most_bytes)
    began, began_cycles, before = time.perf_counter(), model.cycles, client.counts.repeats
    began_bytes = client.counts.sent_bytes + client.counts.received_bytes
    for done in range(0, frames, 100):
        exerciser.run(100)
        job.watcher.reached(done + 100, frames, model.cycles - began_cycles)
    counts = client.counts
    link_bytes = counts.sent_bytes + counts.received_bytes - began_bytes
    params = {
        "faults": channel.faults,
        "most_data_bytes": most_bytes,
        "repeats": counts.repeats - before,
        "timeouts": counts.timeouts,
        "gaps": counts.gaps,
        "cycles": model.cycles - began_cycles,
        "seconds": time.perf_counter() - began,
    }
    yield Row(
        workload=name,
        metric="requests executed once and answered right",
        value=frames,
        unit="1",
        params=params,
        reference_name="requests made",
        reference=frames,
        bar=1.0,
    )
    yield Row(
        workload=name,
        metric="data bytes a byte on the link",
        value=exerciser.data_bytes / link_bytes,
        unit="1",
        params=params,
    )


def _pulled(model: BoardModel, job: Job) -> Iterator[Row]:
    """Pull the link after a random number of requests, and use it again."""
    pulls = QUICK_PULLS if job.quick else PULLS
    rng = random.Random(job.seed)
    right = 0
    for number in range(pulls):
        channel = FaultyChannel(SimulatedChannel(model), chance=0.0, seed=number)
        exerciser = ProbeExerciser(_client(channel, number), seed=number, most_bytes=512)
        channel.calls_left = rng.randrange(200)
        try:
            exerciser.run(100)
        except LinkError as error:
            is_told = str(error) == f"port {channel.name} must stay connected, and was pulled"
            fresh = _client(FaultyChannel(SimulatedChannel(model), chance=0.0, seed=0), number + 1)
            ProbeExerciser(fresh, seed=number, most_bytes=512).run(20)
            right += is_told
        job.watcher.reached(number + 1, pulls, None)
    yield Row(
        workload=PULLED,
        metric="pulls told as such, after which the next session was right",
        value=right,
        unit="1",
        reference_name="pulls",
        reference=pulls,
        bar=1.0,
    )
