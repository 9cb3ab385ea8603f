"""Cycles of one lookup alone, and cycles a row of soft cores with and without the unit.

A lookup alone is three reads that depend on each other: its bag's offsets, its index, its row; its
cycles are those from the start of its program to its end. What the soft cores do stands in
`ember_hw.bench.softcore`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ember_hw.bench.bags import Bags
from ember_hw.bench.presets import unit
from ember_hw.bench.registry import Job
from ember_hw.bench.result import Row
from ember_hw.bench.simulated import Simulator
from ember_hw.bench.softcore import softcore_rows
from ember_hw.sim.options import IdealMemory

LATENCIES = (30, 100, 200)
ROW_BYTES = 256
DEPENDENT_READS = 3
#: Cycles beyond those of the memory: the most allowed.
MOST_CYCLES = 76


def run(job: Job) -> Iterator[Row]:
    """Measure every part."""
    for part in PARTS:
        yield from part(job)


def one_lookup(job: Job) -> Iterator[Row]:
    """Measure one bag of one lookup at several latencies of the memory."""
    for latency in LATENCIES:
        name = f"one lookup of {ROW_BYTES} B, memory {latency} cycles"
        if not job.wants(name):
            continue
        job.watcher(f"latency: {name}")
        config = unit(512, 128)
        memory = IdealMemory(latency_cycles=latency)
        with Simulator(
            config, memory=memory, optimise=not job.quick, progress=job.watcher.detail
        ) as simulator:
            workload = Bags(row_bytes=ROW_BYTES, bag=1, lookups=1).workload(job.seed)
            delivery = simulator.run(workload)
        yield Row(
            workload=name,
            metric="cycles from start to end",
            value=delivery.cycles,
            unit="cycles",
            params={
                **workload.params,
                "latency_cycles": latency,
                "bus_bytes": config.bus_bytes,
                "memory": simulator.memory,
                "beyond_memory_cycles": delivery.cycles - DEPENDENT_READS * latency,
            },
            reference_name=f"{DEPENDENT_READS} x memory + {MOST_CYCLES}",
            reference=DEPENDENT_READS * latency + MOST_CYCLES,
            is_smaller_better=True,
            bar=1.0,
        )


#: What the suite measures, in order.
PARTS: tuple[Callable[[Job], Iterator[Row]], ...] = (one_lookup, softcore_rows)
