"""
Meaning of `au`: the access side of a program, run against the compute loop of its dlc module.

Physical names take the place of SSA values, and memory is addressed in elements from a base, so
this interpreter shares nothing with the one of dlc's access side but the queues.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, SupportsIndex

import numpy as np
from xdsl.dialects.builtin import IndexType, MemRefType, ModuleOp
from xdsl.ir import Attribute

from ember_hw.compiler.backend.extract_values import allocations
from ember_hw.compiler.dialects.au import AluOperation, Event, ProgramOp, Slot, SlotKind
from ember_hw.compiler.dialects.au_program import (
    TABLE_UNIT_BYTES,
    AluStream,
    Argument,
    MemoryStream,
    NextStream,
    Row,
    Stream,
    read_program,
)
from ember_hw.compiler.dialects.quantized import QuantizedType
from ember_hw.compiler.dialects.stream_types import row_type
from ember_hw.compiler.interpreters.access import row_entries, row_view
from ember_hw.compiler.interpreters.dlc import DlcMachine, receive_exactly, row_as_vector
from ember_hw.compiler.interpreters.function import (
    InterpreterResult,
    find_function_of,
    run_function,
)
from ember_hw.compiler.interpreters.queues import DONE, Entry, Push, Queue, Schedule
from ember_hw.compiler.interpreters.values import (
    Array,
    array_of,
    as_memref,
    as_vector,
    element,
    from_array,
    is_integer,
)
from ember_hw.compiler.quantized_rows import RowFormat
from ember_hw.errors import CheckError

__all__ = ["run_au"]

_ALU: dict[AluOperation, Callable[[int, int], int]] = {
    AluOperation.ADD: operator.add,
    AluOperation.SUB: operator.sub,
    AluOperation.MUL: operator.mul,
    AluOperation.SHL: lambda a, b: a << b,
}


def run_au(
    programs: Sequence[ProgramOp],
    compute: ModuleOp,
    function: str,
    arguments: Sequence[Any],
    environment: Mapping[str, Any],
    *,
    schedule: Schedule = Schedule.AHEAD,
    vector_length: int | None = None,
) -> InterpreterResult:
    """
    Run access-unit programs in place of the access regions of a dlc function.

    Parameters
    ----------
    programs : sequence of ProgramOp
        One per compute loop of the function, in order.
    compute : ModuleOp
        Holds the dlc function, whose own access regions don't run.
    function, arguments
        As for `interpret`.
    environment : Mapping of str
        The value of each symbol: an array for memory, an integer otherwise. `tab.pitch`, the
        distance of two rows in elements, follows from the array unless it is given.
    schedule : Schedule
        How the two sides take turns.
    vector_length : int, optional
        Elements of one data-queue entry of a row; None takes the widest vector of the execute
        program, or 1 without vectors.

    Returns
    -------
    InterpreterResult
        Returned values and counts of queue entries.

    Raises
    ------
    KeyError
        If a symbol has no value.
    TypeError
        If a symbol's value isn't of its argument's type.
    IndexError
        If an address lies outside its memory, or in the gap between two padded rows.
    CheckError
        If the program breaks a rule of its level.
    """
    op = find_function_of(compute, function, len(programs))
    allocated = frozenset(allocations(op).values())
    sources = [_AuProgram(program, environment, allocated).start for program in programs]
    machine = DlcMachine(schedule, vector_length, access=sources, receive=_receive)
    return run_function(op, arguments, machine)


def _receive(type_: Attribute, token: int, entries: list[Entry]) -> Any:
    """
    Return the popped value.

    A slot knows no integer widths, so a popped integer may be of any; and the vector of a case is
    a row of at most as many elements, whose missing lanes are 0.
    """
    pushed = entries[0].type
    if is_integer(pushed) and is_integer(type_):
        return entries[0].value
    vector = as_vector(type_)
    if vector is None or pushed != row_type(vector.element_type):
        return receive_exactly(type_, token, entries)
    row = np.concatenate([entry.value for entry in entries])
    (lanes,) = vector.get_shape()
    return row_as_vector(row, lanes, token)


class _AuProgram:
    """
    A program with its symbols bound.

    Parameters
    ----------
    op : ProgramOp
        The program.
    environment : Mapping of str
        Values of the symbols.
    allocated : set of str
        Symbols of memory that the function allocates, which has its values when the program starts.
    """

    def __init__(
        self, op: ProgramOp, environment: Mapping[str, Any], allocated: frozenset[str]
    ) -> None:
        program = read_program(op)
        self._units = {unit.number: unit for unit in program.units}
        self._below = {unit.parent: unit.number for unit in program.units}
        self._streams: dict[int, list[Stream]] = {unit: [] for unit in self._units}
        self._memory_streams: dict[int, MemoryStream] = {}
        for stream in program.streams:
            self._streams[stream.unit].append(stream)
            if isinstance(stream, MemoryStream):
                self._memory_streams[stream.number] = stream
        self._rows = {row.number: row for row in program.rows}
        self._stream_types: dict[int, Attribute] = {
            stream.number: stream.element_type
            for stream in program.streams
            if isinstance(stream, MemoryStream)
        }
        for stream in program.streams:
            if isinstance(stream, NextStream):
                self._check_next(stream)
                self._stream_types[stream.number] = self._stream_types[stream.source]
        self._pushes = {(push.unit, push.event): push for push in program.pushes}
        self._memories: dict[int, Array] = {}
        self._values: dict[Slot, Any] = {}
        self._late: list[Argument] = []
        for argument in program.arguments:
            if argument.symbol.partition(".")[0] in allocated:
                self._late.append(argument)
            else:
                self._bind(argument, environment)

    def _bind(self, argument: Argument, environment: Mapping[str, Any]) -> None:
        value = _symbol(environment, argument.symbol)
        if (memref := as_memref(argument.type)) is not None:
            self._memories[argument.number] = _memory(argument.symbol, memref, value)
        elif isinstance(value, SupportsIndex):
            self._values[Slot(SlotKind.ARGUMENT, argument.number)] = operator.index(value)
        else:
            raise TypeError(f"symbol {argument.symbol!r} must be an integer, not {value!r}")

    def _check_next(self, stream: NextStream) -> None:
        """Raise if the source's next value would need the next value of another stream."""
        source = self._memory_streams[stream.source]
        siblings = {s.number for s in self._streams[stream.unit]}
        for slot in (source.index, source.scale, source.offset):
            if slot is not None and slot.kind is SlotKind.STREAM and slot.number in siblings:
                raise CheckError(
                    f"source of au.next s{stream.number} must depend on no other stream of "
                    f"t{stream.unit}, not on {slot}"
                )

    def start(self, allocated: Mapping[str, Array], entry_elements: int) -> Iterator[Push]:
        """Walk the units; the access agent."""
        for argument in self._late:
            self._bind(argument, allocated)
        yield from self._walk(self._below[None], self._values.copy(), entry_elements)
        yield Queue.CONTROL, DONE

    def _walk(self, number: int, values: dict[Slot, Any], width: int) -> Iterator[Push]:
        unit = self._units[number]
        this = Slot(SlotKind.UNIT, number)
        yield from self._push(number, Event.BEGIN, values, width)
        lower = _read(unit.lower, values)
        upper = _read(unit.upper, values) + (unit.upper_offset or 0)
        for value in range(lower, upper, unit.step):
            values[this] = value
            for stream in self._streams[number]:
                values[Slot(SlotKind.STREAM, stream.number)] = self._head(stream, values)
            yield from self._push(number, Event.ITERATE, values, width)
            if number in self._below:
                yield from self._walk(self._below[number], values, width)
        yield from self._push(number, Event.END, values, width)

    def _head(self, stream: Stream, values: dict[Slot, Any]) -> Any:
        if isinstance(stream, AluStream):
            return _ALU[stream.operation](_read(stream.lhs, values), _read(stream.rhs, values))
        if isinstance(stream, NextStream):
            this = Slot(SlotKind.UNIT, stream.unit)
            later = {**values, this: values[this] + self._units[stream.unit].step}
            return self._head(self._memory_streams[stream.source], later)
        scale = 1 if stream.scale is None else _read(stream.scale, values)
        offset = 0 if stream.offset is None else _read(stream.offset, values)
        memory = self._memories[stream.base]
        element_number = _read(stream.index, values) * scale + offset + stream.constant
        position = _position(memory, element_number)
        loaded = memory[element(memory, position, f"au.mem s{stream.number}")]
        return from_array(stream.element_type)(loaded)

    def _row(self, row: Row, values: dict[Slot, Any]) -> Array:
        length = _read(row.length, values)
        if row.clip is not None:
            start, end = (_read(slot, values) for slot in row.clip)
            length = min(length, end - start)
        offset = 0 if row.offset is None else _read(row.offset, values)
        memory, name = self._memories[row.base], f"au.row r{row.number}"
        index, pitch = _read(row.index, values), _read(row.pitch, values)
        form = row.element_type.format if isinstance(row.element_type, QuantizedType) else None
        if row.in_bytes:
            codes = form.elements(length) if form else _elements(memory, length, name)
            pitch, length = _elements(memory, pitch, name, form), codes
        rows = None if row.rows is None else _read(row.rows, values)
        if rows is not None and not 0 <= index < rows:
            raise IndexError(f"{name}: index must be from 0 to {rows - 1}, not {index}")
        if row.table is not None:
            place = TABLE_UNIT_BYTES * _read(row.table, values)
            offset += _elements(memory, place, name, form)
        return row_view(memory, _position(memory, index * pitch + offset), length, name)

    def _push(self, unit: int, event: Event, values: dict[Slot, Any], width: int) -> Iterator[Push]:
        push = self._pushes.get((unit, event))
        if push is None:
            return
        yield Queue.CONTROL, push.id
        for slot in push.operands:
            if slot.kind is SlotKind.ROW:
                row = self._rows[slot.number]
                yield from row_entries(row_type(row.element_type), self._row(row, values), width)
            else:
                is_stream = slot.kind is SlotKind.STREAM
                type_ = self._stream_types.get(slot.number) if is_stream else None
                yield Queue.DATA, Entry(type_ or IndexType(), _read(slot, values))


