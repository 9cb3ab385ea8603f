"""The streams of an `au` program: loads, next values, integer operations and rows."""

from __future__ import annotations

from typing_extensions import override
from xdsl.dialects.builtin import UnitAttr
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
    Slot,
    SlotAttr,
    SlotKind,
    address_text,
    flag_attr,
    optional_slot,
    parse_address,
    parse_name,
    parse_nontemporal,
    parse_owner,
    parse_slot,
    verify_element,
    verify_kind,
    verify_value,
)
from ember_hw.compiler.dialects.stream_types import reject


class AluOperation(StrEnum):
    """What a unit's ALU computes; `shl` shifts left."""

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

    Integers are sign-extended to the slot's width.
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
    element_type = prop_def(Attribute)
    """Type of the memory's elements."""
    nontemporal = opt_prop_def(UnitAttr)
    """Present if the data isn't expected to be read again soon."""

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
        nontemporal: bool = False,
    ) -> None:
        super().__init__(
            properties={
                "stream": SlotAttr.stream(stream),
                "unit": SlotAttr.unit(unit),
                "base": SlotAttr.argument(base),
                "index": SlotAttr(index),
                "scale": optional_slot(scale),
                "offset": optional_slot(offset),
                "element_type": element_type,
                "nontemporal": flag_attr(nontemporal),
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
        verify_element(self.element_type)

    @override
    @classmethod
    def parse(cls, parser: Parser) -> MemOp:
        stream = parse_name(parser, SlotKind.STREAM).number
        unit = parse_owner(parser)
        base, index, scale, offset = parse_address(parser)
        parser.parse_punctuation(":")
        return cls(
            stream,
            unit,
            base,
            index,
            parser.parse_type(),
            scale=scale,
            offset=offset,
            nontemporal=parse_nontemporal(parser),
        )

    @override
    def print(self, printer: Printer) -> None:
        address = address_text(self.base, self.index, self.scale, self.offset)
        printer.print_string(f" {self.stream.data} on {self.unit.data} = {address} : ")
        printer.print_attribute(self.element_type)
        if self.nontemporal is not None:
            printer.print_string(" {nontemporal}")


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

    `clip x to y` shortens a row to `min(length, y - x)` elements.
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
    nontemporal = opt_prop_def(UnitAttr)
    """Present if the data isn't expected to be read again soon."""

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
        nontemporal: bool = False,
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
                "nontemporal": flag_attr(nontemporal),
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
        ):
            verify_value(what, slot)
        if (self.clip_from is None) != (self.clip_to is None):
            reject("clip of a row", "given with both ends or absent", "one end")
        verify_element(self.element_type)

    @override
    @classmethod
    def parse(cls, parser: Parser) -> RowOp:
        row = parse_name(parser, SlotKind.ROW).number
        unit = parse_owner(parser)
        position = parser.pos
        base, index, pitch, offset = parse_address(parser)
        if pitch is None:
            parser.raise_error("address of a row must be aN[slot * pitch], not without *", position)
        parser.parse_keyword("len")
        length = parse_slot(parser)
        clip = None
        if parser.parse_optional_keyword("clip"):
            clip_from = parse_slot(parser)
            parser.parse_keyword("to")
            clip = (clip_from, parse_slot(parser))
        parser.parse_punctuation(":")
        return cls(
            row,
            unit,
            base,
            index,
            pitch,
            length,
            parser.parse_type(),
            offset=offset,
            clip=clip,
            nontemporal=parse_nontemporal(parser),
        )

    @override
    def print(self, printer: Printer) -> None:
        address = address_text(self.base, self.index, self.pitch, self.offset)
        printer.print_string(f" {self.row.data} on {self.unit.data} = {address}")
        printer.print_string(f" len {self.length.data}")
        if self.clip_from is not None and self.clip_to is not None:
            printer.print_string(f" clip {self.clip_from.data} to {self.clip_to.data}")
        printer.print_string(" : ")
        printer.print_attribute(self.element_type)
        if self.nontemporal is not None:
            printer.print_string(" {nontemporal}")
