"""The streams of an `au` program: loads, next values, integer operations and rows."""

from __future__ import annotations

from typing_extensions import override
from xdsl.dialects.builtin import I64, IntegerAttr, UnitAttr, i64
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, SpacedOpaqueSyntaxAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.str_enum import StrEnum

from ember_hw.compiler.dialects.au_slots import (
    ROW_ELEMENT_TYPES,
    Slot,
    SlotAttr,
    SlotKind,
    address_text,
    flag_attr,
    flags_text,
    optional_slot,
    parse_address,
    parse_flags,
    parse_name,
    parse_owner,
    parse_slot,
    verify_element,
    verify_hint,
    verify_kind,
    verify_value,
)
from ember_hw.compiler.dialects.quantized import QuantizedType
from ember_hw.compiler.dialects.stream_types import reject


class AluOperation(StrEnum):
    """What a unit's ALU computes; `shl` shifts left, by an integer."""

    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    SHL = "shl"


@irdl_attr_definition
class AluOperationAttr(EnumAttribute[AluOperation], SpacedOpaqueSyntaxAttribute):
    """Operation of an ALU record. Text: `#au<alu_op add>`."""

    name = "au.alu_op"


@irdl_op_definition
class MemOp(IRDLOperation):
    """
    A stream that loads one element per iteration: `base[index * scale + offset]`, in elements.

    ```au
    au.mem s1 on t0 = a0[t0 * 1 + 1] : index {nontemporal}
    ```

    Integers are sign-extended to the slot's width. An access unit adds up the own value of the unit
    (`tM`, scale 1), one value from above times an integer or argument, and constants, of which one
    may stand behind the offset; an element outside the memory is a fault. With `{queue}` the lines
    that hold the elements come from the input queue, one after the other, each request's from a new
    line on. The hints `nontemporal` and `keep` tell a memory hierarchy whether the lines will be
    read again soon.

    ```au
    au.mem s2 on t1 = a1[t1 + a6] : i64 {queue}
    ```
    """

    name = "au.mem"

    stream = prop_def(SlotAttr)
    """The stream, `sN`."""
    unit = prop_def(SlotAttr)
    """The unit it belongs to."""
    base = prop_def(SlotAttr)
    """The memory, an argument."""
    index = prop_def(SlotAttr)
    """First factor of the index."""
    scale = opt_prop_def(SlotAttr)
    """Second factor; absent means 1."""
    offset = opt_prop_def(SlotAttr)
    """What is added; absent means 0."""
    constant = opt_prop_def(IntegerAttr[I64])
    """What is added to an offset; absent means 0."""
    element_type = prop_def(Attribute)
    """Type of the memory's elements."""
    nontemporal = opt_prop_def(UnitAttr)
    """Present if the data isn't expected to be read again soon."""
    keep = opt_prop_def(UnitAttr)
    """Present if the data is expected to be read again soon."""
    queue = opt_prop_def(UnitAttr)
    """Present if the lines come from the input queue."""

    def __init__(
        self,
        stream: int,
        unit: int,
        base: int,
        index: Slot,
        element_type: Attribute,
        *,
        scale: Slot | None = None,
        offset: Slot | None = None,
        constant: int = 0,
        nontemporal: bool = False,
        keep: bool = False,
        queue: bool = False,
    ) -> None:
        super().__init__(
            properties={
                "stream": SlotAttr.stream(stream),
                "unit": SlotAttr.unit(unit),
                "base": SlotAttr.argument(base),
                "index": SlotAttr(index),
                "scale": optional_slot(scale),
                "offset": optional_slot(offset),
                "constant": IntegerAttr(constant, i64) if constant else None,
                "element_type": element_type,
                "nontemporal": flag_attr(nontemporal),
                "keep": flag_attr(keep),
                "queue": flag_attr(queue),
            }
        )

    @property
    def heading(self) -> str:
        """How messages name the record."""
        return f"au.mem {self.stream.data} on {self.unit.data}"

    @override
    def verify_(self) -> None:
        verify_kind("name of a stream", self.stream, SlotKind.STREAM)
        verify_kind("unit of a stream", self.unit, SlotKind.UNIT)
        verify_kind("base of an address", self.base, SlotKind.ARGUMENT)
        for what, slot in (("index", self.index), ("scale", self.scale), ("offset", self.offset)):
            verify_value(f"{what} of an address", slot)
        if self.constant is not None and self.offset is None:
            reject("constant of an address", "one behind an offset", self.constant.value.data)
        verify_element(self.element_type)
        verify_hint(self.nontemporal, self.keep)

    @override
    @classmethod
    def parse(cls, parser: Parser) -> MemOp:
        stream = parse_name(parser, SlotKind.STREAM).number
        unit = parse_owner(parser)
        base, index, scale, offset, constant = parse_address(parser)
        parser.parse_punctuation(":")
        element_type = parser.parse_type()
        flags = parse_flags(parser, "nontemporal", "keep", "queue")
        return cls(
            stream,
            unit,
            base,
            index,
            element_type,
            scale=scale,
            offset=offset,
            constant=constant,
            nontemporal="nontemporal" in flags,
            keep="keep" in flags,
            queue="queue" in flags,
        )

    @override
    def print(self, printer: Printer) -> None:
        constant = 0 if self.constant is None else self.constant.value.data
        address = address_text(self.base, self.index, self.scale, self.offset, constant)
        printer.print_string(f" {self.stream.data} on {self.unit.data} = {address} : ")
        printer.print_attribute(self.element_type)
        printer.print_string(
            flags_text(nontemporal=self.nontemporal, keep=self.keep, queue=self.queue)
        )


