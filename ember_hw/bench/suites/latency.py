"""Cycles of one lookup alone, a small query's time, and cycles a row of soft cores with the unit.

A lookup alone is three reads that depend on each other: its bag's offsets, its index, its row; its
cycles are those from the start of its program to its end. Where the input queue brings offsets and
index, only the row is read. What the soft cores do stands in `ember_hw.bench.softcore`.

The query has 4 lookups of 256 bytes in each of 8 tables. Each table lies in an HBM pseudo-channel
of its own, modelled, with a unit of its own. They share nothing, so they are simulated one after
the other, and the slowest counts, from its start to its end. It stands beside what was published of
a card. Ref: MicroRec, MLSys 2021, lookups of 8 tables, 4 each, D = 64.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator

from ember_hw.bench.bags import Bags
from ember_hw.bench.presets import unit
from ember_hw.bench.programs import TASKS
from ember_hw.bench.registry import Job
from ember_hw.bench.result import Row
from ember_hw.bench.simulated import Runnable, Simulator
from ember_hw.bench.softcore import softcore_rows
from ember_hw.config import AcceleratorConfig
from ember_hw.sim.options import IdealMemory

LATENCIES = (30, 100, 200)
#: One beat of 512 bits.
ROW_BYTES = 64
DEPENDENT_READS = 3
#: Cycles beyond those of the memory: the most allowed, with indices from memory and from the queue.
MOST_CYCLES, MOST_QUEUE_CYCLES = 76, 60

TABLES, TABLE_LOOKUPS, TABLE_ROW_BYTES = 8, 4, 256
HBM = "hbm2-pc"
PUBLISHED_NS = 648.4


def run(job: Job) -> Iterator[Row]:
    """Measure every part."""
    for part in PARTS:
        yield from part(job)


def one_lookup(job: Job) -> Iterator[Row]:
    """Measure one bag of one lookup, with indices from memory, at several latencies of it."""
    lookup = Bags(row_bytes=ROW_BYTES, bag=1, lookups=1).workload(job.seed)
    for width in (512,) if job.quick else (512, 128):
        title = f"{width}-bit/one lookup of {ROW_BYTES} B"
        yield from _alone(job, title, unit(width, 128), lookup, DEPENDENT_READS, MOST_CYCLES)


def one_lookup_from_the_queue(job: Job) -> Iterator[Row]:
    """Measure one bag of one lookup, with offsets and index from the input queue."""
    lookup = TASKS["embedding_bag_queue"](
        job.seed, row_bytes=ROW_BYTES, requests=1, bags=1, lookups=1
    )
    for width in () if job.quick else (512, 128):
        title = f"{width}-bit/one lookup of {ROW_BYTES} B, input queue"
        yield from _alone(job, title, _queue_unit(width), lookup, 1, MOST_QUEUE_CYCLES)


def _queue_unit(width: int) -> AcceleratorConfig:
    base = unit(width, 128)
    return base.with_changes(name=f"{base.name}, input queue", input_queue=1)


def _alone(
    job: Job,
    title: str,
    config: AcceleratorConfig,
    lookup: Runnable,
    dependent_reads: int,
    most_cycles: int,
) -> Iterator[Row]:
    for latency in LATENCIES:
        name = f"{title}, memory {latency} cycles"
        if not job.wants(name):
            continue
        job.watcher(f"latency: {name}")
        memory = IdealMemory(latency_cycles=latency)
        with Simulator(
            config, memory=memory, optimise=not job.quick, progress=job.watcher.detail
        ) as simulator:
            delivery = simulator.run(lookup)
        yield Row(
            workload=name,
            metric="cycles from start to end",
            value=delivery.cycles,
            unit="cycles",
            params={
                **lookup.params,
                "latency_cycles": latency,
                "bus_bytes": config.bus_bytes,
                "memory": simulator.memory,
                "beyond_memory_cycles": delivery.cycles - dependent_reads * latency,
            },
            reference_name=f"{dependent_reads} x memory + {most_cycles}",
            reference=dependent_reads * latency + most_cycles,
            is_smaller_better=True,
            bar=1.0,
        )


def small_query(job: Job) -> Iterator[Row]:
    """Measure the query on `hbm2-pc`, with indices from memory and from the input queue."""
    for source, program in (
        ("indices from memory", "embedding_bag_requests"),
        ("indices from the input queue", "embedding_bag_queue"),
    ):
        name = f"{TABLES} tables x {TABLE_LOOKUPS} lookups of {TABLE_ROW_BYTES} B, {source}"
        if job.quick or not job.wants(name):
            continue
        job.watcher(f"latency: {name}")
        cycles: list[int] = []
        config = _queue_unit(512)
        clock_mhz = 0.0
        with Simulator(config, memory=HBM, progress=job.watcher.detail) as simulator:
            for table in range(TABLES):
                task = TASKS[program](
                    job.seed * TABLES + table,
                    row_bytes=TABLE_ROW_BYTES,
                    requests=1,
                    bags=1,
                    lookups=TABLE_LOOKUPS,
                )
                delivery = simulator.run(task)
                cycles.append(delivery.cycles)
                clock_mhz = float(delivery.facts["clock_mhz"])
        # One of eight is often met by a refresh.
        for metric, counted in (("slowest", max(cycles)), ("median", statistics.median(cycles))):
            yield Row(
                workload=name,
                metric=f"modelled time of the {metric} table",
                value=counted / clock_mhz * 1e3,
                unit="ns",
                params={
                    "tables": TABLES,
                    "lookups_a_table": TABLE_LOOKUPS,
                    "row_bytes": TABLE_ROW_BYTES,
                    "bus_bytes": config.bus_bytes,
                    "memory": simulator.memory,
                    "clock_mhz": clock_mhz,
                    "cycles": cycles,
                    "is_modelled": True,
                },
                reference_name="MicroRec, published",
                reference=PUBLISHED_NS,
                is_smaller_better=True,
            )


#: What the suite measures, in order.
PARTS: tuple[Callable[[Job], Iterator[Row]], ...] = (
    one_lookup,
    one_lookup_from_the_queue,
    small_query,
    softcore_rows,
)
