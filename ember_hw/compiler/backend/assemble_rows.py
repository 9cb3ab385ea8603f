"""Rows and pushes become the records `rowN` and `issue`, and callbacks of the execute side."""

from __future__ import annotations

from dataclasses import replace

from ember_hw import isa
from ember_hw.compiler.backend.assemble_draft import EVENTS, Draft
from ember_hw.compiler.backend.exports import over_limit, refuse
from ember_hw.compiler.dialects.au import Slot, SlotKind
from ember_hw.compiler.dialects.au_program import (
    MemoryStream,
    NextStream,
    Push,
    Row,
    element_bytes,
)
from ember_hw.compiler.dialects.quantized import QuantizedType
from ember_hw.compiler.program import Callback, Operand
from ember_hw.compiler.quantized_rows import RowFormat


def encode_rows(draft: Draft) -> None:
    """Encode every row, in text order.

    Raises
    ------
    AssemblyError
        There are too many, one isn't pushed once, or asks for what no record can say.
    """
    events = _row_events(draft)
    for number, row in enumerate(draft.program.rows):
        if number >= draft.config.row_entries:
            raise over_limit(row, f"row entry {number}", draft.config, "row_entries")
        _row(draft, row, f"row{number}", events[row.number])


def encode_pushes(draft: Draft) -> tuple[Callback, ...]:
    """Encode what a bundle holds; return the callbacks by id.

    Raises
    ------
    AssemblyError
        An operand is a constant, or an id is given twice.
    """
    entries = {row.number: position for position, row in enumerate(draft.program.rows)}
    callbacks: list[Callback] = []
    told = 0
    for push in draft.program.pushes:
        name = f"au.push t{push.unit} {push.event.value}"
        told |= draft.mask(push)
        operands: list[Operand] = []
        for slot in push.operands:
            if slot.kind is SlotKind.ROW:
                operands.append(Operand("row", entries[slot.number], *_memory_of(draft, slot)))
                continue
            if not draft.places.is_value(slot):
                raise refuse(name, f"operand must be a value or row, not {slot}")
            operands.append(Operand("scalar", draft.places.numbers[slot], *_memory_of(draft, slot)))
        level, event = draft.places.levels[push.unit], EVENTS[push.event]
        callbacks.append(Callback(push.id, level, event, tuple(operands)))
    draft.set("au.push", "issue", "events", told)
    ids = [callback.id for callback in callbacks]
    for callback_id in ids:
        if ids.count(callback_id) > 1:
            raise refuse("au.push", f"id must be given once, not {callback_id} again")
    return tuple(sorted(callbacks, key=lambda callback: callback.id))


def _row_events(draft: Draft) -> dict[int, int]:
    """Return the event mask of each row; every row is pushed once."""
    pushed: dict[int, list[Push]] = {row.number: [] for row in draft.program.rows}
    for push in draft.program.pushes:
        for operand in push.operands:
            if operand.kind is SlotKind.ROW:
                pushed[operand.number].append(push)
    for row in draft.program.rows:
        if len(pushed[row.number]) != 1:
            raise refuse(row, f"must be pushed once, not {len(pushed[row.number])} times")
    return {number: draft.mask(pushes[0]) for number, pushes in pushed.items()}


