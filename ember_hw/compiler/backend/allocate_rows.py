"""Rows of an access program: whole ones, parts, those of tables whose shape is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from ember_hw.compiler.backend.physical_names import PhysicalNames
from ember_hw.compiler.backend.tables import table_of
from ember_hw.compiler.dialects import dlc, slc, slcvec
from ember_hw.compiler.dialects.au import (
    AluOp,
    AluOperation,
    PushOp,
    RowOp,
    Slot,
    SlotAttr,
    SlotKind,
)
from ember_hw.compiler.dialects.au_program import element_bytes
from ember_hw.compiler.dialects.stream_types import (
    head_type,
    hints_of,
    memref_type,
    vector_shape,
)
from ember_hw.compiler.transforms.ir_facts import constant, refuse

#: More than the length of a row can be, a multiple of every bus, and less than a pitch can be.
_MOST_ROW_BYTES = 1 << 19


class RowNames(PhysicalNames):
    """
    Names of an access program, and the records of its rows.

    Parameters
    ----------
    function, sizes
        As for `PhysicalNames`.

    Attributes
    ----------
    records : list of Operation
        What was made so far, without arguments.
    unit_ops : list of NewTuOp
        The units so far.
    """

    def __init__(self, function: func.FuncOp, sizes: Mapping[str, Sequence[int]]) -> None:
        super().__init__(function, sizes)
        self.records: list[Operation] = []
        self.unit_ops: list[dlc.NewTuOp] = []

    def own_row(self, slot: Slot) -> Slot:
        """Return the row, or where it is pushed already another entry of the same."""
        is_pushed = slot in [
            value.data for push in self.records if isinstance(push, PushOp) for value in push.values
        ]
        if not is_pushed or slot.kind is not SlotKind.ROW:
            return slot
        (row,) = (r for r in self.records if isinstance(r, RowOp) and r.row.data == slot)
        again = row.clone()
        again.row = SlotAttr.row(self.next_row())
        self.records.append(again)
        return again.row.data

    def row_number(self, memory: SSAValue, indices: Sequence[SSAValue], user: Operation) -> Slot:
        """Return the number of a row counted over all dimensions but the last."""
        slots = [self.slot(index, user) for index in indices]
        number = slots[0] if slots else Slot(SlotKind.INTEGER, 0)
        for dimension, slot in enumerate(slots[1:], 1):
            # Each step multiplies on the unit of the indices so far and adds on that of the next.
            above = self.holder(indices[:dimension])
            extent = self.dimension(self.symbols[memory], dimension)
            product = self.computed_value(above, AluOperation.MUL, number, extent)
            holder = self.holder(indices[: dimension + 1])
            number = self.computed_value(holder, AluOperation.ADD, product, slot)
        return number

    def computed_value(self, holder: int, operation: AluOperation, lhs: Slot, rhs: Slot) -> Slot:
        """Add an ALU stream that no value of the IR is; its slot."""
        number = self.new_value()
        self.records.append(AluOp(number, holder, operation, lhs, rhs))
        return Slot(SlotKind.STREAM, number)

    def row(self, op: dlc.RowStreamOp) -> None:
        """Add a whole row of an argument."""
        base, element = (
            self.base(op.memref, op),
            cast("MemRefType[Attribute]", op.memref.type).element_type,
        )
        holder = self.holder(op.indices)
        index, length = self.row_number(op.memref, op.indices, op), self.slot(op.length, op)
        pitch = self.pitch(op.memref) if op.indices else _only_row(element)
        number = self.new_row(op.result, holder)
        self.records.append(
            RowOp(number, holder, base, index, pitch, length, element, **hints_of(op))
        )

    def table_row(self, op: dlc.RowStreamOp, view: slc.ViewOp) -> None:
        """Add a row of a table whose place and shape are values, in bytes."""
        table = table_of(view, op.length)
        holder = self.holder([*op.indices, *table.values])
        base, element = self.base(view.source, op), memref_type(view.source).element_type
        at, pitch, length = (
            self._scaled(value, factor, op)
            for value, factor in (table.place, table.pitch, table.length)
        )
        number = self.new_row(op.result, holder)
        self.records.append(
            RowOp(
                number, holder, base, self.slot(op.indices[0], op), pitch, length, element,
                table=at, rows=self.slot(table.rows, op), in_bytes=True,
                **hints_of(op),
            )
        )  # fmt: skip

    def _scaled(self, value: SSAValue, factor: int, user: Operation) -> Slot:
        """Return the slot of a value times a constant, by the ALU unless that is 1."""
        slot = self.slot(value, user)
        if factor == 1:
            return slot
        if slot.kind is SlotKind.INTEGER:
            return Slot(SlotKind.INTEGER, slot.number * factor)
        holder = self.holder([value])
        return self.computed_value(holder, AluOperation.MUL, slot, Slot(SlotKind.INTEGER, factor))

    def vector(self, op: slcvec.MemStreamOp) -> None:
        """Add a vector as a part of a row, clipped where its unit ends."""
        shape = vector_shape(head_type(op.result.type))
        assert shape is not None, "checked by the op"
        lanes, element = shape
        holder = self.holder(op.indices)
        index = self.row_number(op.memref, op.indices[:-1], op)
        offset = self.slot(op.indices[-1], op)
        if offset != Slot(SlotKind.UNIT, holder):
            rule = "the induction variable of the innermost unit"
            refuse(op, "last index of a vector stream", rule, offset)
        first = constant(self.unit_ops[holder].lower_bound)
        if first is None or first % lanes:
            rule = f"a constant multiple of {lanes}, where a part of a row can begin"
            refuse(op, "lower bound of a unit that reads vectors", rule, first)
        base = self.base(op.memref, op)
        pitch = self.pitch(op.memref) if len(op.indices) > 1 else _only_row(element)
        end = self.slot(self.unit_ops[holder].upper_bound, op)
        number = self.new_row(op.result, holder)
        length = Slot(SlotKind.INTEGER, lanes)
        self.records.append(
            RowOp(
                number, holder, base, index, pitch, length, element,
                offset=offset, clip=(offset, end), **hints_of(op),
            )
        )  # fmt: skip


def _only_row(element: Attribute) -> Slot:
    """Return a distance of rows that no row of a memory with one row exceeds."""
    return Slot(SlotKind.INTEGER, _MOST_ROW_BYTES // element_bytes(element))
