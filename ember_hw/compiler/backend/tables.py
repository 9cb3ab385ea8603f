"""Tables whose place and shape are loaded, in the units of the access unit."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from ember_hw.compiler.dialects import slc, slcvec
from ember_hw.compiler.dialects.au_program import TABLE_UNIT_BYTES, element_bytes
from ember_hw.compiler.dialects.quantized import QuantizedType
from ember_hw.compiler.dialects.stream_types import memref_type
from ember_hw.compiler.quantized_rows import RowFormat
from ember_hw.compiler.transforms.ir_facts import constant, refuse, strip_stream


@dataclass(frozen=True)
class Table:
    """
    Where a table lies and what its rows are, each a stream or host value times a constant.

    Parameters
    ----------
    place : (SSAValue, int)
        Distance from the memory's beginning in units of 64 bytes.
    rows : SSAValue
        Number of rows.
    pitch, length : (SSAValue, int)
        Distance and length of rows in bytes.
    """

    place: tuple[SSAValue, int]
    rows: SSAValue
    pitch: tuple[SSAValue, int]
    length: tuple[SSAValue, int]

    @property
    def values(self) -> tuple[SSAValue, ...]:
        """What the access unit must have to read a row."""
        return (self.place[0], self.rows, self.pitch[0], self.length[0])


def check_memory(op: slc.MemStreamOp | slcvec.MemStreamOp) -> None:
    """
    Refuse a stream of a table's elements or parts of rows.

    Raises
    ------
    CompileError
        The memory is a view: the access unit checks the rows of such a table where it reads a whole
        one, and nowhere else.
    """
    if isinstance(op.memref.owner, slc.ViewOp):
        rule = "read by whole rows (opt_level 2 or 3), where its number of rows is checked"
        refuse(op, "table whose shape is loaded", rule, "by elements")


def table_of(view: slc.ViewOp, length: SSAValue) -> Table:
    """
    Return the table of a view, and the rows of a stream in it.

    The access unit counts a table's place in units of 64 bytes and shapes in bytes, IR in elements.
    Descriptors may hold either: a quotient of bytes by the size of an element is those bytes, a
    product of 64-byte units and the elements of one is those units. Elements take an ALU.

    Raises
    ------
    CompileError
        Nothing shows that the table begins at a multiple of 64 bytes.
    """
    element = memref_type(view.source).element_type
    size = element_bytes(element)
    form = element.format if isinstance(element, QuantizedType) else None
    elements = TABLE_UNIT_BYTES // size * (form.codes_per_byte if form else 1)
    alu = view.base.owner
    place: tuple[SSAValue, int] | None = None
    if isinstance(alu, slc.AluStreamOp) and alu.alu_op.data is slc.AluKind.MUL:
        for value, other in ((alu.lhs, alu.rhs), (alu.rhs, alu.lhs)):
            factor = constant(other)
            if factor is not None and factor % elements == 0:
                place = value, factor // elements
    if place is None:
        rule = f"a product with a multiple of {elements}, the elements of {TABLE_UNIT_BYTES} bytes"
        refuse(view, "place of a table", rule, "another value")
    if form is not None:
        pitch, row = _packed(view, view.pitch, form), _row(view, length, form)
        return Table(place, view.rows, (pitch, 1), (row, 1))
    return Table(place, view.rows, _bytes(view.pitch, size), _bytes(length, size))


def _bytes(count: SSAValue, size: int) -> tuple[SSAValue, int]:
    """Return a number of elements as bytes."""
    alu = strip_stream(count).owner
    if isinstance(alu, slc.AluStreamOp) and alu.alu_op.data is slc.AluKind.DIV:
        if constant(alu.rhs) == size:
            return alu.lhs, 1
    return count, size


def _row(view: slc.ViewOp, length: SSAValue, form: RowFormat) -> SSAValue:
    """Return the bytes of a quantised row from its elements: what scale and bias were taken from.

    Raises
    ------
    CompileError
        The elements are another value.
    """
    codes = strip_stream(_packed(view, length, form)).owner
    if isinstance(codes, slc.AluStreamOp) and codes.alu_op.data is slc.AluKind.SUB:
        if constant(codes.rhs) == form.extra_bytes:
            return codes.lhs
    rule = f"its bytes less the {form.extra_bytes} of scale and bias"
    refuse(view, "length of a quantised row of a table", rule, "another value")


def _packed(view: slc.ViewOp, count: SSAValue, form: RowFormat) -> SSAValue:
    """Return a number of codes as the bytes that hold them."""
    if form.codes_per_byte == 1:
        return count
    alu = strip_stream(count).owner
    if isinstance(alu, slc.AluStreamOp) and alu.alu_op.data is slc.AluKind.MUL:
        for value, other in ((alu.lhs, alu.rhs), (alu.rhs, alu.lhs)):
            if constant(other) == form.codes_per_byte:
                return value
    rule = f"a product of bytes and the {form.codes_per_byte} codes in one"
    refuse(view, "count of codes", rule, "another value")
