"""The Verilator model of the access unit, in batches: one call simulates until there is output."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref, c_uint32
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ember_hw.errors import ToolError

from .c_interface import (
    AccessStruct,
    OutputStruct,
    RunStruct,
    TraceStruct,
    load_library,
    shape_of,
    sink_struct,
)
from .counted_model import CountedModel
from .memory_library import memory_struct
from .options import IdealMemory, IdealSink, Memory, Sink
from .regions import check_region
from .results import (
    Access,
    AccessKind,
    ChannelCounters,
    Counters,
    RunResult,
    RunState,
    SimulationError,
    UnitOutput,
)

__all__ = [
    "Access",
    "AccessKind",
    "ChannelCounters",
    "Counters",
    "RunResult",
    "RunState",
    "SimulationError",
    "UnitOutput",
    "VerilatorModel",
]

_RESPONSES = ("OKAY", "EXOKAY", "SLVERR", "DECERR")


class VerilatorModel(CountedModel):
    """Simulated access units with their memories and sinks.

    Parameters
    ----------
    library : Path
        What `build_model` returned.
    memory, sink : optional
        The memory that answers reads, one for each channel; the sink that drains queues, one for
        each unit.
    seed : int
        Seed of registers and memories without an initial value, 1 to 2**31 - 1.
    bundle_capacity, row_capacity : int
        Bundles and row beats of a unit after which a run returns.
    record_commands : bool
        Keep the commands of DRAM models for `dram_commands`.

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
        record_commands: bool = False,
    ) -> None:
        if not 0 < seed < 1 << 31:
            raise ValueError(f"seed must be 1 to 2**31 - 1, not {seed!r}")
        for name, value in (("bundle_capacity", bundle_capacity), ("row_capacity", row_capacity)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, not {value!r}")
        self._library = load_library(library)
        self.shape = shape_of(self._library)
        self._regions: list[tuple[int, NDArray[Any]]] = []
        self._record_commands = record_commands
        self._outputs = [
            UnitOutput(
                bundles=np.zeros((bundle_capacity, self.shape.bundle_bytes), np.uint8),
                row_beats=np.zeros((row_capacity, self.shape.bus_bytes), np.uint8),
                row_last=np.zeros(row_capacity, np.bool_),
                row_cycles=np.zeros(row_capacity, np.uint64),
            )
            for _ in range(self.shape.units)
        ]
        self._run_outputs = (OutputStruct * self.shape.units)(
            *(
                OutputStruct(
                    bundle_data=output.bundles.ctypes.data,
                    bundle_capacity=bundle_capacity,
                    row_data=output.row_beats.ctypes.data,
                    row_capacity=row_capacity,
                    row_last=output.row_last.ctypes.data,
                    row_cycles=output.row_cycles.ctypes.data,
                )
                for output in self._outputs
            )
        )
        self._run = RunStruct(outputs=self._run_outputs)
        self._inputs: dict[int, tuple[NDArray[np.uint32], NDArray[np.uint8]]] = {}
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

    def set_memory(self, memory: Memory, *, channel: int | None = None) -> None:
        """Answer reads with this memory from now on.

        Parameters
        ----------
        memory : memory model
            Each channel gets one of its own.
        channel : int, optional
            Only this one, counted as `ModelShape.channels` lists them: memory ports, then index
            ports.

        Raises
        ------
        ValueError
            Reads are outstanding.
        """
        struct = memory_struct(memory, record_commands=self._record_commands)
        for number in range(len(self.shape.channels)) if channel is None else (channel,):
            self._check_channel(number)
            result = self._library.ember_set_memory(self._open(), number, byref(struct))
            if self._checked(result):
                raise ValueError(
                    "the memory must be set while nothing is outstanding; reset the model first"
                )
        self.memory = memory

    def set_sink(self, sink: Sink, *, unit: int | None = None) -> None:
        """Drain the queues with this sink from now on, or those of one unit."""
        struct = sink_struct(sink)
        for number in range(self.shape.units) if unit is None else (unit,):
            self._check_unit(number)
            self._checked(self._library.ember_set_sink(self._open(), number, byref(struct)))
        self.sink = sink

    def set_accesses(self, accesses: Sequence[Access]) -> None:
        """Let the next run make these register accesses, one after the other, while units run.

        A run with a list ends when the list is done, and doesn't look at `irq`.
        """
        array = (AccessStruct * len(accesses))(
            *(AccessStruct(a.kind.value, a.address, a.value, a.mask) for a in accesses)
        )
        self._library.ember_set_accesses(self._open(), array, len(accesses))

    @property
    def accesses_left(self) -> int:
        """Accesses of the list that weren't made, because they were abandoned or not yet due."""
        return int(self._library.ember_accesses_left(self._open()))

    def set_input(
        self, destinations: NDArray[np.uint32], lines: NDArray[np.uint8], *, unit: int = 0
    ) -> None:
        """Let the index stream carry these lines from now on, in this order, as it is taken.

        Whenever the unit resets its queues, after a fault too, the stream loses what is left.

        Parameters
        ----------
        destinations : uint32 (N,)
            TDEST of each line.
        lines : uint8 (N, 64)
            Their bytes.
        unit : int
            Whose stream it is.

        Raises
        ------
        ValueError
            The model has no index stream, or the arrays don't fit together.
        """
        self._check_unit(unit)
        if not self.shape.input_bytes:
            raise ValueError("an input must go to a model with an index stream, and this has none")
        if lines.shape != (len(destinations), 64):
            raise ValueError(
                f"lines must be 64 bytes for each of the {len(destinations)} destinations, "
                f"not {lines.shape}"
            )
        kept = (
            np.ascontiguousarray(destinations, np.uint32),
            np.ascontiguousarray(lines, np.uint8),
        )
        self._inputs[unit] = kept
        self._library.ember_set_input(
            self._open(), unit, kept[0].ctypes.data, kept[1].ctypes.data, len(destinations)
        )

    def input_lines_left(self, unit: int = 0) -> int:
        """Return how many lines of the input were not taken whole yet."""
        self._check_unit(unit)
        return int(self._library.ember_input_lines_left(self._open(), unit))

    def map_region(self, array: NDArray[Any], base: int, *, is_writable: bool = False) -> None:
        """Place an array's bytes in the address space; they are read as the simulation goes on.

        Parameters
        ----------
        array : C-contiguous, any dtype and shape
            Referred to, not copied, and kept alive until it is unmapped.
        base : int
            Byte address, a multiple of the bus. A read answers DECERR, beat by beat, unless one
            region holds all bytes of the beat; so does a burst of writes, if it is so for one of
            its beats.
        is_writable : bool
            Whether the unit may write there. A burst of writes that touches another region answers
            SLVERR, and none of it is written.

        Raises
        ------
        ValueError
            The array isn't contiguous or must be written and can't, or the region is misplaced or
            overlaps another.
        """
        check_region(array, base, self.shape, self._regions, is_writable=is_writable)
        if array.nbytes == 0:
            return
        self._library.ember_map_region(
            self._open(), base, array.ctypes.data, array.nbytes, is_writable
        )
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

    def run(
        self,
        *,
        max_idle_cycles: int = 100_000,
        max_cycles: int = (1 << 64) - 1,
        awaited: Sequence[int] | None = None,
    ) -> RunResult:
        """Simulate until a buffer is full, the program has ended, or nothing moves any more.

        Running again goes on in the very next cycle: how often a caller empties the buffers
        changes no timing.

        Parameters
        ----------
        max_idle_cycles : int
            Cycles without any handshake after which the run is given up.
        max_cycles : int
            Cycles after which it returns in any case.
        awaited : sequence of int, optional
            Units whose end is awaited; all if absent.

        Raises
        ------
        SimulationError
            The hardware broke a rule of its interfaces or an assertion in it failed.
        """
        units = range(self.shape.units) if awaited is None else awaited
        self._run.awaited = sum(1 << unit for unit in set(units))
        self._run.max_idle_cycles = max_idle_cycles
        self._run.max_cycles = max_cycles
        state = self._checked(self._library.ember_run(self._open(), byref(self._run)))
        outputs = (
            UnitOutput(
                bundles=output.bundles[: run.bundles],
                row_beats=output.row_beats[: run.row_beats],
                row_last=output.row_last[: run.row_beats],
                row_cycles=output.row_cycles[: run.row_beats],
            )
            for output, run in zip(self._outputs, self._run_outputs, strict=True)
        )
        return RunResult(RunState(state), tuple(outputs), self._run.cycles)

    def open_trace(
        self, path: Path, *, first: int = 0, end: int | None = None, by_rows: bool = False
    ) -> None:
        """Write a window to a VCD file, or an FST file if the model was built for that.

        Parameters
        ----------
        path : Path
            The file. It is complete after `close_trace`, `close` or a SimulationError.
        first, end : int
            The window [first, end) of cycles, counted from the opening of the model as
            `RunResult.row_cycles` is. Without an end it doesn't end.
        by_rows : bool
            Count rows from now on instead: the window goes from the cycle after row `first` is
            asked for to that in which the row before `end` has been delivered. The first unit's,
            and it must have probes.

        Raises
        ------
        ToolError
            The model was built without tracing, or the file can't be written.
        """
        window = TraceStruct(
            path=str(path).encode(),
            first=first,
            end=(1 << 64) - 1 if end is None else end,
            by_rows=by_rows,
        )
        if not self._checked(self._library.ember_open_trace(self._open(), byref(window))):
            raise ToolError(
                "a trace needs a model built with trace and a path that can be written, "
                f"not {str(path)!r}"
            )

    @property
    def traced_cycles(self) -> int:
        """Cycles that the latest trace holds so far."""
        return int(self._library.ember_traced_cycles(self._open()))

    def close_trace(self) -> None:
        """Finish the trace, if one is open."""
        self._library.ember_close_trace(self._open())

    @staticmethod
    def _check_response(access: str, address: int, response: int) -> None:
        if response:
            raise SimulationError(
                f"a {access} register {address:#x} must answer OKAY, not {_RESPONSES[response]}"
            )
