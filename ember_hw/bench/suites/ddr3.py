"""The ECPIX-5's DDR3 path: right answers under stalls, random rows against the peak.

LiteDRAM's controller, generated for the board's chip, clock and PHY, runs in Verilator with the
memory in front that splits requests by bank. Behind it, instead of the PHY, is a model of the chip
that has the PHY's latencies, keeps data and checks every limit between commands. *accesses*: beats
that the unit read anywhere in the chip, with the host's writes between them, that came back right
before anything was wrong. *rows*: reads of aligned rows at random, beats over what the data pins
could have carried, refreshes included.
"""

from __future__ import annotations

from collections.abc import Iterator

from ember_hw.bench.registry import Job
from ember_hw.bench.result import Row
from ember_hw.boards.ddr3.chip import BEAT_BYTES, CHIPS
from ember_hw.boards.ddr3.exercise import CYCLES_A_BEAT, Outcome, Plan, exercise
from ember_hw.boards.targets.ecpix5 import CLOCK_MHZ, PORTS
from ember_hw.errors import DeviceError

REQUESTS, QUICK_REQUESTS = 200_000, 20_000
#: Beats of the longest request, and the chip's first beats that they fall into: hosts and units
#: meet there.
MOST_BEATS, REGION_BEATS = 16, 1 << 14
REQUEST_STALL, RESPONSE_STALL, HOST_ACCESSES = 0.2, 0.2, 0.01
ROW_BYTES = (16, 64, 128, 256, 512, 1024)
#: Bytes of rows that are read at each size.
_READ_BYTES, _QUICK_READ_BYTES = 8 << 20, 1 << 20
#: Least share of the peak that random rows must reach, by their bytes.
BARS = {64: 0.85, 256: 0.90}
_CHIP = CHIPS["ecpix5"]
_SYNC_MHZ = CLOCK_MHZ["sync"]


def run(job: Job) -> Iterator[Row]:
    """Measure both parts.

    Raises
    ------
    DeviceError
        Rows came back wrong, or against a limit of the chip: their speed says nothing.
    ToolError
        LiteDRAM isn't there.
    """
    yield from _accesses(job)
    yield from _rows(job)


def _accesses(job: Job) -> Iterator[Row]:
    count = QUICK_REQUESTS if job.quick else REQUESTS
    name = f"{count:,} random reads, writes between them"
    if not job.wants(name):
        return
    job.watcher(f"ddr3: {name}")
    plan = Plan(
        requests=count,
        most_beats=MOST_BEATS,
        request_stall=REQUEST_STALL,
        response_stall=RESPONSE_STALL,
        host_accesses=HOST_ACCESSES,
        region_beats=REGION_BEATS,
        seed=job.seed,
    )
    outcome = exercise(_CHIP, _SYNC_MHZ, PORTS, plan)
    yield Row(
        workload=name,
        metric="reads, all of them legal and right",
        value=count if outcome.is_right else 0,
        unit="1",
        params={
            **_params(outcome, job.seed),
            "host_accesses": outcome.host_accesses,
            "first_fault": outcome.first,
        },
        reference_name="reads asked for",
        reference=count,
        bar=1.0,
    )


def _rows(job: Job) -> Iterator[Row]:
    for row_bytes in ROW_BYTES:
        name = f"random rows of {row_bytes} B"
        if not job.wants(name):
            continue
        job.watcher(f"ddr3: {name}")
        beats = row_bytes // BEAT_BYTES
        count = (_QUICK_READ_BYTES if job.quick else _READ_BYTES) // row_bytes
        plan = Plan(requests=count, most_beats=beats, aligned=True, seed=job.seed)
        outcome = exercise(_CHIP, _SYNC_MHZ, PORTS, plan)
        if not outcome.is_right:
            raise DeviceError(f"{name} must come right from the DDR3, and don't: {outcome.first}")
        peak = BEAT_BYTES / CYCLES_A_BEAT
        yield Row(
            workload=name,
            metric="share of peak",
            value=outcome.share_of_peak,
            unit="1",
            params={**_params(outcome, job.seed), "row_bytes": row_bytes},
            reference_name=f"{peak:g} bytes a cycle, {peak * _SYNC_MHZ:g} MB/s",
            reference=1.0,
            bar=BARS.get(row_bytes),
        )


def _params(outcome: Outcome, seed: int) -> dict[str, object]:
    return {
        "chip": _CHIP.name,
        "clock_mhz": _SYNC_MHZ,
        "ports": PORTS,
        "cycles": outcome.cycles,
        "commands": {name: count for name, count in outcome.commands.items() if count},
        "seed": seed,
    }
