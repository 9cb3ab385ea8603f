"""
`au`, the access-unit level: one op is one microcode record, and names are physical.

`tN` is a traversal unit (as an operand its current value), `sN` a stream's head, `rN` a row stream,
`aN` an argument that the host sets at launch or, with `{request}`, with each request. The text of
this dialect is the assembly language. Whether a program fits a target is the assembler's to check;
here stand the rules that hold for every target. `au_program.read_program` gives a program as plain
data.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import cast

from typing_extensions import override
from xdsl.dialects.builtin import IndexType, MemRefType, StringAttr
from xdsl.ir import Attribute, Block, Dialect, Operation, Region
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, region_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, NoTerminator, SymbolOpInterface

from ember_hw.compiler.dialects.au_records import ArgOp, PushOp, TuOp
from ember_hw.compiler.dialects.au_slots import Slot, SlotAttr, SlotKind
from ember_hw.compiler.dialects.au_streams import (
    AluOp,
    AluOperation,
    AluOperationAttr,
    MemOp,
    NextOp,
    RowOp,
)
from ember_hw.compiler.dialects.dlc_access import Event
from ember_hw.compiler.dialects.stream_types import reject

__all__ = [
    "AU",
    "AluOp",
    "AluOperation",
    "AluOperationAttr",
    "ArgOp",
    "Event",
    "MemOp",
    "NextOp",
    "ProgramOp",
    "PushOp",
    "Record",
    "RowOp",
    "Slot",
    "SlotAttr",
    "SlotKind",
    "TuOp",
]

_SELF = "of its unit or an ancestor"
_PROPER = "of a proper ancestor of its unit"

Record = ArgOp | TuOp | MemOp | NextOp | AluOp | RowOp | PushOp
"""An op inside an `au.program`."""


@irdl_op_definition
class ProgramOp(IRDLOperation):
    """
    A program of the access unit; the target's name selects the limits.

    ```au
    au.program @name target "small" { ... }
    ```
    """

    name = "au.program"

    sym_name = prop_def(StringAttr)
    """Name of the program."""
    target = prop_def(StringAttr)
    """Name of the hardware configuration."""
    body = region_def("single_block")
    """The records, each name above its uses."""

    traits = traits_def(NoTerminator(), IsolatedFromAbove(), SymbolOpInterface())

    def __init__(self, name: str, target: str, records: Sequence[Operation] | Region = ()) -> None:
        super().__init__(
            properties={"sym_name": StringAttr(name), "target": StringAttr(target)},
            regions=[records if isinstance(records, Region) else Region(Block(records))],
        )

    @property
    def records(self) -> tuple[Record, ...]:
        """The records in order."""
        return tuple(cast(Record, op) for op in self.body.block.ops)

    @override
    def verify_(self) -> None:
        scope = _Scope()
        for op in self.body.block.ops:
            if not isinstance(op, Record):
                reject("op of an au.program", "an au record", op.name)
            scope.add(op)
        if scope.root is None:
            reject("number of root units of an au.program", "1", 0)

    @override
    @classmethod
    def parse(cls, parser: Parser) -> ProgramOp:
        name = parser.parse_symbol_name()
        parser.parse_keyword("target")
        target = parser.parse_str_literal()
        body = parser.parse_region()
        if not body.blocks:
            body.add_block(Block())
        return cls(name.data, target, body)

    @override
    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" target ")
        printer.print_string_literal(self.target.data)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)


@dataclass
class _Scope:
    """What the records above define, and the rules on names."""

    arguments: dict[int, Attribute] = field(default_factory=dict[int, Attribute])
    parents: dict[int, int | None] = field(default_factory=dict[int, int | None])
    streams: dict[int, MemOp | NextOp | AluOp] = field(
        default_factory=dict[int, MemOp | NextOp | AluOp]
    )
    rows: dict[int, int] = field(default_factory=dict[int, int])
    pushes: set[tuple[int, Event]] = field(default_factory=set[tuple[int, Event]])
    root: int | None = None

    def add(self, op: Record) -> None:
        """Check a record against those above and take up what it defines."""
        match op:
            case ArgOp():
                self._define(op, op.argument, self.arguments)
                self.arguments[op.argument.data.number] = op.type
            case TuOp():
                self._add_unit(op)
            case MemOp():
                self._define(op, op.stream, self.streams)
                self._check_base(op, op.base, op.element_type)
                self._check_slots(op, op.unit, op.index, op.scale, op.offset)
                self.streams[op.stream.data.number] = op
            case NextOp():
                self._add_next(op)
            case AluOp():
                self._define(op, op.stream, self.streams)
                self._check_slots(op, op.unit, op.lhs, op.rhs)
                self.streams[op.stream.data.number] = op
            case RowOp():
                self._define(op, op.row, self.rows)
                self._check_base(op, op.base, op.element_type)
                clip = (op.clip_from, op.clip_to)
                shape = (op.table, op.rows, op.pitch, op.length)
                self._check_slots(op, op.unit, op.index, *shape, op.offset, *clip)
                self.rows[op.row.data.number] = op.unit.data.number
            case PushOp():
                self._add_push(op)

    def _define(self, op: Record, name: SlotAttr, known: Container[int]) -> None:
        if name.data.number in known:
            reject(f"{op.heading}: name", "defined once", f"{name.data} again")

    def _known_unit(self, op: Record, unit: SlotAttr) -> int:
        if unit.data.number not in self.parents:
            reject(f"{op.heading}: unit", "defined above", unit.data)
        return unit.data.number

    def _add_unit(self, op: TuOp) -> None:
        self._define(op, op.unit, self.parents)
        number = op.unit.data.number
        if op.under is None:
            if self.root is not None:
                reject(
                    f"{op.heading}: unit", f"under another, as t{self.root} is the root", "a root"
                )
            self.root = number
            parent = None
        else:
            parent = self._known_unit(op, op.under)
            if parent in self.parents.values():
                rule = "a unit without another child"
                reject(f"{op.heading}: parent", rule, op.under.data)
        for bound in (op.lower, op.upper):
            self._check(op, bound.data, self._chain(parent), _PROPER)
        self.parents[number] = parent

    def _add_next(self, op: NextOp) -> None:
        self._define(op, op.stream, self.streams)
        unit = self._known_unit(op, op.unit)
        source = self.streams.get(op.source.data.number)
        if not isinstance(source, MemOp) or source.unit != op.unit:
            rule = f"an au.mem of {op.unit.data} above"
            reject(f"{op.heading}: source", rule, op.source.data)
        if any(isinstance(s, NextOp) and s.unit.data.number == unit for s in self.streams.values()):
            reject(f"{op.heading}: number of au.next of a unit", "at most 1", 2)
        self.streams[op.stream.data.number] = op

    def _add_push(self, op: PushOp) -> None:
        unit = self._known_unit(op, op.unit)
        event = op.event.data
        if (unit, event) in self.pushes:
            reject(f"{op.heading}: push", "given once for a unit and event", "given again")
        self.pushes.add((unit, event))
        iterate = event is Event.ITERATE
        visible = self._chain(unit if iterate else self.parents[unit])
        for value in op.values:
            relation = _SELF if iterate else _PROPER
            self._check(op, value.data, visible, relation)

    def _chain(self, unit: int | None) -> list[int]:
        """Return the unit and its ancestors."""
        chain: list[int] = []
        while unit is not None:
            chain.append(unit)
            unit = self.parents[unit]
        return chain

    def _check_base(self, op: MemOp | RowOp, base: SlotAttr, element: Attribute) -> None:
        found = self.arguments.get(base.data.number)
        if found is None:
            reject(f"{op.heading}: base", "an argument defined above", base.data)
        if not isinstance(found, MemRefType):
            reject(f"{op.heading}: base {base.data}", "a memref argument", found)
        expected = cast(MemRefType[Attribute], found).element_type
        if element != expected:
            rule = f"that of {base.data}, {expected}"
            reject(f"{op.heading}: element type", rule, element)

    def _check_slots(self, op: Record, unit: SlotAttr, *slots: SlotAttr | None) -> None:
        visible = self._chain(self._known_unit(op, unit))
        for slot in slots:
            if slot is not None:
                self._check(op, slot.data, visible, _SELF)

    def _check(self, op: Record, slot: Slot, visible: Sequence[int], relation: str) -> None:
        """Raise unless the slot is defined, holds a number or row, and its unit is visible."""
        if slot.kind is SlotKind.INTEGER:
            return
        if slot.kind is SlotKind.ARGUMENT:
            found = self.arguments.get(slot.number)
            if found is None:
                reject(f"{op.heading}: slot", "defined above", slot)
            if not isinstance(found, IndexType):
                reject(f"{op.heading}: argument {slot} used as a value", "of type index", found)
            return
        owner: int | None
        if slot.kind is SlotKind.UNIT:
            owner = slot.number if slot.number in self.parents else None
        elif slot.kind is SlotKind.STREAM:
            stream = self.streams.get(slot.number)
            owner = None if stream is None else stream.unit.data.number
        else:
            owner = self.rows.get(slot.number)
        if owner is None:
            reject(f"{op.heading}: slot", "defined above", slot)
        if owner not in visible:
            reject(f"{op.heading}: slot", relation, f"{slot} of t{owner}")


AU = Dialect(
    "au",
    [ProgramOp, ArgOp, TuOp, MemOp, NextOp, AluOp, RowOp, PushOp],
    [SlotAttr, AluOperationAttr],
)
