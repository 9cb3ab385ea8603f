"""The records of an `au` program that aren't streams: arguments, units and pushes."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override
from xdsl.dialects.builtin import (
    I64,
    ArrayAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation, irdl_op_definition, opt_prop_def, prop_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from ember_hw.compiler.dialects.au_slots import (
    Slot,
    SlotAttr,
    SlotKind,
    flag_attr,
    flags_text,
    parse_flags,
    parse_name,
    parse_slot,
    verify_kind,
    verify_value,
)
from ember_hw.compiler.dialects.dlc_access import Event, EventAttr
from ember_hw.compiler.dialects.stream_types import reject


@irdl_op_definition
class ArgOp(IRDLOperation):
    """
    Bind an argument register to a symbol of the host.

    ```au
    au.arg a0 "off" : memref<?xindex>
    ```

    A memref binds the base address; an index binds a value. The symbol `x.pitch` is the distance of
    the rows of memref `x`, in elements.

    ```au
    au.arg a4 "B" : index {request}
    ```

    A request's argument comes with each request instead of with the microcode, so that requests
    that differ in it alone can wait one behind the other. It is a value like those of units and
    streams, seen by every unit: a bound, an operand of the ALU, a row's index, the value from above
    in an address.
    """

    name = "au.arg"

    argument = prop_def(SlotAttr)
    """The register, `aN`."""
    symbol = prop_def(StringAttr)
    """The host's name of the value."""
    type = prop_def(Attribute)
    """A memref, or `index`."""
    request = opt_prop_def(UnitAttr)
    """Present if each request carries the value."""

    def __init__(
        self, argument: int, symbol: str, type_: Attribute, *, request: bool = False
    ) -> None:
        super().__init__(
            properties={
                "argument": SlotAttr.argument(argument),
                "symbol": StringAttr(symbol),
                "type": type_,
                "request": flag_attr(request),
            }
        )

    @property
    def heading(self) -> str:
        """How messages name the record."""
        return f"au.arg {self.argument.data}"

    @override
    def verify_(self) -> None:
        verify_kind("name of an argument", self.argument, SlotKind.ARGUMENT)
        if self.type == IndexType():
            return
        if not isinstance(self.type, MemRefType):
            reject("type of an argument", "a memref or index", self.type)
        if self.request is not None:
            reject("type of a request's argument", "index", "a memref")

    @override
    @classmethod
    def parse(cls, parser: Parser) -> ArgOp:
        argument = parse_name(parser, SlotKind.ARGUMENT)
        symbol = parser.parse_str_literal()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        flags = parse_flags(parser, "request")
        return cls(argument.number, symbol, type_, request="request" in flags)

    @override
    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.argument.data} ")
        printer.print_string_literal(self.symbol.data)
        printer.print_string(" : ")
        printer.print_attribute(self.type)
        printer.print_string(flags_text(request=self.request))