@irdl_op_definition
class NextOp(IRDLOperation):
    """
    The value that a memory stream of the unit has in the unit's next iteration.

    ```au
    au.next s1 on t0 = s0
    ```

    One load serves both: this is how `offsets[b]` and `offsets[b + 1]` become one stream.
    """

    name = "au.next"

    stream = prop_def(SlotAttr)
    """The stream, `sN`."""
    unit = prop_def(SlotAttr)
    """The unit it belongs to."""
    source = prop_def(SlotAttr)
    """The memory stream of the same unit."""

    def __init__(self, stream: int, unit: int, source: int) -> None:
        super().__init__(
            properties={
                "stream": SlotAttr.stream(stream),
                "unit": SlotAttr.unit(unit),
                "source": SlotAttr.stream(source),
            }
        )

    @property
    def heading(self) -> str:
        """How messages name the record."""
        return f"au.next {self.stream.data} on {self.unit.data}"

    @override
    def verify_(self) -> None:
        verify_kind("name of a stream", self.stream, SlotKind.STREAM)
        verify_kind("unit of a stream", self.unit, SlotKind.UNIT)
        verify_kind("source", self.source, SlotKind.STREAM)

    @override
    @classmethod
    def parse(cls, parser: Parser) -> NextOp:
        stream = parse_name(parser, SlotKind.STREAM).number
        unit = parse_owner(parser)
        return cls(stream, unit, parse_name(parser, SlotKind.STREAM).number)

    @override
    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.stream.data} on {self.unit.data} = {self.source.data}")


