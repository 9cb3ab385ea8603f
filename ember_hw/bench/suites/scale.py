"""Small requests against one long run: what the pipeline's fill costs each of them.

A request is one program of 64 lookups of 256 bytes. Started one after the other, each pays the
fill; the long run pays it once.
"""

from __future__ import annotations

from collections.abc import Iterator

from ember_hw.bench.bags import Bags
from ember_hw.bench.presets import unit
from ember_hw.bench.registry import Job
from ember_hw.bench.result import Row
from ember_hw.bench.simulated import Simulator
from ember_hw.sim.options import IdealMemory

LATENCY_CYCLES = 100
REQUEST_LOOKUPS = 64
REQUESTS = 16
LONG_LOOKUPS = 16_384
ROW_BYTES, BAG = 256, 8


def run(job: Job) -> Iterator[Row]:
    """Measure requests one after the other beside the long run."""
    name = f"requests of {REQUEST_LOOKUPS} lookups of {ROW_BYTES} B, one after the other"
    if not job.wants(name):
        return
    job.watcher(f"scale: {name}")
    config = unit(512, 128)
    memory = IdealMemory(latency_cycles=LATENCY_CYCLES)
    with Simulator(
        config, memory=memory, optimise=not job.quick, progress=job.watcher.detail
    ) as simulator:
        long_cycles = _cycles(simulator, LONG_LOOKUPS, job.seed)
        long_rate = LONG_LOOKUPS / long_cycles
        seeds = range(job.seed, job.seed + REQUESTS)
        cycles = sum(_cycles(simulator, REQUEST_LOOKUPS, seed) for seed in seeds)
    yield Row(
        workload=name,
        metric="lookups a cycle",
        value=REQUESTS * REQUEST_LOOKUPS / cycles,
        unit="1/cycle",
        params={
            "requests": REQUESTS,
            "row_bytes": ROW_BYTES,
            "bag": BAG,
            "latency_cycles": LATENCY_CYCLES,
            "bus_bytes": config.bus_bytes,
            "memory": simulator.memory,
            "long_run_cycles": long_cycles,
        },
        reference_name=f"one run of {LONG_LOOKUPS:,} lookups",
        reference=long_rate,
    )


def _cycles(simulator: Simulator, lookups: int, seed: int) -> int:
    bags = Bags(row_bytes=ROW_BYTES, bag=BAG, lookups=lookups)
    return simulator.run(bags.workload(seed)).cycles
