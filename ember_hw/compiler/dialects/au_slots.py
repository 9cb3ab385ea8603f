"""Physical names of `au`: what an operand of a record may be, its text, its checks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from typing_extensions import override
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    UnitAttr,
)
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer

from ember_hw.compiler.dialects.stream_types import reject

ELEMENT_TYPES: tuple[Attribute, ...] = (
    *(IntegerType(bits) for bits in (8, 16, 32, 64)),
    IndexType(),
    Float16Type(),
    BFloat16Type(),
    Float32Type(),
)
"""Element types of streams; `index` is stored as a 64-bit integer, integers are signed."""

ROW_ELEMENT_TYPES: tuple[Attribute, ...] = (*ELEMENT_TYPES, Float64Type())
"""Element types of rows; an f64 is no value of a unit, which has 32 bits."""

_NAME = re.compile(r"([tsra])(0|[1-9][0-9]*)")


class SlotKind(Enum):
    """What a slot names; the value is the letter in front of its number."""

    UNIT = "t"
    STREAM = "s"
    ROW = "r"
    ARGUMENT = "a"
    INTEGER = ""


@dataclass(frozen=True)
class Slot:
    """
    One operand of a record.

    Parameters
    ----------
    kind : SlotKind
        A unit's current value, a stream's head, a row, an argument register, or an integer.
    number : int
        Number of the unit, stream, row or argument; for an integer its value.
    """

    kind: SlotKind
    number: int

    def __str__(self) -> str:
        return f"{self.kind.value}{self.number}"

    @classmethod
    def from_name(cls, name: str) -> Slot | None:
        """Return the slot a name like `s3` stands for, or None if it isn't such a name."""
        match = _NAME.fullmatch(name)
        return None if match is None else cls(SlotKind(match[1]), int(match[2]))


@irdl_attr_definition
class SlotAttr(Data[Slot]):
    """A slot as an attribute. Text: `#au.slot<s3>`; inside the ops only `s3`."""

    name = "au.slot"

    @classmethod
    def unit(cls, number: int) -> SlotAttr:
        """Name unit `tN`."""
        return cls(Slot(SlotKind.UNIT, number))

    @classmethod
    def stream(cls, number: int) -> SlotAttr:
        """Name stream `sN`."""
        return cls(Slot(SlotKind.STREAM, number))

    @classmethod
    def row(cls, number: int) -> SlotAttr:
        """Name row stream `rN`."""
        return cls(Slot(SlotKind.ROW, number))

    @classmethod
    def argument(cls, number: int) -> SlotAttr:
        """Name argument register `aN`."""
        return cls(Slot(SlotKind.ARGUMENT, number))

    @classmethod
    def integer(cls, value: int) -> SlotAttr:
        """Stand for a constant."""
        return cls(Slot(SlotKind.INTEGER, value))

    @override
    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Slot:
        with parser.in_angle_brackets():
            return parse_slot(parser)

    @override
    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.data))


def parse_slot(parser: AttrParser) -> Slot:
    """Parse `tN`, `sN`, `rN`, `aN` or an integer."""
    position = parser.pos
    value = parser.parse_optional_integer(allow_boolean=False)
    if value is not None:
        return Slot(SlotKind.INTEGER, value)
    name = parser.parse_optional_identifier()
    slot = None if name is None else Slot.from_name(name)
    if slot is None:
        parser.raise_error(
            f"slot must be tN, sN, rN, aN or an integer, not {name or 'absent'}", position
        )
    return slot


def parse_name(parser: AttrParser, kind: SlotKind) -> Slot:
    """Parse a name of one kind, such as `t0` for a unit."""
    position = parser.pos
    slot = parse_slot(parser)
    if slot.kind is not kind:
        parser.raise_error(f"{kind.name.lower()} must be {kind.value}N, not {slot}", position)
    return slot


def verify_kind(what: str, slot: SlotAttr, *kinds: SlotKind) -> None:
    """Raise unless the slot is of one of these kinds."""
    if slot.data.kind not in kinds:
        names = " or ".join(f"{kind.value}N" if kind.value else "an integer" for kind in kinds)
        reject(what, names, slot.data)


def verify_value(what: str, slot: SlotAttr | None) -> None:
    """Raise if the slot is a row: a row is no number."""
    if slot is not None and slot.data.kind is SlotKind.ROW:
        reject(what, "tN, sN, aN or an integer", slot.data)


def verify_element(type_: Attribute, legal: tuple[Attribute, ...] = ELEMENT_TYPES) -> None:
    """Raise unless an element type is one of those that a stream, or a row, may have."""
    if type_ not in legal:
        reject("element type", f"one of {', '.join(str(known) for known in legal)}", type_)


def flag_attr(present: bool) -> UnitAttr | None:
    """Return the property value of a flag."""
    return UnitAttr() if present else None


def optional_slot(slot: Slot | None) -> SlotAttr | None:
    """Return the property value of a slot that may be absent."""
    return None if slot is None else SlotAttr(slot)


def parse_flags(parser: Parser, *legal: str) -> frozenset[str]:
    """Parse the flags of a record, such as `{nontemporal, queue}`, if there are any."""
    position = parser.pos
    attributes = parser.parse_optional_attr_dict()
    if unknown := [name for name in attributes if name not in legal]:
        names = " or ".join(legal)
        found = ", ".join(unknown)
        parser.raise_error(f"attribute of the record must be {names}, not {found}", position)
    return frozenset(attributes)


def flags_text(**flags: UnitAttr | None) -> str:
    """Return the text of the flags that are set, with the space in front of it."""
    names = ", ".join(name for name, flag in flags.items() if flag is not None)
    return f" {{{names}}}" if names else ""


def verify_hint(nontemporal: UnitAttr | None, keep: UnitAttr | None) -> None:
    """Raise if both hints are given."""
    if nontemporal is not None and keep is not None:
        reject("hint of a stream", "nontemporal or keep", "both")


def parse_owner(parser: AttrParser) -> int:
    """Parse `on tM =`: the unit's number."""
    parser.parse_keyword("on")
    unit = parse_name(parser, SlotKind.UNIT)
    parser.parse_punctuation("=")
    return unit.number


def parse_address(parser: AttrParser) -> tuple[int, Slot, Slot | None, Slot | None, int]:
    """Parse `aN[slot (* slot)? (+ slot (+ integer)?)?]`: base, index, scale, offset, constant."""
    base = parse_name(parser, SlotKind.ARGUMENT)
    constant = 0
    with parser.in_square_brackets():
        index = parse_slot(parser)
        scale = parse_slot(parser) if parser.parse_optional_characters("*") else None
        offset = parse_slot(parser) if parser.parse_optional_punctuation("+") else None
        if offset is not None and parser.parse_optional_punctuation("+"):
            constant = parser.parse_integer(allow_boolean=False)
    return base.number, index, scale, offset, constant


def address_text(
    base: SlotAttr,
    index: SlotAttr,
    scale: SlotAttr | None,
    offset: SlotAttr | None,
    constant: int = 0,
) -> str:
    """Return the text of `aN[slot (* slot)? (+ slot (+ integer)?)?]`."""
    text = str(index.data)
    text += "" if scale is None else f" * {scale.data}"
    text += "" if offset is None else f" + {offset.data}"
    text += f" + {constant}" if constant else ""
    return f"{base.data}[{text}]"