@irdl_op_definition
class AluOp(IRDLOperation):
    """
    A stream of an integer operation on two slots.

    ```au
    au.alu s3 on t0 = add t0, 1
    ```
    """

    name = "au.alu"

    stream = prop_def(SlotAttr)
    """The stream, `sN`."""
    unit = prop_def(SlotAttr)
    """The unit it belongs to."""
    operation = prop_def(AluOperationAttr)
    """The operation."""
    lhs = prop_def(SlotAttr)
    """Left operand."""
    rhs = prop_def(SlotAttr)
    """Right operand."""

    def __init__(
        self, stream: int, unit: int, operation: AluOperation, lhs: Slot, rhs: Slot
    ) -> None:
        super().__init__(
            properties={
                "stream": SlotAttr.stream(stream),
                "unit": SlotAttr.unit(unit),
                "operation": AluOperationAttr(operation),
                "lhs": SlotAttr(lhs),
                "rhs": SlotAttr(rhs),
            }
        )

    @property
    def heading(self) -> str:
        """How messages name the record."""
        return f"au.alu {self.stream.data} on {self.unit.data}"

    @override
    def verify_(self) -> None:
        verify_kind("name of a stream", self.stream, SlotKind.STREAM)
        verify_kind("unit of a stream", self.unit, SlotKind.UNIT)
        verify_value("left operand", self.lhs)
        verify_value("right operand", self.rhs)

    @override
    @classmethod
    def parse(cls, parser: Parser) -> AluOp:
        stream = parse_name(parser, SlotKind.STREAM).number
        unit = parse_owner(parser)
        operation = parser.parse_str_enum(AluOperation)
        lhs = parse_slot(parser)
        parser.parse_punctuation(",")
        return cls(stream, unit, operation, lhs, parse_slot(parser))

    @override
    def print(self, printer: Printer) -> None:
        printer.print_string(
            f" {self.stream.data} on {self.unit.data} = {self.operation.data.value}"
            f" {self.lhs.data}, {self.rhs.data}"
        )


