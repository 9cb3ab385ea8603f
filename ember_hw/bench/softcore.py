"""Soft cores that sum bags of int32 rows, with and without the access unit: cycles a row.

Each core runs the same sum in up to six ways on the `ideal` memory model. Alone it gathers: a row
at a time with the sums in memory, or 16 columns of a whole bag at a time with the sums in registers
(each index is read once for every 16 columns). With the unit it pops, in the same two orders, an
uncached word a read, or a line a read where it has a data cache. Code and the sums in memory lie in
local memory without latency. Cycles count from before the first access (the unit's start, if it
gathers) to after the last sum is written; what it takes to write the unit's microcode, once for all
requests, is told apart. The sums must be NumPy's.

A way with the unit is compared with the better way without it on the same core: a ratio below 1 is
a loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ember_hw.bench.registry import Job
from ember_hw.bench.result import Row
from ember_hw.bench.workload import Workload
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError
from ember_hw.host.backends.verilog import cached_verilog, model_shape
from ember_hw.host.launch import Launch
from ember_hw.isa import Event, event_bit
from ember_hw.registers import MICROCODE_ADDRESS
from ember_hw.sim.softcore import run
from ember_hw.sim.softcore.build import build_softcore
from ember_hw.sim.softcore.firmware import PART_COLUMNS, build_firmware
from ember_hw.sim.softcore.packages import CORES, Core, missing_packages
from ember_hw.sim.softcore.run import Kernel, SoftcoreResult, run_softcore

#: Latencies of the memory, in cycles.
LATENCIES = (1, 30, 100)
COLUMNS = 64
BAG = 32
_TABLE_ROWS = 4096
_BAGS, _QUICK_BAGS = 16, 4
_QUICK_CORE = "vexriscv"
#: Twice what the slowest way takes; past that, a run is given up.
_MOST_CYCLES_PER_LOOKUP = 20_000
_CONFIG = AcceleratorConfig.preset("small")

_ARGUMENTS = """
  au.arg a0 "off" : memref<?xi32>
  au.arg a1 "idx" : memref<?xi32>
  au.arg a2 "tab" : memref<?x?xf32>
  au.arg a3 "tab.pitch" : index
  au.arg a4 "B" : index
  au.arg a5 "D" : index
  au.tu t0 = 0 to a4 step 1
  au.mem s0 on t0 = a0[t0] : i32
  au.next s1 on t0 = s0
"""
#: Rows of a bag, then its end.
_ROWS = f"""
au.program @bag_rows target "any" {{{_ARGUMENTS}
  au.tu t1 under t0 = s0 to s1 step 1
  au.mem s2 on t1 = a1[t1] : i32
  au.row r0 on t1 = a2[s2 * a3] len a5 : f32
  au.push t1 ite id 1 (r0)
  au.push t1 end id 2 ()
}}
"""
#: Parts of the columns; of each, the rows of a bag, then their end.
_PARTS = f"""
au.program @bag_parts target "any" {{{_ARGUMENTS}
  au.tu t1 under t0 = 0 to a5 step {PART_COLUMNS}
  au.tu t2 under t1 = s0 to s1 step 1
  au.mem s2 on t2 = a1[t2] : i32
  au.row r0 on t2 = a2[s2 * a3 + t1] len {PART_COLUMNS} clip t1 to a5 : f32
  au.push t2 ite id 1 (r0)
  au.push t2 end id 2 ()
}}
"""


@dataclass(frozen=True)
class Way:
    """One way to compute the sums.

    Attributes
    ----------
    kernel : Kernel
        What the core runs.
    pops_lines : bool
        Whether it pops a line of the data cache a read, instead of a word.
    """

    kernel: Kernel
    pops_lines: bool = False

    def __str__(self) -> str:
        by_row = self.kernel in (Kernel.GATHER_ROWS, Kernel.POP_ROWS)
        order = "by row" if by_row else f"by {PART_COLUMNS} columns"
        if not self.kernel.uses_unit:
            return f"alone, {order}"
        return f"with the unit, {order}, pops {'lines' if self.pops_lines else 'words'}"


def ways_of(core: Core) -> list[Way]:
    """Return the ways of a core, those without the unit first.

    Examples
    --------
    >>> for way in ways_of(CORES["picorv32"]):
    ...     print(way)
    alone, by row
    alone, by 16 columns
    with the unit, by row, pops words
    with the unit, by 16 columns, pops words
    """
    alone = [Way(kernel) for kernel in Kernel if not kernel.uses_unit]
    popped = (False, True) if core.has_data_cache else (False,)
    return alone + [Way(kernel, line) for kernel in Kernel if kernel.uses_unit for line in popped]


@dataclass(frozen=True, kw_only=True)
class BagSums:
    """Seeded lookups with their sums.

    Attributes
    ----------
    offsets : int32 (B + 1,)
        Where bags begin, and the end of the last.
    indices : int32 (N,)
        Rows, bag after bag.
    table : int32 (R, D)
        Rows.
    """

    offsets: NDArray[np.int32]
    indices: NDArray[np.int32]
    table: NDArray[np.int32]

    @staticmethod
    def make(bags: int, seed: int) -> BagSums:
        """Return bags of `BAG` rows of `COLUMNS`, uniform over the table."""
        rng = np.random.default_rng(seed)
        table = rng.integers(-(1 << 31), 1 << 31, (_TABLE_ROWS, COLUMNS), np.int64)
        return BagSums(
            offsets=np.arange(0, BAG * bags + 1, BAG, dtype=np.int32),
            indices=rng.integers(0, _TABLE_ROWS, BAG * bags).astype(np.int32),
            table=table.astype(np.int32),
        )

    def expected(self) -> NDArray[np.int32]:
        """Return the sums (B, D), modulo 2**32."""
        bags = self.offsets.size - 1
        bag_of_lookup = np.repeat(np.arange(bags), np.diff(self.offsets))
        sums = np.zeros((bags, self.table.shape[1]), np.int32)
        np.add.at(sums, bag_of_lookup, self.table[self.indices])
        return sums

    def launch(self, kernel: Kernel) -> Launch:
        """Return the unit's program of a kernel, bound to these arrays."""
        return Workload(
            name=kernel.name,
            text=_PARTS if kernel is Kernel.POP_PARTS else _ROWS,
            arrays={"off": self.offsets, "idx": self.indices, "tab": self.table},
            values={"B": self.offsets.size - 1, "D": self.table.shape[1]},
            index_bytes=self.offsets.nbytes + self.indices.nbytes,
        ).launch(_CONFIG)

    def job(self, way: Way) -> run.Job:
        """Return what a core is given to do."""
        launch = self.launch(way.kernel)
        microcode = launch.microcode
        level = 2 if way.kernel is Kernel.POP_PARTS else 1
        words = enumerate(microcode.encode())
        addresses = {region.symbol: region.base for region in launch.regions}
        return run.Job(
            kernel=way.kernel,
            columns=self.table.shape[1],
            bags=self.offsets.size - 1,
            offsets=addresses["off"],
            indices=addresses["idx"],
            table=addresses["tab"],
            regions=[(region.base, region.data) for region in launch.regions],
            pops_lines=way.pops_lines,
            row_events=microcode.get("row0", "events"),
            sum_events=1 << event_bit(Event.END, level, _CONFIG),
            program_events=1 << event_bit(Event.END, 0, _CONFIG),
            register_writes=[(MICROCODE_ADDRESS + 4 * n, word) for n, word in words]
            if way.kernel.uses_unit
            else [],
        )


