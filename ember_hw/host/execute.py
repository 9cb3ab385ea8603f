"""The execute side: pops the access unit's two queues in chunks and runs the callbacks' kernels.

A bundle holds the events of one innermost step. They happen in program order: begin and iterate of
each level from the outermost in, then end of each level from the innermost out. The rows of a
bundle follow on the row queue in the order of the row entries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.program import Callback, Operand
from ember_hw.config import VALUE_WIDTH_BITS, AcceleratorConfig
from ember_hw.errors import DeviceError, ProgramError
from ember_hw.host.kernels import KERNELS, Calls, Output, Update, Variables
from ember_hw.isa import Event, Microcode, Source, event_bit

_ELEMENT_BYTES = 4  # float32, the only row dtype
_INDEX_DTYPES = ("index", "i8", "i16", "i32", "i64")


@dataclass(frozen=True)
class Chunk:
    """What came out of both queues since the last chunk; the cut between chunks may fall anywhere.

    A backend may reuse the arrays for its next chunk.

    Attributes
    ----------
    events, scalars : uint32 (N,), uint32 (N, S)
        Event bits of each bundle, numbered as `isa.event_bit` says, and its scalars.
    row_beats : uint8 (T, bus_bytes)
        Beats of rows. A row starts a beat; what follows its end in its last beat is unspecified.
    row_last : bool or uint8 (T,)
        Whether each beat ends its row.
    row_cycles : uint64 (T,), optional
        Cycle in which each beat was handed over.
    """

    events: NDArray[np.uint32]
    scalars: NDArray[np.uint32]
    row_beats: NDArray[np.uint8]
    row_last: NDArray[Any]
    row_cycles: NDArray[np.uint64] | None = None


@dataclass(frozen=True)
class _RowEntry:
    """A row entry of the bound microcode."""

    index: int
    events: int
    length_bytes: int
    is_part: bool
    beats: int

    @property
    def columns(self) -> int:
        return self.length_bytes // _ELEMENT_BYTES


@dataclass(frozen=True)
class _Rows:
    """Beats of complete rows, and which row each bundle has of each entry."""

    elements: NDArray[np.float32]  # (T, elements of a beat)
    starts: NDArray[np.int64]  # first beat of each row
    beats: NDArray[np.int64]  # beats of each row
    numbers: Mapping[int, NDArray[np.int64]]  # by entry, by bundle: number of the row, if it has it


class ExecuteSide:
    """Runs the callbacks of one launch.

    Parameters
    ----------
    callbacks : sequence of Callback
        The program's.
    microcode : Microcode
        Bound: tells which rows come with which events.
    outputs : mapping of str to (int, int)
        Shapes of the program's outputs, by symbol.

    Raises
    ------
    ProgramError
        A callback has no kernel or one that this host doesn't know, or the callbacks and the
        microcode don't fit together.
    """

    def __init__(
        self,
        callbacks: Sequence[Callback],
        microcode: Microcode,
        outputs: Mapping[str, tuple[int, int]],
    ) -> None:
        self._config = microcode.config
        self._order = _events_in_order(self._config.traversal_units)
        self._entries = {entry.index: entry for entry in _row_entries(microcode)}
        self._callbacks = sorted(callbacks, key=self._rank)
        self._initial: dict[int, int] = {}
        self._updates: dict[int, list[Update]] = {}
        for callback in self._callbacks:
            self._check(callback, microcode)
        self._variables = Variables(self._initial)
        self._sent_as_scalars: set[str] = set()
        self._outputs = self._make_outputs(outputs)
        self._pending: Chunk | None = None
        self._is_done = False
        self.bundles = 0
        self.row_beats = 0
        self.rows = 0
        self.calls = {callback.id: 0 for callback in callbacks}

    @property
    def lookups(self) -> int:
        """Lookups that reached the outputs so far, in as many parts as the program sends."""
        return sum(output.calls // output.parts for output in self._outputs.values())

    @property
    def element_bytes(self) -> int:
        """Bytes of the table that came as scalars of bundles instead of rows (opt level 0)."""
        return _ELEMENT_BYTES * sum(self._outputs[s].calls for s in self._sent_as_scalars)

    def consume(self, chunk: Chunk) -> None:
        """Run all bundles whose rows have arrived; keep the rest for the next chunk.

        Raises
        ------
        DeviceError
            The queues don't hold what the microcode pushes.
        """
        if self._pending is not None:
            chunk = Chunk(
                np.concatenate((self._pending.events, chunk.events)),
                np.concatenate((self._pending.scalars, chunk.scalars)),
                np.concatenate((self._pending.row_beats, chunk.row_beats)),
                np.concatenate((self._pending.row_last, chunk.row_last)),
            )
            self._pending = None
        has_row = {i: (chunk.events & e.events) != 0 for i, e in self._entries.items()}
        rows_through = np.cumsum(
            np.sum(list(has_row.values()), axis=0, dtype=np.int64)
            if has_row
            else np.zeros(chunk.events.size, np.int64)
        )
        ends = np.flatnonzero(chunk.row_last)
        bundles = int(np.searchsorted(rows_through, ends.size, side="right"))
        rows = int(rows_through[bundles - 1]) if bundles else 0
        beats = int(ends[rows - 1]) + 1 if rows else 0
        if bundles:
            ends = ends[:rows]
            starts = np.concatenate(([0], ends[:-1] + 1)) if rows else ends
            number = np.concatenate(([0], rows_through[: bundles - 1]))
            numbers: dict[int, NDArray[np.int64]] = {}
            for i, present in has_row.items():
                numbers[i] = number
                number = number + present[:bundles]
            elements = np.ascontiguousarray(chunk.row_beats[:beats]).view(np.float32)
            self._run(
                chunk.events[:bundles],
                chunk.scalars[:bundles],
                _Rows(elements, starts, ends - starts + 1, numbers),
            )
        if bundles < chunk.events.size or beats < chunk.row_last.size:
            self._pending = Chunk(
                chunk.events[bundles:].copy(),
                chunk.scalars[bundles:].copy(),
                chunk.row_beats[beats:].copy(),
                chunk.row_last[beats:].copy(),
            )
        self.bundles += bundles
        self.rows += rows
        self.row_beats += beats

    def finish(self) -> dict[str, NDArray[np.float32]]:
        """Return the outputs by symbol, after the last chunk.

        Raises
        ------
        DeviceError
            The program didn't end, or a queue isn't empty.
        """
        if self._pending is not None:
            raise DeviceError(
                "queues must be empty at the end of a program, not hold "
                f"{self._pending.events.size} bundles and {self._pending.row_last.size} row beats"
            )
        if not self._is_done:
            raise DeviceError(
                f"the last of {self.bundles} bundles must end the outermost loop, and doesn't"
            )
        return {symbol: output.result() for symbol, output in self._outputs.items()}

    def _run(self, events: NDArray[np.uint32], scalars: NDArray[np.uint32], rows: _Rows) -> None:
        """Run all callbacks of some complete bundles."""
        if self._is_done:
            raise DeviceError("no bundle must follow the one that ends the outermost loop")
        root_end = 1 << event_bit(Event.END, 0, self._config)
        ended = np.flatnonzero(events & root_end)
        if ended.size and int(ended[0]) != events.size - 1:
            raise DeviceError("no bundle must follow the one that ends the outermost loop")
        self._is_done = bool(ended.size)

        tokens: dict[int, NDArray[np.int64]] = {}
        updates: list[tuple[NDArray[np.int64], Update]] = []
        for callback in self._callbacks:
            bit = event_bit(callback.event, callback.level, self._config)
            tokens[callback.id] = np.flatnonzero(events & (1 << bit))
            times = self._times(callback, tokens[callback.id])
            updates += [(times, update) for update in self._updates[callback.id]]
        self._variables.advance(updates)
        for callback in self._callbacks:
            kernel = callback.kernel
            mine = tokens[callback.id]
            self.calls[callback.id] += mine.size
            if kernel is None or mine.size == 0:
                continue
            operands = tuple(
                self._rows_of(self._entries[operand.index], mine, rows)
                if operand.kind == "row"
                else _scalars_of(operand, scalars[mine, operand.index])
                for operand in callback.operands
            )
            times = self._times(callback, mine)
            variables = {v: self._variables.at(v, times) for v in _variables_read(callback)}
            KERNELS[kernel.name](kernel.parameters, Calls(operands, variables, self._outputs))

    def _rows_of(
        self, entry: _RowEntry, tokens: NDArray[np.int64], rows: _Rows
    ) -> NDArray[np.float32]:
        """Return the rows of one entry for some bundles, float32 (M, n)."""
        numbers = rows.numbers[entry.index][tokens]
        beats = rows.beats[numbers]
        bad = (beats != entry.beats) if not entry.is_part else (beats > entry.beats)
        if bad.any():
            raise DeviceError(
                f"each row of row{entry.index} must be {entry.beats} beats on the row queue, "
                f"not {int(beats[bad.argmax()])}"
            )
        elements = rows.elements
        is_all = numbers.size == rows.starts.size
        if is_all and rows.starts.size * entry.beats == elements.shape[0]:
            wide = elements.reshape(numbers.size, -1)
        else:
            # A part that is cut short may have fewer beats: its padding may hold anything.
            first = rows.starts[numbers]
            picked = first[:, None] + np.arange(entry.beats)
            wide = elements[np.minimum(picked, elements.shape[0] - 1)].reshape(numbers.size, -1)
        return wide[:, : entry.columns]

    def _times(self, callback: Callback, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        return tokens * len(self._order) + self._rank(callback)

    def _rank(self, callback: Callback) -> int:
        return self._order.index((callback.event, callback.level))

    def _check(self, callback: Callback, microcode: Microcode) -> None:
        """Refuse a callback that can't run; note its variables."""
        kernel = callback.kernel
        if kernel is None or kernel.name not in KERNELS:
            raise ProgramError(
                f"kernel of callback {callback.id} must be one of {', '.join(KERNELS)}, "
                f"not {kernel and kernel.name!r}"
            )
        mask = 1 << event_bit(callback.event, callback.level, self._config)
        if not microcode.get("issue", "events") & mask:
            raise ProgramError(
                f"event of callback {callback.id} must be one that the microcode issues, "
                f"not {callback.event.name.lower()} of level {callback.level}"
            )
        for number, operand in enumerate(callback.operands):
            legal = ("f32",) if operand.kind == "row" else ("f32", *_INDEX_DTYPES)
            if operand.dtype not in legal:
                raise ProgramError(
                    f"operand {number} of callback {callback.id} must be of dtype "
                    f"{' or '.join(legal)}, not {operand.dtype!r}"
                )
            entry = self._entries.get(operand.index)
            if operand.kind == "row" and not (entry and entry.events & mask):
                raise ProgramError(
                    f"operand {number} of callback {callback.id} must be a row that comes with its "
                    f"event, not row{operand.index}"
                )
        updates: list[Update] = []
        parameters: Mapping[str, Any] = kernel.parameters
        for change in parameters["updates"]:
            is_set = "set" in change
            value = change["set" if is_set else "add"]
            updates.append(Update(change["variable"], value, is_set))
            self._initial[change["variable"]] = change["initial"]
        self._updates[callback.id] = updates
        for name in ("key", "column"):
            binding: Mapping[str, Any] | None = parameters.get(name)
            if binding and "variable" in binding:
                self._initial[binding["variable"]] = binding["initial"]

    def _make_outputs(self, shapes: Mapping[str, tuple[int, int]]) -> dict[str, Output]:
        outputs: dict[str, Output] = {}
        for callback in self._callbacks:
            parameters: Mapping[str, Any] = callback.kernel.parameters if callback.kernel else {}
            symbol = parameters.get("output")
            if symbol is None:
                continue
            if symbol not in shapes:
                raise ProgramError(
                    f"output of callback {callback.id} must be one of {', '.join(shapes)}, "
                    f"not {symbol!r}"
                )
            if symbol in outputs:
                raise ProgramError(f"output {symbol!r} must be written by one callback, not two")
            number: int = parameters["value"]
            value = callback.operands[number]
            columns = self._entries[value.index].columns if value.kind == "row" else 1
            if value.kind == "scalar":
                self._sent_as_scalars.add(symbol)
            outputs[symbol] = Output(symbol, *shapes[symbol], part_columns=columns)
        for symbol in shapes:
            if symbol not in outputs:
                raise ProgramError(f"output {symbol!r} must be written by a callback, and isn't")
        return outputs


