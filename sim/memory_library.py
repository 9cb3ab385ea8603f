"""The memory models on their own: compiled once, asked without an access unit, ctypes for C."""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
from collections.abc import Callable
from ctypes import (
    POINTER,
    Structure,
    byref,
    c_double,
    c_size_t,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
    pointer,
)
from dataclasses import dataclass, fields
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.errors import ToolError

from .cache import build_once, cache_folder
from .dram import ADDRESS_FIELDS, DramMemory, DramTiming
from .options import IdealMemory, LinkMemory, Memory, RandomMemory, TestMemory

ARCHIVE_NAME = "memories.a"
_LIBRARY_NAME = "memories.so"
_SOURCES = Path(__file__).resolve().parent / "memories"
_FLAGS = ("-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden")

#: A read burst, as `EmberRead`.
READ_DTYPE = np.dtype(
    [
        ("cycle", np.uint64),
        ("address", np.uint64),
        ("id", np.uint32),
        ("beats", np.uint16),
        ("beat_bytes", np.uint16),
    ]
)
#: A DRAM's command, as `EmberDramCommand`; `kind` counts in `COMMANDS`.
COMMAND_DTYPE = np.dtype(
    [
        ("clock", np.uint64),
        ("row", np.uint32),
        ("column", np.uint32),
        ("kind", np.uint8),
        ("rank", np.uint8),
        ("group", np.uint8),
        ("bank", np.uint8),
        ("reserved", np.uint32),
    ]
)
COMMANDS = ("ACTIVATE", "READ", "PRECHARGE", "PRECHARGE_ALL", "REFRESH", "WRITE")

_FIELD_ENTRIES = 16
_NUMBERS = ("access_bytes", "dual_command_bus", "queue_entries", "port_entries", "front_cycles")
_NUMBERS += ("back_cycles", "memory_khz", "unit_khz")
_TIMES = ("burst", "cl", "trcd", "trp", "tras", "trc", "trrd_s", "trrd_l", "tfaw", "tccd_s")
_TIMES += ("tccd_l", "trtp", "trfc", "trefi", "trtrs", "cwl", "twr", "twtr_s", "twtr_l", "trtw")
assert set(_TIMES) == {field.name for field in fields(DramTiming)}


class DramStruct(Structure):
    """`struct EmberDram`."""

    _fields_ = (
        ("fields", c_uint32),
        ("field", c_uint8 * _FIELD_ENTRIES),
        ("field_bits", c_uint8 * _FIELD_ENTRIES),
        *((name, c_uint32) for name in _NUMBERS + _TIMES),
    )


class MemoryStruct(Structure):
    """`struct EmberMemory`."""

    _fields_ = (
        ("kind", c_uint32),
        ("reorder", c_uint32),
        ("interleave", c_uint32),
        ("record_commands", c_uint32),
        ("seed", c_uint64),
        ("min_latency_cycles", c_uint64),
        ("max_latency_cycles", c_uint64),
        ("min_write_latency_cycles", c_uint64),
        ("max_write_latency_cycles", c_uint64),
        ("bytes_per_cycle", c_uint64),
        ("request_stall_probability", c_double),
        ("beat_stall_probability", c_double),
        ("error_base", c_uint64),
        ("error_bytes", c_uint64),
        ("decode_error_base", c_uint64),
        ("decode_error_bytes", c_uint64),
        ("dram", POINTER(DramStruct)),
    )


class _AccessRunStruct(Structure):
    """`struct EmberAccessRun`."""

    _fields_ = (
        ("clocks", c_uint64),
        ("latency_clocks", c_uint64),
        ("activates", c_uint64),
        ("refreshes", c_uint64),
    )


def dram_struct(dram: DramMemory) -> DramStruct:
    """Return a DRAM as C reads it."""
    parts = dram.parts[::-1]
    struct = DramStruct(fields=len(parts))
    for place, (name, bits) in enumerate(parts):
        struct.field[place] = ADDRESS_FIELDS.index(name)
        struct.field_bits[place] = bits
    for name in _NUMBERS:
        setattr(struct, name, int(getattr(dram, name)))
    for name in _TIMES:
        setattr(struct, name, getattr(dram.timing, name))
    return struct


def memory_struct(memory: Memory, *, record_commands: bool = False) -> MemoryStruct:
    """Return the memory choice as C reads it."""
    match memory:
        case IdealMemory():
            return MemoryStruct(kind=0, min_latency_cycles=memory.latency_cycles)
        case LinkMemory():
            return MemoryStruct(
                kind=0,
                min_latency_cycles=memory.latency_cycles,
                bytes_per_cycle=memory.bytes_per_cycle,
            )
        case TestMemory():
            of_writes = memory.write_latency_cycles or memory.latency_cycles
            return MemoryStruct(
                kind=1,
                reorder=memory.reorder,
                interleave=memory.interleave,
                seed=memory.seed,
                min_latency_cycles=memory.latency_cycles[0],
                max_latency_cycles=memory.latency_cycles[1],
                request_stall_probability=memory.request_stall_probability,
                beat_stall_probability=memory.beat_stall_probability,
                min_write_latency_cycles=of_writes[0],
                max_write_latency_cycles=of_writes[1],
                error_base=memory.error_range[0],
                error_bytes=memory.error_range[1],
                decode_error_base=memory.decode_error_range[0],
                decode_error_bytes=memory.decode_error_range[1],
            )
        case RandomMemory():
            return MemoryStruct(
                kind=2,
                seed=memory.seed,
                min_latency_cycles=memory.latency_cycles[0],
                max_latency_cycles=memory.latency_cycles[1],
            )
        case DramMemory():
            return MemoryStruct(
                kind=3, record_commands=record_commands, dram=pointer(dram_struct(memory))
            )


