"""How fast the simulation is: `device.run` of an EmbeddingBag, cycles and lookups a second.

One million lookups of 256 bytes on the default unit with the ideal memory (latency 100 cycles), in
bags of 32, on one core of this machine. The pooled rows are compared with the exact reference.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

import ember_hw
from ember_hw.bench.registry import Job
from ember_hw.bench.result import Row
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError
from ember_hw.host.reference import count_mismatches, exact
from ember_hw.host.request import normalise_request
from ember_hw.sim.options import IdealMemory

LOOKUPS = 1_000_000
QUICK_LOOKUPS = 100_000
#: Bar: a million lookups in ten seconds.
SECONDS_A_LOOKUP = 10.0 / LOOKUPS
BAG, EMBEDDING_DIM, TABLE_ROWS = 32, 64, 100_000
LATENCY_CYCLES = 100
_CONFIG = "default"


def run(job: Job) -> Iterator[Row]:
    """Measure one run, its model built and its tables loaded before."""
    lookups = QUICK_LOOKUPS if job.quick else LOOKUPS
    name = f"{lookups:,} lookups of {4 * EMBEDDING_DIM} B"
    if not job.wants(name):
        return
    job.watcher("sim: compiling the program")
    import torch  # slow to import, and not needed to list suites

    rng = np.random.default_rng(job.seed)
    table = rng.standard_normal((TABLE_ROWS, EMBEDDING_DIM), dtype=np.float32)
    bag = torch.nn.EmbeddingBag.from_pretrained(torch.from_numpy(table), mode="sum")
    indices = rng.integers(0, TABLE_ROWS, lookups)
    offsets = np.arange(0, lookups, BAG)
    config = AcceleratorConfig.preset(_CONFIG)
    program = ember_hw.compile(bag, (indices, offsets), config=config)

    job.watcher("sim: opening the simulated unit")
    memory = IdealMemory(latency_cycles=LATENCY_CYCLES)
    with ember_hw.open_device(
        "verilator", config=config, memory=memory, progress=job.watcher.detail
    ) as device:
        device.load(program)
        job.watcher(f"sim: {name}")
        with one_core() as is_one_core:
            began, began_busy = time.perf_counter(), time.process_time()
            pooled = device.run(program, (indices, offsets), progress=job.watcher.reached)
            seconds = time.perf_counter() - began
            busy_seconds = time.process_time() - began_busy
        report = device.report
    request = normalise_request(indices, offsets, num_embeddings=TABLE_ROWS)
    mismatches = count_mismatches(pooled, exact(table, request))
    if mismatches:
        raise DeviceError(f"pooled rows of {name!r} must be exact, and {mismatches} aren't")
    cycles = report.cycles or 0
    params = {
        "lookups": lookups,
        "row_bytes": 4 * EMBEDDING_DIM,
        "bag": BAG,
        "config": _CONFIG,
        "memory": report.memory,
        "latency_cycles": LATENCY_CYCLES,
        "cycles": cycles,
        "utilisation": report.utilisation,
        "one_core": is_one_core,
    }
    yield Row(
        workload=name,
        metric="device.run",
        value=seconds,
        unit="s",
        params=params,
        reference_name="most allowed, 10 s a million lookups",
        reference=SECONDS_A_LOOKUP * lookups,
        is_smaller_better=True,
        bar=1.0,
    )
    # On a machine that others use too, less than the wall clock's.
    yield Row(workload=name, metric="processor time", value=busy_seconds, unit="s", params=params)
    for metric, value in (("cycles a second", cycles), ("lookups a second", lookups)):
        yield Row(workload=name, metric=metric, value=value / seconds, unit="1/s", params=params)


@contextmanager
def one_core() -> Iterator[bool]:
    """Keep this process on one core meanwhile, where the system can; yield whether it could."""
    if not hasattr(os, "sched_setaffinity"):
        yield False
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield True
    finally:
        os.sched_setaffinity(0, before)
