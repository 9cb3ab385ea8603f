"""Random rows on modelled DRAM: the unit against the model's own bound, the model against others.

Three parts. *unit*: an EmbeddingBag of random rows on each preset, useful bytes over what the
DRAM's data bus could carry from start to done; the reference is the bound: the same bursts, index
lines included, replayed by a requester that has all of them ready and unlimited buffers. *model*:
bandwidth and mean latency of access traces against those of another simulator, as the smaller over
the larger. *card*: bursts of random rows alone on `hbm2-pc`, against what one 512-bit port reached
on a card, and what the model says where one parameter is another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.bench.bags import Bags
from ember_hw.bench.presets import unit
from ember_hw.bench.registry import Job
from ember_hw.bench.result import Row
from ember_hw.bench.workload import Workload
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError
from ember_hw.host.backends.verilator import Backend
from ember_hw.sim.dram import DRAM_PRESETS, DramMemory
from ember_hw.sim.dram_golden import GOLDEN, TRACES
from ember_hw.sim.memory_library import READ_DTYPE, replay, run_accesses
from ember_hw.sim.options import MEMORIES, LinkMemory

BAR = 0.95
#: The model against another simulator: bandwidth within 5 %, latency within 10 %.
BANDWIDTH_BAR, LATENCY_BAR = 0.95, 0.90
ROW_BYTES = (64, 128, 256, 512)
#: Large enough that two rows of a table seldom share a DRAM row, and within the smallest memory.
TABLE_BYTES = 1 << 24
_GATHERED_BYTES, _QUICK_GATHERED_BYTES = 4 << 20, 1 << 19
_SMALL_PORT = ("ecpix5-ddr3", "ulx3s-sdram")
_BAG = 8
#: Share of the peak that one 512-bit port reached on one HBM2 pseudo-channel with random rows.
#: Ref: AMD tutorial XD099, U280-class card, 14.375 GB/s.
MEASURED = {64: 0.33, 128: 0.67, 256: 0.88, 512: 0.91}
_HBM2 = DRAM_PRESETS["hbm2-pc"]
#: What the card's numbers tell of: the preset, and each choice that explains a part of it undone.
CARD_MODELS = {
    "hbm2-pc": _HBM2,
    "hbm2-pc, tFAW 30 ns": replace(_HBM2, timing=replace(_HBM2.timing, tfaw=27)),
    "hbm2-pc, a row in one bank": replace(_HBM2, mapping="row14 bank2 group2 column5"),
}
_PortMemory = DramMemory | LinkMemory


def run(job: Job) -> Iterator[Row]:
    """Measure what the job wants of the three parts."""
    yield from _model_rows(job)
    yield from _card_rows(job)
    yield from _unit_rows(job)


def config_of(memory: str) -> AcceleratorConfig:
    """Return the unit that a preset is measured with: 128 bits on the small boards, else 512."""
    return unit(128, 64) if memory in _SMALL_PORT else unit(512, 128)


def _unit_rows(job: Job) -> Iterator[Row]:
    names = [*DRAM_PRESETS, LinkMemory.name]
    points = {name: [r for r in ROW_BYTES if job.wants(_unit_name(name, r))] for name in names}
    total, done = sum(map(len, points.values())), 0
    for name, sizes in points.items():
        memory = MEMORIES[name]
        if not sizes or not isinstance(memory, _PortMemory):
            continue
        job.watcher(f"dram: {len(sizes)} sizes of rows on {name}")
        backend = Backend(
            config_of(name), memory=memory, record_reads=True, progress=job.watcher.detail
        )
        try:
            for row_bytes in sizes:
                yield measure(backend, memory, row_bytes, job)
                done += 1
                job.watcher.reached(done, total, None)
        finally:
            backend.close()


def _unit_name(memory: str, row_bytes: int) -> str:
    return f"unit/{memory}/{row_bytes} B"


def measure(backend: Backend, memory: _PortMemory, row_bytes: int, job: Job) -> Row:
    """Run one size of rows and compare it with the bound of its bursts.

    Raises
    ------
    DeviceError
        A row that came isn't the table's.
    """
    bus_bytes = backend.config.bus_bytes
    workload = random_rows(row_bytes, job.seed, quick=job.quick)
    chunks = [c.row_beats.copy() for c in backend.execute(workload.launch(backend.config))]
    beats = np.concatenate(chunks)
    assert workload.rows is not None
    if not np.array_equal(beats.reshape(-1), workload.rows.reshape(-1)):
        raise DeviceError(f"rows of {workload.name!r} must be the table's, and aren't")
    cycles: int = backend.facts()["cycles"]
    bound = replay(memory, backend.reads(), bus_bytes=bus_bytes)
    peak = min(peak_bytes_per_cycle(memory), bus_bytes)
    return Row(
        workload=_unit_name(memory.name, row_bytes),
        metric="utilisation",
        value=workload.rows.size / (cycles * peak),
        unit="1",
        params={
            **workload.params,
            "bus_bytes": bus_bytes,
            "outstanding": backend.config.outstanding_reads,
            "peak_bytes_per_cycle": peak,
            "unit_mhz": memory.unit_mhz,
            "cycles": cycles,
            "bound_cycles": bound,
            "memory": backend.memory,
            "sink": backend.sink,
        },
        reference_name="bound of the model",
        reference=workload.rows.size / (bound * peak),
        bar=BAR,
    )


def random_rows(row_bytes: int, seed: int, *, quick: bool) -> Workload:
    """Return an EmbeddingBag over a table that is large for DRAM rows."""
    gathered = _QUICK_GATHERED_BYTES if quick else _GATHERED_BYTES
    bags = Bags(row_bytes=row_bytes, bag=_BAG, lookups=gathered // row_bytes)
    workload = bags.workload(seed)
    rng = np.random.default_rng([seed, row_bytes])
    rows = TABLE_BYTES // row_bytes
    table = rng.integers(0, 1 << 32, (rows, row_bytes // 4), np.uint32).view(np.float32)
    old = workload.arrays["idx"]
    indices = rng.integers(0, rows, len(old)).astype(old.dtype)
    return replace(
        workload,
        arrays={**workload.arrays, "idx": indices, "tab": table},
        rows=table[indices].view(np.uint8),
        params={**workload.params, "table_bytes": TABLE_BYTES},
    )


def peak_bytes_per_cycle(memory: _PortMemory) -> float:
    """Return what a memory's data bus or link carries without a gap."""
    if isinstance(memory, LinkMemory):
        return memory.bytes_per_cycle
    return memory.peak_bytes_per_cycle