def softcore_rows(job: Job) -> Iterator[Row]:
    """Measure every core, way and latency; a quick job takes one core and fewer bags.

    Without the extra `softcore` a row says that nothing was measured.

    Raises
    ------
    ToolError
        A tool is missing.
    SimulationError
        A core or the unit went wrong.
    DeviceError
        Sums aren't NumPy's.
    """
    sums = BagSums.make(_QUICK_BAGS if job.quick else _BAGS, job.seed)
    for core in [CORES[_QUICK_CORE]] if job.quick else CORES.values():
        names = {
            (latency, way): f"{core.name} {way}, latency {latency}"
            for latency in LATENCIES
            for way in ways_of(core)
        }
        if not any(map(job.wants, names.values())):
            continue
        if missing := missing_packages():
            yield Row(
                workload=f"{core.name}: skipped, needs pip install 'ember_hw[softcore]'",
                metric="packages missing",
                value=len(missing),
                unit="1",
                params={"extra": "softcore", "missing": missing},
            )
            continue
        job.watcher(f"{core.name} beside the access unit")
        program = build_softcore(
            core,
            cached_verilog(_CONFIG, job.watcher.detail),
            model_shape(_CONFIG),
            progress=job.watcher.detail,
        )
        firmware = build_firmware(COLUMNS)
        done = 0
        for latency in LATENCIES:
            if not any(job.wants(names[latency, way]) for way in ways_of(core)):
                continue
            best_alone: float | None = None
            for way in ways_of(core):
                name = names[latency, way]
                # What the ways with the unit are compared with is measured in any case.
                if way.kernel.uses_unit and not job.wants(name):
                    continue
                result = run_softcore(
                    program,
                    firmware,
                    sums.job(way),
                    latency_cycles=latency,
                    limit_cycles=_MOST_CYCLES_PER_LOOKUP * sums.indices.size,
                )
                check_sums(name, result.sums, sums.expected())
                row = _row(name, core, way, latency, result, sums, best_alone)
                if not way.kernel.uses_unit:
                    best_alone = min(best_alone or row.value, row.value)
                done += 1
                job.watcher.reached(done, len(names), result.cycles)
                if job.wants(name):
                    yield row


def check_sums(name: str, sums: NDArray[np.int32], expected: NDArray[np.int32]) -> None:
    """Refuse sums that aren't NumPy's.

    Raises
    ------
    DeviceError
        A sum differs; the first that does is named.
    """
    differs = np.argwhere(sums != expected)
    if differs.size:
        bag, column = map(int, differs[0])
        raise DeviceError(
            f"sum of bag {bag}, column {column} of {name!r} must be {expected[bag, column]}, "
            f"not {sums[bag, column]}"
        )


def _row(
    name: str,
    core: Core,
    way: Way,
    latency_cycles: int,
    result: SoftcoreResult,
    sums: BagSums,
    best_alone: float | None,
) -> Row:
    lookups = sums.indices.size
    params = {
        "core": core.name,
        "way": str(way),
        "memory": "ideal",
        "latency_cycles": latency_cycles,
        "row_bytes": 4 * COLUMNS,
        "bag": BAG,
        "lookups": lookups,
        "core_reads": result.core_reads,
        "unit_bytes": result.unit_bytes,
    }
    if way.kernel.uses_unit:
        params |= {"unit_bus_bytes": _CONFIG.bus_bytes, "setup_cycles": result.setup_cycles}
    compared = way.kernel.uses_unit and best_alone is not None
    return Row(
        workload=name,
        metric="time per row",
        value=result.cycles / lookups,
        unit="cycles",
        params=params,
        reference_name="the core alone, better way" if compared else None,
        reference=best_alone if compared else None,
        is_smaller_better=True,
    )
