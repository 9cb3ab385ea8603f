"""Small requests against one long run, and several units on channels of their own or shared.

Requests are EmbeddingBags of 64 lookups of 256 bytes in 8 bags. Queued, each is started while those
before it run; else each is awaited before the next. The long run has as many lookups as all of them
in one request.

Units of a cluster run the same program, each on indices of its own, in one table. On channels of
their own they are compared with one of them alone. Shared, rows and index lines are spread over all
channels by address, 256 bytes each in turn; with indices of a Zipf law the busiest channel is a
limit of its own. There every cycle of a unit counts once: as a beat, or as lost for a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ember_hw.bench.cluster import Cluster, ClusterDelivery
from ember_hw.bench.presets import cluster_unit, unit
from ember_hw.bench.programs import TASKS
from ember_hw.bench.programs.task import Task
from ember_hw.bench.registry import Job
from ember_hw.bench.result import Row
from ember_hw.bench.simulated import Simulator
from ember_hw.sim.options import IdealMemory

#: Requests of the queue over the long run, and units over one of them.
REQUESTS_BAR, UNITS_BAR = 0.9, 7.8
LATENCY_CYCLES = 100
REQUEST_LOOKUPS, REQUEST_BAGS = 64, 8
REQUESTS = 64
ROW_BYTES = 256
UNITS = 8
UNIT_BITS = 128
UNIT_LOOKUPS, UNIT_BAGS = 2000, 250
ZIPF_EXPONENT = 1.05
TABLE_ROWS = 1 << 14


def run(job: Job) -> Iterator[Row]:
    """Measure every part."""
    for part in PARTS:
        yield from part(job)


def requests(job: Job) -> Iterator[Row]:
    """Measure requests, queued and one after the other, beside the long run."""
    shape = f"requests of {REQUEST_LOOKUPS} lookups of {ROW_BYTES} B"
    names = (f"{shape}, queued", f"{shape}, each awaited")
    if not any(map(job.wants, names)):
        return
    job.watcher(f"scale: {shape}")
    config = unit(512, 128)
    memory = IdealMemory(latency_cycles=LATENCY_CYCLES)
    lookups = REQUESTS * REQUEST_LOOKUPS
    with Simulator(
        config, memory=memory, optimise=not job.quick, progress=job.watcher.detail
    ) as simulator:
        long_cycles = simulator.run(_task(job.seed, 1, REQUESTS)).cycles
        queued = simulator.run(_task(job.seed, REQUESTS, 1)).cycles
        alone = 0
        if job.wants(names[1]):
            seeds = range(job.seed, job.seed + REQUESTS)
            alone = sum(simulator.run(_task(seed, 1, 1)).cycles for seed in seeds)
    for name, cycles, bar in zip(names, (queued, alone), (REQUESTS_BAR, None), strict=True):
        if not job.wants(name):
            continue
        yield Row(
            workload=name,
            metric="lookups a cycle",
            value=lookups / cycles,
            unit="1/cycle",
            params={
                "requests": REQUESTS,
                "row_bytes": ROW_BYTES,
                "bags": REQUEST_BAGS,
                "latency_cycles": LATENCY_CYCLES,
                "bus_bytes": config.bus_bytes,
                "request_entries": config.request_entries,
                "memory": simulator.memory,
                "sink": simulator.sink,
                "cycles": cycles,
                "long_run_cycles": long_cycles,
            },
            reference_name=f"one request of {lookups:,} lookups",
            reference=lookups / long_cycles,
            bar=bar,
        )


def _task(seed: int, requests: int, size: int) -> Task:
    """Return requests, each as long as `size` small ones."""
    return TASKS["embedding_bag_requests"](
        seed,
        row_bytes=ROW_BYTES,
        requests=requests,
        bags=size * REQUEST_BAGS,
        lookups=size * REQUEST_LOOKUPS,
    )


def private_channels(job: Job) -> Iterator[Row]:
    """Measure units that have a channel each beside one that runs alone."""
    name = f"{UNITS} units, {UNITS} channels, one each"
    # The models of both clusters are compiled for minutes.
    if job.quick or not job.wants(name):
        return
    job.watcher(f"scale: {name}")
    task = _units_task(job.seed, 0.0)
    with _cluster(job, 1, "private") as cluster:
        all_units = _run(cluster, task, UNITS, name)
        one = _run(cluster, task, 1, name)
        yield Row(
            workload=name,
            metric="row beats a cycle",
            value=all_units.beats_per_cycle,
            unit="1/cycle",
            params=_params(cluster, task, all_units, 0.0),
            reference_name="one unit",
            reference=one.beats_per_cycle,
            bar=UNITS_BAR,
        )


def shared_channels(job: Job) -> Iterator[Row]:
    """Measure units that share all channels, and where their cycles go."""
    for exponent in (0.0, ZIPF_EXPONENT):
        indices = f"Zipf {exponent}" if exponent else "uniform"
        name = f"{UNITS} units, {UNITS} channels, shared, {indices}"
        if job.quick or not job.wants(name):
            continue
        job.watcher(f"scale: {name}")
        task = _units_task(job.seed, exponent)
        with _cluster(job, UNITS, "shared") as cluster:
            came = _run(cluster, task, UNITS, name)
            params = _params(cluster, task, came, exponent)
        yield Row(
            workload=name,
            metric="row beats a cycle",
            value=came.beats_per_cycle,
            unit="1/cycle",
            params=params,
            reference_name="a beat a cycle of the busiest channel",
            reference=params["row_beats"] / max(params["channel_beats"]),
        )
        for reason, share in came.shares().items():
            yield Row(
                workload=name,
                metric=f"cycles: {reason}",
                value=share,
                unit="1",
                params={"units": UNITS},
            )


def _units_task(seed: int, zipf_exponent: float) -> Task:
    """Return a request for each unit."""
    return TASKS["embedding_bag_requests"](
        seed,
        row_bytes=ROW_BYTES,
        requests=UNITS,
        bags=UNIT_BAGS,
        lookups=UNIT_LOOKUPS,
        zipf_exponent=zipf_exponent,
        rows=TABLE_ROWS,
    )


def _cluster(job: Job, memory_ports: int, sharing: str) -> Cluster:
    return Cluster(
        cluster_unit(UNIT_BITS, memory_ports),
        units=UNITS,
        channels=UNITS,
        sharing=sharing,
        memory=IdealMemory(latency_cycles=LATENCY_CYCLES),
        progress=job.watcher.detail,
    )


def _run(cluster: Cluster, task: Task, units: int, name: str) -> ClusterDelivery:
    """Run the first requests of a task, one on each unit."""
    launches = task.launches(cluster.config)
    rows = task.rows.reshape(UNITS, -1)
    return cluster.run([[launch] for launch in launches[:units]], list(rows), name)


def _params(
    cluster: Cluster, task: Task, came: ClusterDelivery, zipf_exponent: float
) -> dict[str, Any]:
    return {
        **task.params,
        "units": UNITS,
        "bus_bytes": cluster.config.bus_bytes,
        "latency_cycles": LATENCY_CYCLES,
        "outstanding": cluster.config.outstanding_reads,
        "memory": cluster.memory,
        "sink": "ideal",
        "zipf_exponent": zipf_exponent,
        "table_rows": TABLE_ROWS,
        "cycles": came.cycles,
        "row_beats": sum(unit.facts["row_beats"] for unit in came.units),
        "channel_beats": came.channel_beats.tolist(),
    }


#: What the suite measures, in order.
PARTS: tuple[Callable[[Job], Iterator[Row]], ...] = (
    requests,
    private_channels,
    shared_channels,
)
