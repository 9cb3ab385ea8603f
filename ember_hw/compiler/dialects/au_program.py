"""An `au` program as plain data, for the assembler, the interpreters and reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import IntegerType, MemRefType
from xdsl.ir import Attribute

from ember_hw.compiler.dialects.au import (
    AluOp,
    AluOperation,
    ArgOp,
    Event,
    MemOp,
    NextOp,
    ProgramOp,
    PushOp,
    RowOp,
    Slot,
    SlotAttr,
    TuOp,
)
from ember_hw.compiler.dialects.quantized import QuantizedType

#: What the distance of a table from the base of its memory counts.
TABLE_UNIT_BYTES = 64


@dataclass(frozen=True)
class Argument:
    """
    A bound argument: its number, the host's symbol, the value's type.

    `is_request` tells whether each request carries the value.
    """

    number: int
    symbol: str
    type: Attribute
    is_request: bool = False

    @property
    def is_memory(self) -> bool:
        """Whether the register holds a base address."""
        return isinstance(self.type, MemRefType)


@dataclass(frozen=True)
class Unit:
    """
    A traversal unit.

    The exclusive end is the value of `upper`, plus `upper_offset` if that isn't None; `parent` is
    None for the root. A relay has one iteration and stands for no loop.
    """

    number: int
    parent: int | None
    lower: Slot
    upper: Slot
    upper_offset: int | None
    step: int
    is_relay: bool = False


@dataclass(frozen=True)
class MemoryStream:
    """
    A load of `a<base>[index * scale + offset + constant]`; absent, scale is 1 and offset 0.

    `queue` tells whether the input queue brings the lines.
    """

    number: int
    unit: int
    base: int
    index: Slot
    scale: Slot | None
    offset: Slot | None
    element_type: Attribute
    nontemporal: bool = False
    keep: bool = False
    queue: bool = False
    constant: int = 0


@dataclass(frozen=True)
class NextStream:
    """The value of memory stream `source` in the next iteration of the unit."""

    number: int
    unit: int
    source: int


@dataclass(frozen=True)
class AluStream:
    """An integer operation on two slots."""

    number: int
    unit: int
    operation: AluOperation
    lhs: Slot
    rhs: Slot


@dataclass(frozen=True)
class Row:
    """
    A row stream: `length` elements from `a<base>[index * pitch + offset]`.

    With `clip = (x, y)` a row has `min(length, y - x)` elements. `table`, unless None, is what is
    added to the base, in units of 64 bytes; `rows` is the number of rows, None that of the memory.
    With `in_bytes` pitch and length count bytes.
    """

    number: int
    unit: int
    base: int
    index: Slot
    pitch: Slot
    offset: Slot | None
    length: Slot
    clip: tuple[Slot, Slot] | None
    element_type: Attribute
    nontemporal: bool = False
    keep: bool = False
    table: Slot | None = None
    rows: Slot | None = None
    in_bytes: bool = False


@dataclass(frozen=True)
class Push:
    """Token `id` and the operands after it, pushed on an event of a unit."""

    unit: int
    event: Event
    id: int
    operands: tuple[Slot, ...]


Stream = MemoryStream | NextStream | AluStream
"""A stream of numbers."""


@dataclass(frozen=True)
class AccessProgram:
    """A program of the access unit; every tuple is in text order."""

    name: str
    target: str
    arguments: tuple[Argument, ...]
    units: tuple[Unit, ...]
    streams: tuple[Stream, ...]
    rows: tuple[Row, ...]
    pushes: tuple[Push, ...]

    def argument(self, symbol: str) -> Argument:
        """Return the argument of a symbol; a KeyError names the symbols there are."""
        for argument in self.arguments:
            if argument.symbol == symbol:
                return argument
        known = ", ".join(argument.symbol for argument in self.arguments) or "none"
        raise KeyError(f"symbol must be an argument of {self.name} ({known}), not {symbol!r}")


def element_bytes(element_type: Attribute) -> int:
    """Return the size in memory of an element type of `au`; `index` takes 8 bytes."""
    if isinstance(element_type, IntegerType):
        return cast(IntegerType[int], element_type).bitwidth // 8
    if isinstance(element_type, QuantizedType):
        return 1  # of its codes; a row has its scale and bias besides
    return {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "index": 8}[str(element_type)]


def read_program(program: ProgramOp) -> AccessProgram:
    """Return a verified `au.program` as plain data."""
    records = program.records
    return AccessProgram(
        name=program.sym_name.data,
        target=program.target.data,
        arguments=tuple(
            Argument(_number(op.argument), op.symbol.data, op.type, op.request is not None)
            for op in records
            if isinstance(op, ArgOp)
        ),
        units=tuple(_unit(op) for op in records if isinstance(op, TuOp)),
        streams=tuple(_stream(op) for op in records if isinstance(op, MemOp | NextOp | AluOp)),
        rows=tuple(_row(op) for op in records if isinstance(op, RowOp)),
        pushes=tuple(
            Push(
                _number(op.unit),
                op.event.data,
                op.id.value.data,
                tuple(value.data for value in op.values),
            )
            for op in records
            if isinstance(op, PushOp)
        ),
    )


def _number(name: SlotAttr) -> int:
    return name.data.number


def _slot(slot: SlotAttr | None) -> Slot | None:
    return None if slot is None else slot.data


def _unit(op: TuOp) -> Unit:
    return Unit(
        number=_number(op.unit),
        parent=None if op.under is None else _number(op.under),
        lower=op.lower.data,
        upper=op.upper.data,
        upper_offset=None if op.upper_offset is None else op.upper_offset.value.data,
        step=op.step.value.data,
        is_relay=op.relay is not None,
    )


def _stream(op: MemOp | NextOp | AluOp) -> Stream:
    number, unit = _number(op.stream), _number(op.unit)
    if isinstance(op, NextOp):
        return NextStream(number, unit, _number(op.source))
    if isinstance(op, AluOp):
        return AluStream(number, unit, op.operation.data, op.lhs.data, op.rhs.data)
    return MemoryStream(
        number=number,
        unit=unit,
        base=_number(op.base),
        index=op.index.data,
        scale=_slot(op.scale),
        offset=_slot(op.offset),
        element_type=op.element_type,
        nontemporal=op.nontemporal is not None,
        keep=op.keep is not None,
        queue=op.queue is not None,
        constant=0 if op.constant is None else op.constant.value.data,
    )


def _row(op: RowOp) -> Row:
    clip = None
    if op.clip_from is not None and op.clip_to is not None:
        clip = (op.clip_from.data, op.clip_to.data)
    return Row(
        number=_number(op.row),
        unit=_number(op.unit),
        base=_number(op.base),
        index=op.index.data,
        pitch=op.pitch.data,
        offset=_slot(op.offset),
        length=op.length.data,
        clip=clip,
        element_type=op.element_type,
        nontemporal=op.nontemporal is not None,
        keep=op.keep is not None,
        table=_slot(op.table),
        rows=_slot(op.rows),
        in_bytes=op.in_bytes is not None,
    )