@irdl_op_definition
class TuOp(IRDLOperation):
    """
    A traversal unit; its bounds are evaluated on the parent.

    ```au
    au.tu t1 under t0 = s0 to s1 step 1
    au.tu t1 under t0 = s0 to s0 + 8 step 1
    au.tu t3 under t1 = s2 to s2 + 1 step 1 {relay}
    ```

    A *relay* has one iteration for each of its parent's. It stands for no loop: the compiler adds
    it for streams that its parent has no room for, and its value is what one of them takes.
    """

    name = "au.tu"

    unit = prop_def(SlotAttr)
    """The unit, `tN`."""
    under = opt_prop_def(SlotAttr)
    """The parent unit; absent for the root."""
    lower = prop_def(SlotAttr)
    """First value."""
    upper = prop_def(SlotAttr)
    """Exclusive end, or the lower bound's slot when `upper_offset` is present."""
    upper_offset = opt_prop_def(IntegerAttr[I64])
    """What is added to the lower bound to give the exclusive end."""
    step = prop_def(IntegerAttr[I64])
    """Distance of two iterations, at least 1."""
    relay = opt_prop_def(UnitAttr)
    """Present if the unit has one iteration and stands for no loop."""

    def __init__(
        self,
        unit: int,
        lower: Slot,
        upper: Slot,
        step: int,
        *,
        under: int | None = None,
        upper_offset: int | None = None,
        relay: bool = False,
    ) -> None:
        super().__init__(
            properties={
                "unit": SlotAttr.unit(unit),
                "under": None if under is None else SlotAttr.unit(under),
                "lower": SlotAttr(lower),
                "upper": SlotAttr(upper),
                "upper_offset": None if upper_offset is None else IntegerAttr(upper_offset, i64),
                "step": IntegerAttr(step, i64),
                "relay": flag_attr(relay),
            }
        )

    @property
    def heading(self) -> str:
        """How messages name the record."""
        return f"au.tu {self.unit.data}"

    @override
    def verify_(self) -> None:
        verify_kind("name of a unit", self.unit, SlotKind.UNIT)
        if self.under is not None:
            verify_kind("parent of a unit", self.under, SlotKind.UNIT)
        verify_value("lower bound", self.lower)
        verify_value("upper bound", self.upper)
        if self.upper_offset is not None and self.upper != self.lower:
            rule = f"the lower bound {self.lower.data} when an integer is added"
            reject("upper bound", rule, self.upper.data)
        if self.step.value.data < 1:
            reject("step", "at least 1", self.step.value.data)
        if self.relay is not None and not self._is_single:
            found = f"{self.lower.data} to {self.upper.data}"
            offset = "" if self.upper_offset is None else f" + {self.upper_offset.value.data}"
            reject("bounds of a relay", "0 to 1 or x to x + 1, below another", found + offset)

    @property
    def _is_single(self) -> bool:
        """Whether the unit is below another and has one iteration."""
        if self.under is None:
            return False
        if self.upper_offset is not None:
            return self.upper_offset.value.data == 1
        bounds = (Slot(SlotKind.INTEGER, 0), Slot(SlotKind.INTEGER, 1))
        return (self.lower.data, self.upper.data) == bounds

    @override
    @classmethod
    def parse(cls, parser: Parser) -> TuOp:
        unit = parse_name(parser, SlotKind.UNIT)
        under = None
        if parser.parse_optional_keyword("under"):
            under = parse_name(parser, SlotKind.UNIT).number
        parser.parse_punctuation("=")
        lower = parse_slot(parser)
        parser.parse_keyword("to")
        upper = parse_slot(parser)
        offset = None
        if parser.parse_optional_punctuation("+"):
            offset = parser.parse_integer(allow_boolean=False)
        parser.parse_keyword("step")
        step = parser.parse_integer(allow_boolean=False)
        flags = parse_flags(parser, "relay")
        return cls(
            unit.number,
            lower,
            upper,
            step,
            under=under,
            upper_offset=offset,
            relay="relay" in flags,
        )

    @override
    def print(self, printer: Printer) -> None:
        under = "" if self.under is None else f" under {self.under.data}"
        offset = "" if self.upper_offset is None else f" + {self.upper_offset.value.data}"
        printer.print_string(
            f" {self.unit.data}{under} = {self.lower.data} to {self.upper.data}{offset}"
            f" step {self.step.value.data}"
        )
        printer.print_string(flags_text(relay=self.relay))


@irdl_op_definition
class PushOp(IRDLOperation):
    """
    Push token `id`, then the operands in this order, on an event of a unit.

    ```au
    au.push t1 ite id 2 (t0, r0)
    ```

    The done token, id 0, is implicit at the root's end.
    """

    name = "au.push"

    unit = prop_def(SlotAttr)
    """The unit."""
    event = prop_def(EventAttr)
    """The event."""
    id = prop_def(IntegerAttr[I64])
    """The token, at least 1."""
    values = prop_def(ArrayAttr[SlotAttr])
    """What follows it on the data queue."""

    def __init__(self, unit: int, event: Event, id: int, values: Sequence[Slot] = ()) -> None:
        super().__init__(
            properties={
                "unit": SlotAttr.unit(unit),
                "event": EventAttr(event),
                "id": IntegerAttr(id, i64),
                "values": ArrayAttr(SlotAttr(value) for value in values),
            }
        )

    @property
    def heading(self) -> str:
        """How messages name the record."""
        return f"au.push {self.unit.data} {self.event.data.value}"

    @override
    def verify_(self) -> None:
        verify_kind("unit of a push", self.unit, SlotKind.UNIT)
        if self.id.value.data < 1:
            reject("id of a push", "at least 1, because 0 is the done token", self.id.value.data)

    @override
    @classmethod
    def parse(cls, parser: Parser) -> PushOp:
        unit = parse_name(parser, SlotKind.UNIT).number
        event = parser.parse_str_enum(Event)
        parser.parse_keyword("id")
        id_ = parser.parse_integer(allow_boolean=False)
        values = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: parse_slot(parser)
        )
        return cls(unit, event, id_, values)

    @override
    def print(self, printer: Printer) -> None:
        values = ", ".join(str(value.data) for value in self.values)
        printer.print_string(
            f" {self.unit.data} {self.event.data.value} id {self.id.value.data} ({values})"
        )