def _model_rows(job: Job) -> Iterator[Row]:
    told = False
    for golden in GOLDEN["rows"]:
        name = f"model/{golden['preset']}/{golden['trace']}"
        if not job.wants(name):
            continue
        if not told:
            job.watcher("dram: the models against another simulator")
            told = True
        dram = DRAM_PRESETS[golden["preset"]]
        trace = TRACES[golden["trace"]](dram)
        found = run_accesses(dram, trace.addresses, trace.clocks)
        for metric, value, wanted, bar in (
            ("bandwidth agreement", found.clocks, golden["clocks"], BANDWIDTH_BAR),
            (
                "latency agreement",
                found.mean_latency_clocks,
                golden["mean_latency_clocks"],
                LATENCY_BAR,
            ),
        ):
            yield Row(
                workload=name,
                metric=metric,
                value=min(value, wanted) / max(value, wanted),
                unit="1",
                params={
                    "accesses": golden["accesses"],
                    "model_clocks": value,
                    "golden_clocks": wanted,
                    "tool": GOLDEN["tool"],
                    "memory": dram.describe(),
                },
                reference_name="equal",
                reference=1.0,
                bar=bar,
            )


def _card_rows(job: Job) -> Iterator[Row]:
    for name, dram in CARD_MODELS.items():
        for row_bytes, measured in MEASURED.items():
            workload = f"card/{name}/{row_bytes} B"
            if not job.wants(workload):
                continue
            reads = burst_trace(dram, row_bytes, job.seed)
            cycles = replay(dram, reads, bus_bytes=64)
            yield Row(
                workload=workload,
                metric="utilisation",
                value=len(reads) * row_bytes / (cycles * dram.peak_bytes_per_cycle),
                unit="1",
                params={"bursts": len(reads), "cycles": cycles, "memory": dram.describe()},
                reference_name="measured card",
                reference=measured,
            )


def burst_trace(dram: DramMemory, row_bytes: int, seed: int) -> NDArray[Any]:
    """Return bursts of random rows all over a DRAM, on a 512-bit port."""
    rng = np.random.default_rng([seed, row_bytes])
    reads = np.zeros(_QUICK_GATHERED_BYTES * 2 // row_bytes, READ_DTYPE)
    reads["address"] = rng.integers(0, dram.size_bytes // row_bytes, len(reads)) * row_bytes
    reads["beats"] = row_bytes // 64
    reads["beat_bytes"] = 64
    return reads