def unpack_bundles(
    bundles: NDArray[np.uint8], config: AcceleratorConfig
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Take bundles apart as they come from the control queue.

    Parameters
    ----------
    bundles : uint8 (N, bundle_bytes)
        Event bits lowest, then the scalars without a gap, little-endian.
    config : AcceleratorConfig
        Gives their number.

    Returns
    -------
    events : uint32 (N,)
        Event bits.
    scalars : uint32 (N, bundle_scalars)
        Scalars.
    """
    count, width = bundles.shape[0], config.bundle_bytes + 8
    # One row to spare: NumPy refuses a view into an empty buffer, and a chunk may have no bundle.
    padded = np.zeros((count + 1, width), np.uint8)
    padded[:count, : config.bundle_bytes] = bundles

    def bits(first: int, number: int) -> NDArray[np.uint32]:
        words = np.ndarray((count,), "<u8", padded, first // 8, (width,))
        kept = (words >> np.uint64(first % 8)) & np.uint64((1 << number) - 1)
        return kept.astype(np.uint32)

    scalars = np.empty((count, config.bundle_scalars), np.uint32)
    for i in range(config.bundle_scalars):
        scalars[:, i] = bits(config.events + VALUE_WIDTH_BITS * i, VALUE_WIDTH_BITS)
    return bits(0, config.events), scalars


def _events_in_order(levels: int) -> list[tuple[Event, int]]:
    """Return the events of a bundle in program order."""
    inwards = [(event, k) for k in range(levels) for event in (Event.BEGIN, Event.ITERATE)]
    return inwards + [(Event.END, k) for k in reversed(range(levels))]


def _row_entries(microcode: Microcode) -> list[_RowEntry]:
    """Return the row entries that the microcode uses."""
    config = microcode.config
    entries: list[_RowEntry] = []
    for index in range(config.row_entries):
        record = microcode.records[f"row{index}"]
        if not record["events"]:
            continue
        if record["length_source"] != Source.IMMEDIATE or record["length"] % _ELEMENT_BYTES:
            raise ProgramError(
                f"length of row{index} must be an immediate multiple of {_ELEMENT_BYTES} bytes"
            )
        if record["events"] & ~microcode.get("issue", "events"):
            raise ProgramError(f"events of row{index} must be among those that the unit issues")
        length = record["length"]
        beats = -(-length // config.bus_bytes)
        is_part = bool(record["offset_enable"])
        entries.append(_RowEntry(index, record["events"], length, is_part, beats))
    return entries


def _scalars_of(operand: Operand, bits: NDArray[np.uint32]) -> NDArray[Any]:
    """Return scalars as float32 or int64 (M,)."""
    if operand.dtype == "f32":
        return bits.view(np.float32)
    return bits.view(np.int32).astype(np.int64)


def _variables_read(callback: Callback) -> set[int]:
    parameters: Mapping[str, Any] = callback.kernel.parameters if callback.kernel else {}
    bindings = [parameters.get("key"), parameters.get("column")]
    return {binding["variable"] for binding in bindings if binding and "variable" in binding}
