"""Runs the soft core's program on a simulation that `build_softcore` made."""

from __future__ import annotations

import json
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..model import SimulationError
from .firmware import ARGUMENTS_ADDRESS

#: Where the core writes sums; memory that it caches ends at 0x8000_0000.
OUTPUT_ADDRESS = 0x4000_0000
#: Where it reads the row queue, rows in turn at the one and the other: see softcore_top.v.
_WORD_WINDOWS = (0x8000_1000, 0x8000_1000)
_LINE_WINDOWS = (0x7000_0000, 0x7000_1000)


class Kernel(IntEnum):
    """What the core runs; the same numbers as in main.c."""

    GATHER_ROWS = 0
    """Without the unit: a row at a time, sums in memory."""
    GATHER_PARTS = 1
    """Without the unit: `PART_COLUMNS` of all rows of a bag at a time, sums in registers."""
    POP_ROWS = 2
    """With the unit: a row at a time, sums in memory."""
    POP_PARTS = 3
    """With the unit: `PART_COLUMNS` of all rows of a bag at a time, sums in registers."""

    @property
    def uses_unit(self) -> bool:
        """Whether the access unit gathers."""
        return self in (Kernel.POP_ROWS, Kernel.POP_PARTS)


class Marker(IntEnum):
    """What the firmware tells with a write to the markers' address."""

    BEGIN = 1
    END = 2
    STARTED = 3
    PASSED = 4
    FAILED = 5


@dataclass(frozen=True, kw_only=True)
class Job:
    """One bag sum.

    Attributes
    ----------
    kernel : Kernel
        How the core does it.
    columns, bags : int
        Shape of the sums.
    offsets, indices, table : int
        Byte addresses: int32 offsets of the bags and the end, int32 indices, rows of int32.
    regions : sequence of (int, array)
        Byte address and contents of memory.
    pops_lines : bool
        Whether the core reads the row queue through its data cache, a line at a time.
    row_events, sum_events, program_events : int
        Event bits of a bundle that bring a row (or a part of it), complete a sum of what was
        brought, end the program.
    register_writes : sequence of (int, int)
        Address and value of what the core writes to the unit before it starts it.
    """

    kernel: Kernel
    columns: int
    bags: int
    offsets: int
    indices: int
    table: int
    regions: Sequence[tuple[int, NDArray[Any]]]
    pops_lines: bool = False
    row_events: int = 0
    sum_events: int = 0
    program_events: int = 0
    register_writes: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True)
class SoftcoreResult:
    """What a run brought.

    Attributes
    ----------
    sums : int32 (bags, columns)
        What the core wrote.
    cycles : int
        From before the first access (the unit's start, where it gathers) to after the last sum.
    setup_cycles : int
        What the core took to write the unit's microcode.
    core_reads, core_words : int
        Reads of the core's memory port, and words they brought.
    unit_reads, unit_bytes : int
        Bursts of the unit's memory port, and bytes of its beats.
    """

    sums: NDArray[np.int32]
    cycles: int
    setup_cycles: int
    core_reads: int
    core_words: int
    unit_reads: int
    unit_bytes: int


def run_softcore(
    program: Path,
    firmware: bytes,
    job: Job,
    *,
    latency_cycles: int,
    limit_cycles: int,
) -> SoftcoreResult:
    """Simulate one job.

    Parameters
    ----------
    program : Path
        What `build_softcore` returned.
    firmware : bytes
        What `build_firmware` returned for the job's columns.
    job : Job
        The sum to compute.
    latency_cycles : int
        From a request to its first word or beat, at least 1; then one a cycle.
    limit_cycles : int
        Cycles after which the run is given up.

    Raises
    ------
    SimulationError
        The core or the unit went wrong, or the run took too long.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        output = folder / "sums.bin"
        sums_bytes = 4 * job.bags * job.columns
        image = folder / "firmware.bin"
        image.write_bytes(firmware)
        arguments = folder / "arguments.bin"
        arguments.write_bytes(argument_bytes(job))
        plan = [
            f"latency {latency_cycles}",
            f"limit {limit_cycles}",
            f"local 0 {image}",
            f"local {ARGUMENTS_ADDRESS} {arguments}",
            f"output {OUTPUT_ADDRESS} {sums_bytes} {output}",
            f"last {Marker.PASSED.value}",
            f"last {Marker.FAILED.value}",
        ]
        for number, (address, data) in enumerate(job.regions):
            region = folder / f"region{number}.bin"
            data.tofile(region)
            plan.append(f"map {address} {region}")
        path = folder / "plan.txt"
        path.write_text("\n".join(plan) + "\n")
        done = subprocess.run(
            [str(program), str(path)], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise SimulationError(done.stderr.strip())
        counted = json.loads(done.stdout.splitlines()[-1])
        sums = np.fromfile(output, np.int32).reshape(job.bags, job.columns)
    markers = {Marker(marker): cycle for marker, cycle in counted.pop("markers")}
    if Marker.FAILED in markers:
        raise SimulationError("the access unit must end in state DONE, and the core saw another")
    return SoftcoreResult(
        sums=sums,
        cycles=markers[Marker.END] - markers[Marker.BEGIN],
        setup_cycles=markers[Marker.BEGIN] - markers[Marker.STARTED],
        **counted,
    )


def argument_bytes(job: Job) -> bytes:
    """Return `struct Arguments` of main.c for a job."""
    words = [
        *(job.kernel, job.bags, job.offsets, job.indices, job.table, OUTPUT_ADDRESS),
        *(job.row_events, job.sum_events, job.program_events),
        *(_LINE_WINDOWS if job.pops_lines else _WORD_WINDOWS),
        len(job.register_writes),
    ]
    for address, value in job.register_writes:
        words += [address, value]
    return struct.pack(f"<{len(words)}I", *words)
