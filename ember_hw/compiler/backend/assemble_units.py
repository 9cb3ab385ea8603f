"""Units and their streams become the records `unitN` and `unitN.streamM`."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, IntegerType

from ember_hw import isa
from ember_hw.compiler.backend.assemble_draft import Draft
from ember_hw.compiler.backend.exports import over_limit, refuse
from ember_hw.compiler.dialects.au import AluOperation, Slot, SlotKind
from ember_hw.compiler.dialects.au_program import (
    AluStream,
    MemoryStream,
    NextStream,
    Unit,
    element_bytes,
)
from ember_hw.config import VALUE_WIDTH_BITS

_OPERATIONS = {
    AluOperation.ADD: isa.AluOperation.ADD,
    AluOperation.SUB: isa.AluOperation.SUB,
    AluOperation.MUL: isa.AluOperation.MUL,
    AluOperation.SHL: isa.AluOperation.MUL,
}
#: What takes the place of an operation when its operands change places; the others stay.
_SWAPPED = {isa.AluOperation.SUB: isa.AluOperation.RSUB}

_ONE = Slot(SlotKind.INTEGER, 1)
_FORM = "the unit's own value, plus at most one value from above times a constant, plus a constant"


def encode_unit(draft: Draft, unit: Unit, level: int) -> None:
    """Encode a unit with its ALU, its exports and its memory streams.

    Raises
    ------
    AssemblyError
        The unit or one of its streams asks for what no record can say.
    """
    record, places = f"unit{level}", draft.places
    draft.set(unit, record, "enable", 1)
    draft.set(unit, record, "step", unit.step)
    _bound(draft, unit, record, "lower", unit.lower)
    if unit.upper_offset is None:
        _bound(draft, unit, record, "upper", unit.upper)
    else:
        draft.set(unit, record, "upper_source", isa.BoundSource.LOWER_PLUS)
        draft.set(unit, record, "upper_immediate", unit.upper_offset)
    for number, selector in places.selectors(level).items():
        draft.set(unit, record, f"export{number}", selector)
    computed = places.alu[level]
    if isinstance(computed, AluStream):
        _alu(draft, computed, level)
    elif isinstance(computed, NextStream):
        draft.set(computed, record, "pair", 1)
    for number, stream in enumerate(places.memory[level]):
        _memory(draft, stream, f"{record}.stream{number}", level)


def _bound(draft: Draft, unit: Unit, record: str, which: str, slot: Slot) -> None:
    if draft.places.is_value(slot):
        draft.set(unit, record, f"{which}_source", isa.BoundSource.SLOT)
        draft.set(unit, record, f"{which}_export", draft.places.numbers[slot])
    else:
        draft.set_constant(unit, record, f"{which}_immediate", slot)


def _alu(draft: Draft, stream: AluStream, level: int) -> None:
    record, places, lhs, rhs = f"unit{level}", draft.places, stream.lhs, stream.rhs
    operation = _OPERATIONS[stream.operation]
    if stream.operation is AluOperation.SHL:
        rhs = _factor(stream)
    if not _is_own(draft, lhs, level) and stream.operation is not AluOperation.SHL:
        lhs, rhs = rhs, lhs
        operation = _SWAPPED.get(operation, operation)
    if not _is_own(draft, lhs, level):
        raise refuse(
            stream,
            f"an operand must be t{stream.unit} or a stream of it, not {stream.lhs} and "
            f"{stream.rhs}",
        )
    draft.set(stream, record, "alu_operation", operation)
    draft.set(stream, record, "alu_a_slot", places.slot(lhs, level))
    if places.is_value(rhs):
        draft.set(stream, record, "alu_b_source", isa.Source.SLOT)
        draft.set(stream, record, "alu_b_slot", places.slot(rhs, level))
    else:
        draft.set_constant(stream, record, "alu_immediate", rhs)


def _is_own(draft: Draft, slot: Slot, level: int) -> bool:
    """Tell whether a slot names a value of the unit itself, the only ones that operand a can be."""
    return draft.places.is_value(slot) and draft.places.owners[slot][0] == level


def _factor(stream: AluStream) -> Slot:
    """Return what a shift multiplies by; the access unit has no shifter."""
    distance, most = stream.rhs, VALUE_WIDTH_BITS - 1
    if distance.kind is not SlotKind.INTEGER or not 0 <= distance.number <= most:
        raise refuse(stream, f"distance of shl must be an integer from 0 to {most}, not {distance}")
    # The low 32 bits of a product are those of a product with the signed factor.
    factor = 1 << distance.number
    return Slot(SlotKind.INTEGER, factor - (factor >> most << VALUE_WIDTH_BITS))


def _memory(draft: Draft, stream: MemoryStream, record: str, level: int) -> None:
    symbol = draft.symbols[stream.base]
    is_integer = isinstance(stream.element_type, IntegerType | IndexType)
    draft.set(stream, record, "enable", 1)
    draft.set(stream, record, "size", element_bytes(stream.element_type).bit_length() - 1)
    draft.set(stream, record, "signed", int(is_integer))
    draft.patch(record, "elements", f"{symbol}.elements")
    if not stream.queue:
        draft.patch(record, "base", symbol)
    elif draft.config.input_queue:
        draft.set(stream, record, "source", isa.StreamSource.QUEUE)
    else:
        raise over_limit(stream, "the input queue", draft.config, "input_queue")
    draft.set_hint(stream, record)
    _address(draft, stream, record, level)


def _address(draft: Draft, stream: MemoryStream, record: str, level: int) -> None:
    """Encode ``index * scale + offset`` as own value, a value from above, constant."""
    places = draft.places
    products = [(stream.index, stream.scale or _ONE)]
    if stream.offset is not None:
        products.append((stream.offset, _ONE))
    first, argument = stream.constant, False
    for left, right in products:
        if places.is_value(right):
            left, right = right, left
        if places.is_value(right):
            raise refuse(stream, f"{left} must be scaled by a constant, not by {right}")
        if places.is_value(left):
            _term(draft, stream, record, level, left, right)
            continue
        if left.kind is SlotKind.ARGUMENT:
            left, right = right, left
        if left.kind is SlotKind.ARGUMENT:
            raise refuse(stream, f"{right} must be scaled by an integer, not by {left}")
        if right.kind is SlotKind.INTEGER:
            first += left.number * right.number
        elif argument:
            raise refuse(stream, f"constant of an address must hold 1 argument, not also {right}")
        else:
            argument = True
            draft.patch(record, "first", draft.symbols[right.number], left.number)
    if not argument:
        draft.set(stream, record, "first", first)
    elif first:
        patch = draft.patches.pop()
        draft.patch(record, "first", patch.symbol, patch.scale, first)


def _term(
    draft: Draft, stream: MemoryStream, record: str, level: int, value: Slot, scale: Slot
) -> None:
    """Add a value times a constant to the element number."""
    if draft.places.owners[value][0] != level:
        field = "outer_enable"
    elif value.kind is SlotKind.UNIT:
        field = "induction"
    else:
        raise refuse(
            stream, f"{value} must be of a unit above to select an address, not of the same"
        )
    is_taken = draft.records[record].get(field, 0)
    if is_taken or (field == "induction" and scale != _ONE):
        raise refuse(stream, f"address must be {_FORM}")
    draft.set(stream, record, field, 1)
    if field == "outer_enable":
        draft.set(stream, record, "outer_export", draft.places.numbers[value])
        draft.set_constant(stream, record, "outer_pitch", scale)
