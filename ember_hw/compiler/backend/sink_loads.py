"""Loads go to the unit below where that shortens the chain of reads that wait for each other.

A unit hands an iteration down when all its loads are there, and so do the units below, one after
the other. Loads of a unit whose values are read further down alone wait as well beside those of the
unit below: the first row comes sooner by a read. They are then made once for each iteration there;
the address stays the same, and a line that a stream has is not read again.
"""

from __future__ import annotations

from ember_hw import isa
from ember_hw.compiler.dialects.au import Event, MemOp, ProgramOp, Slot, SlotAttr, SlotKind, TuOp
from ember_hw.compiler.dialects.au_program import (
    AccessProgram,
    AluStream,
    MemoryStream,
    NextStream,
    Row,
    Unit,
    read_program,
)
from ember_hw.config import AcceleratorConfig


def sink_loads(program: ProgramOp, config: AcceleratorConfig) -> ProgramOp:
    """
    Move loads that nothing on their unit or right below it reads to the unit below.

    Parameters
    ----------
    program : ProgramOp
        A verified program without relays.
    config : AcceleratorConfig
        Gives the streams of a unit, and how far apart their elements may be.

    Returns
    -------
    ProgramOp
        The program itself if no unit can lose all its loads. Else a copy, names as before, in which
        every unit that can has lost them: the unit below has loads of its own, and room.
    """
    source = read_program(program)
    moves: dict[int, int] = {}
    for unit, child in zip(source.units, source.units[1:], strict=False):
        loads = _loads(source, unit)
        below = _loads(source, child)
        has_room = len(loads) + len(below) <= config.streams_per_unit
        if below and has_room and all(_is_free(load, child, source, config) for load in loads):
            moves |= {load.number: child.number for load in loads}
    if not moves:
        return program
    moved = program.clone()
    units = {op.unit.data.number: op for op in moved.body.block.ops if isinstance(op, TuOp)}
    for op in list(moved.body.block.ops):
        if isinstance(op, MemOp) and op.stream.data.number in moves:
            number = moves[op.stream.data.number]
            op.detach()
            op.properties["unit"] = SlotAttr.unit(number)
            moved.body.block.insert_op_after(op, units[number])
    return moved


def _loads(source: AccessProgram, unit: Unit) -> list[MemoryStream]:
    return [
        stream
        for stream in source.streams
        if isinstance(stream, MemoryStream) and stream.unit == unit.number
    ]


def _is_free(
    load: MemoryStream, child: Unit, source: AccessProgram, config: AcceleratorConfig
) -> bool:
    """Whether a load can be made on the unit below its own."""
    most = isa.layouts(config)["unit0.stream0"].field("outer_pitch").most
    scale = load.scale or Slot(SlotKind.INTEGER, 1)
    if load.queue or load.index.kind is not SlotKind.UNIT:
        return False
    if scale.kind is not SlotKind.INTEGER or not 0 <= scale.number <= most:
        return False
    if load.offset is not None and load.offset.kind is not SlotKind.INTEGER:
        return False
    return not _is_read(Slot(SlotKind.STREAM, load.number), load, child, source)


def _is_read(value: Slot, load: MemoryStream, child: Unit, source: AccessProgram) -> bool:
    """Whether a value is read on its unit, or on the way into or out of the unit below."""
    near = (load.unit, child.number)
    if value in (child.lower, child.upper):
        return True
    for stream in source.streams:
        match stream:
            case NextStream():
                slots = [Slot(SlotKind.STREAM, stream.source)]
            case AluStream():
                slots = [stream.lhs, stream.rhs]
            case MemoryStream():
                slots = [stream.index, stream.scale, stream.offset]
        if stream.unit in near and value in slots:
            return True
    rows: dict[int, Row] = {row.number: row for row in source.rows}
    levels = {unit.number: level for level, unit in enumerate(source.units)}
    for push in source.pushes:
        is_inside = levels[push.unit] > levels[child.number]
        if is_inside or (push.unit == child.number and push.event is Event.ITERATE):
            continue
        pushed = {slot for slot in push.operands if slot.kind is not SlotKind.ROW}
        for slot in push.operands:
            if slot.kind is SlotKind.ROW:
                pushed |= _slots(rows[slot.number])
        if value in pushed:
            return True
    return False


def _slots(row: Row) -> set[Slot]:
    slots = (row.index, row.pitch, row.offset, row.length, row.table, row.rows, *(row.clip or ()))
    return {slot for slot in slots if slot is not None}