def _row(draft: Draft, row: Row, record: str, events: int) -> None:
    places, symbol = draft.places, draft.symbols[row.base]
    if isinstance(row.element_type, QuantizedType) and not row.in_bytes:
        row = _in_bytes(row, row.element_type.format)
    unit_bytes = 1 if row.in_bytes else element_bytes(row.element_type)
    if not places.is_value(row.index):
        raise refuse(row, f"row number must be a value, not {row.index}")
    draft.set(row, record, "events", events)
    draft.set(row, record, "index_export", places.numbers[row.index])
    draft.patch(record, "base", symbol)
    draft.patch(record, "region_bytes", f"{symbol}.bytes")
    if row.table is not None:
        if not places.is_value(row.table):
            raise refuse(row, f"distance of a table must be a value, not {row.table}")
        draft.set(row, record, "base_source", isa.Source.SLOT)
        draft.set(row, record, "base_export", places.numbers[row.table])
    if row.rows is None:
        draft.patch(record, "rows", f"{symbol}.rows")
    else:
        _shape(draft, row, record, "rows", row.rows, 1)
    for field, slot in (("pitch", row.pitch), ("length", row.length)):
        if places.is_value(slot) and unit_bytes > 1:
            raise refuse(
                row,
                f"{field} must be an integer or argument, not {slot}: only of bytes may it be a "
                "value",
            )
        _shape(draft, row, record, field, slot, unit_bytes)
    draft.set_hint(row, record)
    if row.offset is not None or row.clip is not None:
        _part(draft, row, record, unit_bytes)


def _in_bytes(row: Row, form: RowFormat) -> Row:
    """Return a row of codes, scale and bias as a row of bytes, whose distance is in bytes, too."""
    length = row.length
    if length.kind is not SlotKind.INTEGER or row.offset is not None:
        found = "a part of one" if row.offset is not None else f"of length {length}"
        raise refuse(row, f"quantised row must be whole and of a constant length, not {found}")
    return replace(row, length=Slot(SlotKind.INTEGER, form.row_bytes(length.number)), in_bytes=True)


def _shape(draft: Draft, row: Row, record: str, field: str, slot: Slot, scale: int) -> None:
    """Set a field of a table's shape, which may be a value."""
    if draft.places.is_value(slot):
        draft.set(row, record, f"{field}_source", isa.Source.SLOT)
        draft.set(row, record, f"{field}_export", draft.places.numbers[slot])
    else:
        draft.set_constant(row, record, field, slot, scale)


def _part(draft: Draft, row: Row, record: str, size: int) -> None:
    """Encode a part of a row: ``+ tN`` with ``clip tN to end``."""
    offset, clip, places = row.offset, row.clip, draft.places
    if offset is None or offset.kind is not SlotKind.UNIT:
        raise refuse(row, f"offset of a part must be a unit's value, not {offset or 'absent'}")
    if clip is None or clip[0] != offset or places.is_value(clip[1]):
        found = "absent" if clip is None else f"{clip[0]} to {clip[1]}"
        raise refuse(row, f"clip must be {offset} to an integer or argument, not {found}")
    unit = draft.program.units[places.levels[offset.number]]
    bus_bytes = draft.config.bus_bytes
    parts = {f"lower bound of t{unit.number}": unit.lower, "length": row.length}
    parts[f"step of t{unit.number}"] = Slot(SlotKind.INTEGER, unit.step)
    for what, slot in parts.items():
        if slot.kind is not SlotKind.INTEGER or slot.number * size % bus_bytes:
            raise refuse(
                row,
                f"{what} must be a multiple of {bus_bytes // size} elements, the bus width of "
                f"config {draft.config.name!r}, not {slot}",
            )
    draft.set(row, record, "offset_enable", 1)
    draft.set(row, record, "offset_export", places.numbers[offset])
    draft.set(row, record, "offset_size", size.bit_length() - 1)
    draft.set_constant(row, record, "clip", clip[1], size)


def _memory_of(draft: Draft, slot: Slot) -> tuple[str, str]:
    """Return element type and memory of what a slot holds, `index` where the unit computes it."""
    if slot.kind is SlotKind.ROW:
        rows = {row.number: row for row in draft.program.rows}
        row = rows[slot.number]
        element = row.element_type
        name = element.format.name if isinstance(element, QuantizedType) else str(element)
        return name, draft.symbols[row.base]
    streams = {stream.number: stream for stream in draft.program.streams}
    stream = streams.get(slot.number) if slot.kind is SlotKind.STREAM else None
    if isinstance(stream, NextStream):
        stream = streams[stream.source]
    if isinstance(stream, MemoryStream):
        return str(stream.element_type), draft.symbols[stream.base]
    return "index", ""