@irdl_op_definition
class RowOp(IRDLOperation):
    """
    A stream of rows: `length` contiguous elements from `base[index * pitch + offset]`.

    ```au
    au.row r0 on t2 = a2[s2 * a4 + t2] len 8 clip t2 to a5 : f32 {nontemporal}
    ```

    `clip x to y` shortens a row to `min(length, y - x)` elements. The hints are those of `au.mem`.

    ```au
    au.row r0 on t2 = a2[s5 * s2] at s0 rows s1 len s3 : f32 {bytes, keep}
    ```

    Tables of different shapes lie in one memory: `at` is the distance of the table from the base in
    units of 64 bytes, `rows` the number of its rows; absent, the table begins at the base and has
    the memory's rows. Each of pitch, length, `at` and `rows` may be a value. With `{bytes}` pitch
    and length count bytes, as a value in them does in the access unit. What lies outside the memory
    is a fault, and so is an index that isn't one of the table's.
    """

    name = "au.row"

    row = prop_def(SlotAttr)
    """The row stream, `rN`."""
    unit = prop_def(SlotAttr)
    """The unit it belongs to."""
    base = prop_def(SlotAttr)
    """The memory, an argument."""
    index = prop_def(SlotAttr)
    """Row number."""
    pitch = prop_def(SlotAttr)
    """Distance of two rows, in elements."""
    offset = opt_prop_def(SlotAttr)
    """First element of the row; absent means 0."""
    length = prop_def(SlotAttr)
    """Number of elements."""
    clip_from = opt_prop_def(SlotAttr)
    """The `x` of `clip x to y`."""
    clip_to = opt_prop_def(SlotAttr)
    """The `y` of `clip x to y`."""
    element_type = prop_def(Attribute)
    """Type of the memory's elements."""
    table = opt_prop_def(SlotAttr)
    """Distance of the table from the base, in units of 64 bytes; absent means 0."""
    rows = opt_prop_def(SlotAttr)
    """Number of rows of the table; absent means that of the memory."""
    in_bytes = opt_prop_def(UnitAttr, prop_name="bytes")
    """Present if pitch and length count bytes."""
    nontemporal = opt_prop_def(UnitAttr)
    """Present if the data isn't expected to be read again soon."""
    keep = opt_prop_def(UnitAttr)
    """Present if the data is expected to be read again soon."""

    def __init__(
        self,
        row: int,
        unit: int,
        base: int,
        index: Slot,
        pitch: Slot,
        length: Slot,
        element_type: Attribute,
        *,
        offset: Slot | None = None,
        clip: tuple[Slot, Slot] | None = None,
        table: Slot | None = None,
        rows: Slot | None = None,
        in_bytes: bool = False,
        nontemporal: bool = False,
        keep: bool = False,
    ) -> None:
        clip_from, clip_to = clip or (None, None)
        super().__init__(
            properties={
                "row": SlotAttr.row(row),
                "unit": SlotAttr.unit(unit),
                "base": SlotAttr.argument(base),
                "index": SlotAttr(index),
                "pitch": SlotAttr(pitch),
                "offset": optional_slot(offset),
                "length": SlotAttr(length),
                "clip_from": optional_slot(clip_from),
                "clip_to": optional_slot(clip_to),
                "element_type": element_type,
                "table": optional_slot(table),
                "rows": optional_slot(rows),
                "bytes": flag_attr(in_bytes),
                "nontemporal": flag_attr(nontemporal),
                "keep": flag_attr(keep),
            }
        )

    @property
    def heading(self) -> str:
        """How messages name the record."""
        return f"au.row {self.row.data} on {self.unit.data}"

    @override
    def verify_(self) -> None:
        verify_kind("name of a row", self.row, SlotKind.ROW)
        verify_kind("unit of a row", self.unit, SlotKind.UNIT)
        verify_kind("base of an address", self.base, SlotKind.ARGUMENT)
        for what, slot in (
            ("index of a row", self.index),
            ("pitch of a row", self.pitch),
            ("offset of a row", self.offset),
            ("length of a row", self.length),
            ("clip of a row", self.clip_from),
            ("clip of a row", self.clip_to),
            ("table of a row", self.table),
            ("rows of a row's table", self.rows),
        ):
            verify_value(what, slot)
        if (self.clip_from is None) != (self.clip_to is None):
            reject("clip of a row", "given with both ends or absent", "one end")
        if self.in_bytes is not None and (self.offset is not None or self.clip_from is not None):
            reject("row in bytes", "a whole row", "one with an offset or clip")
        if not isinstance(self.element_type, QuantizedType):
            verify_element(self.element_type, ROW_ELEMENT_TYPES)
        verify_hint(self.nontemporal, self.keep)

    @override
    @classmethod
    def parse(cls, parser: Parser) -> RowOp:
        row = parse_name(parser, SlotKind.ROW).number
        unit = parse_owner(parser)
        position = parser.pos
        base, index, pitch, offset, constant = parse_address(parser)
        if pitch is None:
            parser.raise_error("address of a row must be aN[slot * pitch], not without *", position)
        if constant:
            parser.raise_error(
                f"address of a row must be aN[slot * pitch + slot], not with {constant} more",
                position,
            )
        table = parse_slot(parser) if parser.parse_optional_keyword("at") else None
        rows = parse_slot(parser) if parser.parse_optional_keyword("rows") else None
        parser.parse_keyword("len")
        length = parse_slot(parser)
        clip = None
        if parser.parse_optional_keyword("clip"):
            clip_from = parse_slot(parser)
            parser.parse_keyword("to")
            clip = (clip_from, parse_slot(parser))
        parser.parse_punctuation(":")
        element_type = parser.parse_type()
        flags = parse_flags(parser, "bytes", "nontemporal", "keep")
        return cls(
            row,
            unit,
            base,
            index,
            pitch,
            length,
            element_type,
            offset=offset,
            clip=clip,
            table=table,
            rows=rows,
            in_bytes="bytes" in flags,
            nontemporal="nontemporal" in flags,
            keep="keep" in flags,
        )

    @override
    def print(self, printer: Printer) -> None:
        address = address_text(self.base, self.index, self.pitch, self.offset)
        printer.print_string(f" {self.row.data} on {self.unit.data} = {address}")
        if self.table is not None:
            printer.print_string(f" at {self.table.data}")
        if self.rows is not None:
            printer.print_string(f" rows {self.rows.data}")
        printer.print_string(f" len {self.length.data}")
        if self.clip_from is not None and self.clip_to is not None:
            printer.print_string(f" clip {self.clip_from.data} to {self.clip_to.data}")
        printer.print_string(" : ")
        printer.print_attribute(self.element_type)
        printer.print_string(
            flags_text(bytes=self.in_bytes, nontemporal=self.nontemporal, keep=self.keep)
        )
