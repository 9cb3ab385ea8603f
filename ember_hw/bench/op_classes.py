"""Workloads of the other op classes: SpMM, knowledge graphs, message passing, attention, tables.

`WORKLOADS` is where they are added. The limit of each follows from what it must move: the bytes of
its rows over all row beats x bus bytes plus the bytes of its index elements, each moved once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ember_hw.bench.presets import unit
from ember_hw.bench.registry import Job
from ember_hw.bench.result import Row
from ember_hw.bench.simulated import Delivery, Simulator
from ember_hw.bench.workload import Workload
from ember_hw.sim.options import IdealMemory

#: What makes each workload from a seed, by its name, with the traversal units it takes.
WORKLOADS: dict[str, tuple[int, Callable[[int], Workload]]] = {}

_LATENCY_CYCLES = 100


def run(job: Job, bar: float) -> Iterator[Row]:
    """Measure the workloads that the job wants, on a 512-bit unit; none of them is quick."""
    for name, (traversal_units, make) in WORKLOADS.items():
        title = f"512-bit/latency {_LATENCY_CYCLES}/{name}"
        if job.quick or not job.wants(title):
            continue
        job.watcher(f"gather: {title}")
        config = unit(512, 128, traversal_units)
        memory = IdealMemory(latency_cycles=_LATENCY_CYCLES)
        with Simulator(config, memory=memory, progress=job.watcher.detail) as simulator:
            workload = make(job.seed)
            delivery = simulator.run(workload)
            yield Row(
                workload=title,
                metric="utilisation",
                value=delivery.utilisation,
                unit="1",
                params={
                    **workload.params,
                    "bus_bytes": config.bus_bytes,
                    "latency_cycles": _LATENCY_CYCLES,
                    "outstanding": config.outstanding_reads,
                    "memory": simulator.memory,
                    "sink": simulator.sink,
                    "cycles": delivery.cycles,
                },
                reference_name="port",
                reference=port_limit_of(workload, delivery),
                bar=bar,
            )


def port_limit_of(workload: Workload, delivery: Delivery) -> float:
    """Return useful bytes of rows over all that the port must move for a workload."""
    useful = int(delivery.useful_bytes.sum(dtype="int64"))
    moved = len(delivery.useful_bytes) * delivery.bus_bytes + workload.index_bytes
    return useful / moved