def _symbol(environment: Mapping[str, Any], symbol: str) -> Any:
    """Return a symbol's value; those of `tab.pitch`, `tab.rows`, `tab.dim1` follow from `tab`."""
    if symbol in environment:
        return environment[symbol]
    base, _, field = symbol.rpartition(".")
    if base in environment:
        memory: Array = environment[base]
        extents = {f"dim{number}": extent for number, extent in enumerate(memory.shape)}
        derived = {"pitch": memory.strides[0] // memory.itemsize, "rows": memory.shape[0]}
        if field in (known := {**derived, **extents}):
            return known[field]
    known = ", ".join(environment) or "none"
    raise KeyError(f"symbol must be one of the environment ({known}), not {symbol!r}")


def _memory(symbol: str, type_: MemRefType[Attribute], value: Any) -> Array:
    """Return the array behind a base address; the elements of a row must touch."""
    array = array_of(f"symbol {symbol!r}", type_, value)
    if array.size and array.strides[-1] != array.itemsize:
        raise ValueError(
            f"row elements of symbol {symbol!r} must be {array.itemsize} bytes apart, "
            f"not {array.strides[-1]}"
        )
    return array


def _elements(memory: Array, count_bytes: int, name: str, form: RowFormat | None = None) -> int:
    """Return bytes as a number of elements, of quantised rows as if all of them were codes."""
    if form is not None:
        return count_bytes * form.codes_per_byte
    if count_bytes % memory.itemsize:
        raise CheckError(
            f"{name}: bytes must be a multiple of {memory.itemsize}, an element, not {count_bytes}"
        )
    return count_bytes // memory.itemsize


def _position(memory: Array, offset: int) -> tuple[int, ...]:
    """Return the position of an element counted from the base; it may lie outside."""
    rest, position = offset, list[int]()
    for stride in memory.strides:
        distance = max(stride // memory.itemsize, 1)
        position.append(rest // distance)
        rest %= distance
    return tuple(position)


def _read(slot: Slot, values: Mapping[Slot, Any]) -> Any:
    """Return the number a slot stands for."""
    return slot.number if slot.kind is SlotKind.INTEGER else values[slot]
