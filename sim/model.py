"""The Verilator model of the access unit, in batches: one call simulates until there is output."""

from __future__ import annotations

from ctypes import byref, c_uint32, c_uint64
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ember_hw.errors import EmberError, ToolError

from .c_interface import (
    FAILED,
    CountersStruct,
    RunStruct,
    load_library,
    memory_struct,
    shape_of,
    sink_struct,
)
from .options import IdealMemory, IdealSink, Memory, Sink

_RESPONSES = ("OKAY", "EXOKAY", "SLVERR", "DECERR")


class SimulationError(EmberError):
    """The simulated hardware broke a rule of its interfaces, or one of its own assertions."""


class RunState(Enum):
    """Why a run returned."""

    OUTPUT_FULL = 0
    """A buffer is full. Simulated time stands still until the next run."""
    PROGRAM_ENDED = 1
    """The unit raised `irq`, no read is outstanding and no output waits."""
    IDLE_TIMEOUT = 2
    """No channel had a handshake for `max_idle_cycles`."""


@dataclass(frozen=True)
class RunResult:
    """What one run brought.

    Attributes
    ----------
    state : RunState
        Why it returned.
    bundles : uint8 (n, bundle_bytes)
        View of the bundles taken; event bits lowest.
    row_beats : uint8 (m, bus_bytes)
        View of the row beats taken, written whole: a row's bytes are the first of its beats.
    row_last : bool (m,)
        Which beats end a row.
    row_cycles : uint64 (m,)
        Cycle of each beat's handshake.
    cycles : int
        Cycles that passed.

    The views belong to the model and change with the next run; copy what must stay.
    """

    state: RunState
    bundles: NDArray[np.uint8]
    row_beats: NDArray[np.uint8]
    row_last: NDArray[np.bool_]
    row_cycles: NDArray[np.uint64]
    cycles: int


@dataclass(frozen=True)
class Counters:
    """What the harness counted since the model was opened or the counters were cleared.

    Attributes
    ----------
    cycles : int
        Clock cycles.
    start_to_done_cycles : int
        From the latest register write before `irq` rose (the start command) to that rise.
    read_requests, read_beats, read_bytes, read_errors : int
        AXI4 bursts asked for, beats answered, their bytes, and beats that weren't OKAY.
    peak_outstanding_reads : int
        Most bursts in flight at once.
    bundles, row_beats, row_bytes : int
        Handshakes of the two streams, and the bytes that TKEEP marked.
    read_beats_by_id : uint64 (2**id_bits,)
        Beats answered, by AXI4 ID.
    """

    cycles: int
    start_to_done_cycles: int
    read_requests: int
    read_beats: int
    read_bytes: int
    read_errors: int
    peak_outstanding_reads: int
    bundles: int
    row_beats: int
    row_bytes: int
    read_beats_by_id: NDArray[np.uint64]