def build_memories(progress: Callable[[str], None] | None = None) -> Path:
    """Return the folder of the compiled models, from the cache or freshly compiled.

    Raises
    ------
    ToolError
        There is no C++ compiler, or it fails; the message holds its output.
    """
    sources = sorted(file for file in _SOURCES.iterdir() if file.suffix in (".cpp", ".hpp", ".h"))
    compiler = os.environ.get("CXX", "c++")
    key = sha256(f"{compiler} {platform.machine()} {_FLAGS}".encode())
    for file in sources:
        key.update(f"{file.name}\n".encode() + file.read_bytes())

    def build(draft: Path) -> None:
        if progress is not None:
            progress("compiling the memory models")
        code = [str(file) for file in sources if file.suffix == ".cpp"]
        _run([compiler, *_FLAGS, "-c", *code], draft)
        objects = [file.name for file in sorted(draft.glob("*.o"))]
        _run(["ar", "rcs", ARCHIVE_NAME, *objects], draft)
        _run([compiler, "-shared", "-o", _LIBRARY_NAME, *objects], draft)

    return build_once(cache_folder() / "memories" / key.hexdigest()[:32], build)


def _run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise ToolError(
            f"a C++ compiler must be installed, but {command[0]!r} is not; install g++, or set CXX"
        ) from None
    if done.returncode != 0:
        raise ToolError(
            f"{command[0]} must compile the memory models, but ended with status "
            f"{done.returncode}:\n{done.stderr.strip()}"
        )


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(build_memories() / _LIBRARY_NAME))
    library.ember_replay.restype = c_uint64
    library.ember_replay.argtypes = (POINTER(MemoryStruct), c_uint32, c_void_p, c_size_t)
    library.ember_run_accesses.restype = c_size_t
    library.ember_run_accesses.argtypes = (
        POINTER(DramStruct),
        c_void_p,
        c_void_p,
        c_void_p,
        c_size_t,
        POINTER(_AccessRunStruct),
        c_void_p,
        c_size_t,
    )
    return library


def replay(memory: Memory, reads: NDArray[Any], *, bus_bytes: int) -> int:
    """Return the cycles in which a memory answers read bursts that are all there from the start.

    What bounds every requester of these bursts: none waits for another's data, each has an ID of
    its own, no buffer is ever full and no beat refused. They reach the memory in the order given.

    Parameters
    ----------
    memory : memory model
        It begins anew.
    reads : READ_DTYPE (N,)
        Addresses, beats and bytes of a beat count; cycles and IDs don't.
    bus_bytes : int
        Width of the port.

    Returns
    -------
    int
        Cycle of the last beat, counted from the cycle of the requests.

    Examples
    --------
    >>> reads = np.zeros(3, READ_DTYPE)
    >>> reads["beats"], reads["beat_bytes"] = 4, 64
    >>> replay(IdealMemory(latency_cycles=100), reads, bus_bytes=64)
    111
    """
    reads = np.ascontiguousarray(reads, READ_DTYPE)
    struct = memory_struct(memory)
    return int(_library().ember_replay(byref(struct), bus_bytes, reads.ctypes.data, len(reads)))


@dataclass(frozen=True)
class AccessRun:
    """What a DRAM did with a list of accesses, in its own clock.

    Attributes
    ----------
    clocks : int
        Until the last data.
    mean_latency_clocks : float
        From the scheduler's queue to the end of the data.
    activates, refreshes : int
        Commands of these kinds.
    commands : COMMAND_DTYPE (C,)
        All of them.
    """

    clocks: int
    mean_latency_clocks: float
    activates: int
    refreshes: int
    commands: NDArray[Any]


def run_accesses(
    dram: DramMemory,
    addresses: NDArray[np.uint64],
    clocks: NDArray[np.uint64] | None = None,
    *,
    writes: NDArray[np.bool_] | None = None,
) -> AccessRun:
    """Run accesses through a DRAM's scheduler, without a port.

    Parameters
    ----------
    dram : DramMemory
        It begins anew.
    addresses : uint64 (N,)
        Bytes; one access each, in this order, as soon as the scheduler's queue has room.
    clocks : uint64 (N,), optional
        First clock in which each may enter the queue, rising.
    writes : bool (N,), optional
        Which of them are writes, whose queue is another; none if absent.

    Raises
    ------
    ValueError
        Clocks or writes aren't as many as addresses.
    """
    addresses = np.ascontiguousarray(addresses, np.uint64)
    for name, values in (("clocks", clocks), ("writes", writes)):
        if values is not None and values.shape != addresses.shape:
            raise ValueError(
                f"{name} must be one for each of the {len(addresses)} accesses, not {values.shape}"
            )
    if clocks is not None:
        clocks = np.ascontiguousarray(clocks, np.uint64)
    if writes is not None:
        writes = np.ascontiguousarray(writes, np.bool_)
    struct, run = dram_struct(dram), _AccessRunStruct()
    commands = np.zeros(4 * len(addresses) + 1024, COMMAND_DTYPE)
    while True:
        issued = _library().ember_run_accesses(
            byref(struct),
            addresses.ctypes.data,
            None if writes is None else writes.ctypes.data,
            None if clocks is None else clocks.ctypes.data,
            len(addresses),
            byref(run),
            commands.ctypes.data,
            len(commands),
        )
        if issued <= len(commands):
            break
        commands = np.zeros(issued, COMMAND_DTYPE)
    return AccessRun(
        clocks=run.clocks,
        mean_latency_clocks=run.latency_clocks / max(len(addresses), 1),
        activates=run.activates,
        refreshes=run.refreshes,
        commands=commands[:issued],
    )