class VerilatorModel:
    """One simulated access unit with its memory and its sink.

    Parameters
    ----------
    library : Path
        What `build_model` returned.
    memory, sink : optional
        The memory that answers its reads, the sink that drains its queues.
    seed : int
        Seed of registers and memories without an initial value, 1 to 2**31 - 1.
    bundle_capacity, row_capacity : int
        Bundles and row beats after which a run returns.

    Examples
    --------
    ::

        with VerilatorModel(library, memory=IdealMemory(latency_cycles=30)) as model:
            model.map_region(table, base=0x1_0000)
            model.write_register(CONTROL, START)
            while (result := model.run()).state is RunState.OUTPUT_FULL:
                consume(result)
    """

    def __init__(
        self,
        library: Path,
        *,
        memory: Memory | None = None,
        sink: Sink | None = None,
        seed: int = 1,
        bundle_capacity: int = 1 << 16,
        row_capacity: int = 1 << 16,
    ) -> None:
        if not 0 < seed < 1 << 31:
            raise ValueError(f"seed must be 1 to 2**31 - 1, not {seed!r}")
        for name, value in (("bundle_capacity", bundle_capacity), ("row_capacity", row_capacity)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, not {value!r}")
        self._library = load_library(library)
        self.shape = shape_of(self._library)
        self._regions: list[tuple[int, NDArray[Any]]] = []
        self._bundles = np.zeros((bundle_capacity, self.shape.bundle_bytes), np.uint8)
        self._row_beats = np.zeros((row_capacity, self.shape.bus_bytes), np.uint8)
        self._row_last = np.zeros(row_capacity, np.bool_)
        self._row_cycles = np.zeros(row_capacity, np.uint64)
        self._run = RunStruct(
            bundle_data=self._bundles.ctypes.data,
            bundle_capacity=bundle_capacity,
            row_data=self._row_beats.ctypes.data,
            row_capacity=row_capacity,
            row_last=self._row_last.ctypes.data,
            row_cycles=self._row_cycles.ctypes.data,
        )
        self._handle: int | None = self._library.ember_create(seed)
        try:
            self.set_memory(memory or IdealMemory())
            self.set_sink(sink or IdealSink())
        except Exception:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        """Free the model if `close` was forgotten."""
        if getattr(self, "_handle", None) is not None:
            self.close()

    def close(self) -> None:
        """Free the model and finish its trace; afterwards every other call raises ValueError."""
        if self._handle is not None:
            self._library.ember_destroy(self._handle)
            self._handle = None
            self._regions.clear()

    def reset(self, cycles: int = 8) -> None:
        """Hold `rst` for that many cycles; reads in flight and untaken output are lost.

        Mapped regions and counters stay; the memory and the sink begin anew with their seeds.
        """
        self._checked(self._library.ember_reset(self._open(), cycles))

    def set_memory(self, memory: Memory) -> None:
        """Answer reads with this memory from now on.

        Raises
        ------
        ValueError
            Reads are outstanding.
        """
        struct = memory_struct(memory)
        if self._checked(self._library.ember_set_memory(self._open(), byref(struct))):
            raise ValueError(
                "the memory must be set while no reads are outstanding; reset the model first"
            )
        self.memory = memory

    def set_sink(self, sink: Sink) -> None:
        """Drain the queues with this sink from now on."""
        struct = sink_struct(sink)
        self._checked(self._library.ember_set_sink(self._open(), byref(struct)))
        self.sink = sink

    def map_region(self, array: NDArray[Any], base: int) -> None:
        """Place an array's bytes in the address space; they are read as the simulation goes on.

        Parameters
        ----------
        array : C-contiguous, any dtype and shape
            Referred to, not copied, and kept alive until it is unmapped.
        base : int
            Byte address, a multiple of the bus. A read answers DECERR, beat by beat, unless one
            region holds all bytes of the beat.

        Raises
        ------
        ValueError
            The array isn't contiguous, or the region is misplaced or overlaps another.
        """
        if not array.flags.c_contiguous:
            raise ValueError("a mapped array must be C-contiguous, not strided; copy it first")
        if base % self.shape.bus_bytes:
            raise ValueError(
                f"base must be a multiple of the bus's {self.shape.bus_bytes} bytes, not {base:#x}"
            )
        if base < 0 or base + array.nbytes > 1 << self.shape.address_bits:
            raise ValueError(
                f"a region must lie below 2**{self.shape.address_bits}, "
                f"not at {base:#x} with {array.nbytes} bytes"
            )
        for other_base, other in self._regions:
            if base < other_base + other.nbytes and other_base < base + array.nbytes:
                raise ValueError(
                    f"regions must not overlap, but {base:#x} + {array.nbytes} "
                    f"meets {other_base:#x} + {other.nbytes}"
                )
        if array.nbytes == 0:
            return
        self._library.ember_map_region(self._open(), base, array.ctypes.data, array.nbytes)
        self._regions.append((base, array))

    def unmap_regions(self) -> None:
        """Empty the address space. No program may be running: it would read on from it."""
        self._library.ember_unmap_regions(self._open())
        self._regions.clear()

    def write_register(self, address: int, value: int) -> None:
        """Write a 32-bit register over AXI4-Lite; time passes, the queues stand still.

        Raises
        ------
        SimulationError
            The response isn't OKAY, or there is none within 10,000 cycles.
        """
        response = self._library.ember_write_register(self._open(), address, value)
        self._check_response("write to", address, self._checked(response))

    def read_register(self, address: int) -> int:
        """Read a 32-bit register over AXI4-Lite; time passes, the queues stand still.

        Raises
        ------
        SimulationError
            The response isn't OKAY, or there is none within 10,000 cycles.
        """
        value = c_uint32()
        response = self._library.ember_read_register(self._open(), address, byref(value))
        self._check_response("read of", address, self._checked(response))
        return value.value

    def run(self, *, max_idle_cycles: int = 100_000) -> RunResult:
        """Simulate until a buffer is full, the program has ended, or nothing moves any more.

        Running again goes on in the very next cycle: how often a caller empties the buffers
        changes no timing.

        Raises
        ------
        SimulationError
            The hardware broke a rule of its interfaces or an assertion in it failed.
        """
        self._run.max_idle_cycles = max_idle_cycles
        state = self._checked(self._library.ember_run(self._open(), byref(self._run)))
        bundles, row_beats = self._run.bundles, self._run.row_beats
        return RunResult(
            state=RunState(state),
            bundles=self._bundles[:bundles],
            row_beats=self._row_beats[:row_beats],
            row_last=self._row_last[:row_beats],
            row_cycles=self._row_cycles[:row_beats],
            cycles=self._run.cycles,
        )

    def counters(self) -> Counters:
        """Return what was counted since the model was opened or `clear_counters` was called."""
        struct = CountersStruct()
        by_id = (c_uint64 * (1 << self.shape.id_bits))()
        self._library.ember_counters(self._open(), byref(struct), by_id)
        values = {field[0]: getattr(struct, field[0]) for field in CountersStruct._fields_}
        return Counters(**values, read_beats_by_id=np.array(by_id, np.uint64))

    def clear_counters(self) -> None:
        """Count from zero again."""
        self._library.ember_clear_counters(self._open())

    def open_trace(self, path: Path, *, first_cycle: int = 0, end_cycle: int | None = None) -> None:
        """Write the cycles [first_cycle, end_cycle) to a VCD file.

        Cycles count from the opening of the model, as `RunResult.row_cycles` does. The file
        is complete after `close_trace`, `close` or a SimulationError.

        Raises
        ------
        ToolError
            The model was built without tracing, or the file can't be written.
        """
        end = (1 << 64) - 1 if end_cycle is None else end_cycle
        opened = self._library.ember_open_trace(self._open(), str(path).encode(), first_cycle, end)
        if not self._checked(opened):
            raise ToolError(
                "a trace needs a model built with trace=True and a path that can be written, "
                f"not {str(path)!r}"
            )

    def close_trace(self) -> None:
        """Finish the trace, if one is open."""
        self._library.ember_close_trace(self._open())

    def _open(self) -> int:
        if self._handle is None:
            raise ValueError("the model must be open, and has been closed")
        return self._handle

    def _checked(self, result: int) -> int:
        if result == FAILED:
            raise SimulationError(self._library.ember_message(self._open()).decode())
        return result

    @staticmethod
    def _check_response(access: str, address: int, response: int) -> None:
        if response:
            raise SimulationError(
                f"a {access} register {address:#x} must answer OKAY, not {_RESPONSES[response]}"
            )
