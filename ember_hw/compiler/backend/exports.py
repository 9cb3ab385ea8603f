"""Places of an access-unit program's values: which slot holds each, and which export carries it.

Text of the access unit names values globally. In hardware a unit sees its own values and those that
the unit above exports, unit 0 those of the request. So a value that is read further down takes one
export number from the unit that has it to its last reader; the units between keep it, and what no
unit below reads any more frees its number.
"""

from __future__ import annotations

from collections.abc import Iterator

from ember_hw.compiler.dialects.au import Slot, SlotKind
from ember_hw.compiler.dialects.au_program import (
    AccessProgram,
    AluStream,
    Argument,
    MemoryStream,
    NextStream,
    Row,
    Stream,
    Unit,
)
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import AssemblyError

Item = Argument | Unit | Stream | Row
"""A record that messages can name."""


def heading(item: Item) -> str:
    """Return how messages name a record."""
    match item:
        case Argument():
            return f"au.arg a{item.number}"
        case Unit():
            return f"au.tu t{item.number}"
        case MemoryStream():
            return f"au.mem s{item.number} on t{item.unit}"
        case NextStream():
            return f"au.next s{item.number} on t{item.unit}"
        case AluStream():
            return f"au.alu s{item.number} on t{item.unit}"
        case Row():
            return f"au.row r{item.number} on t{item.unit}"


class LimitError(AssemblyError):
    """
    A program needs more of something than the config has.

    Parameters
    ----------
    message : str
        Names the record, what it needs, and the limit.
    limit : str
        Field of the config.
    """

    def __init__(self, message: str, limit: str) -> None:
        super().__init__(message)
        self.limit = limit


def refuse(item: Item | str, problem: str) -> AssemblyError:
    """Return the error that a record can't be encoded."""
    name = item if isinstance(item, str) else heading(item)
    return AssemblyError(f"au: {name!r}: {problem}")


def over_limit(item: Item | str, needed: str, config: AcceleratorConfig, limit: str) -> LimitError:
    """Return the error that a record needs more than the config has."""
    has = getattr(config, limit)
    problem = f"needs {needed}, config {config.name!r} has {has} (limit {limit})"
    return LimitError(str(refuse(item, problem)), limit)


#: Level of the arguments that a request carries: above unit 0.
_REQUEST = -1


class Places:
    """Levels, own slots and exports of all values.

    Parameters
    ----------
    program : AccessProgram
        A verified program.
    config : AcceleratorConfig
        Gives the limits.

    Raises
    ------
    AssemblyError
        The program needs more units, streams, ALUs, scalars, arguments of a request or exports than
        there are.
    """

    def __init__(self, program: AccessProgram, config: AcceleratorConfig) -> None:
        self.program, self.config = program, config
        self.levels = {unit.number: level for level, unit in enumerate(program.units)}
        for level, unit in enumerate(program.units):
            if level >= config.traversal_units:
                raise over_limit(unit, f"unit {level}", config, "traversal_units")
        #: Memory streams of each level, in the order of their stream records.
        self.memory: list[list[MemoryStream]] = [[] for _ in program.units]
        #: What the ALU of each level computes.
        self.alu: list[AluStream | NextStream | None] = [None for _ in program.units]
        #: Owner level of each value, -1 for those of the request, and what its unit's export fields
        #: call it: 1 the induction value, then the streams, then the ALU.
        self.owners: dict[Slot, tuple[int, int]] = {}
        self._place()
        #: Values that bundles hold.
        self.scalars: list[Slot] = self._scalars()
        #: Export number of each value that is handed down, its ARGUMENT register for a request's.
        self.numbers: dict[Slot, int] = self._number()

    @property
    def leaf(self) -> int:
        """Level of the innermost unit."""
        return len(self.program.units) - 1

    def is_value(self, slot: Slot) -> bool:
        """Tell whether a slot names a value: of a unit, of a stream or of the request."""
        return slot in self.owners

    def slot(self, value: Slot, level: int) -> int:
        """Return the slot number that selects a value in the ALU of a level."""
        owner, selector = self.owners[value]
        if owner == level:
            return selector - 1
        return self.config.streams_per_unit + 1 + self.numbers[value]

    def selectors(self, level: int) -> dict[int, int]:
        """Return the export fields of a level: number of the export, what it takes."""
        return {
            number: self.owners[value][1]
            for value, number in self.numbers.items()
            if self.owners[value][0] == level
        }

    def _place(self) -> None:
        for argument in self.program.arguments:
            if argument.is_request:
                self.owners[Slot(SlotKind.ARGUMENT, argument.number)] = _REQUEST, 0
        for unit, level in self.levels.items():
            self.owners[Slot(SlotKind.UNIT, unit)] = level, 1
        for stream in self.program.streams:
            level = self.levels[stream.unit]
            if isinstance(stream, MemoryStream):
                self.memory[level].append(stream)
                continue
            other = self.alu[level]
            if other is not None:
                raise refuse(
                    stream,
                    f"needs the ALU of unit t{stream.unit}, which {heading(other)!r} holds; "
                    "a unit has 1",
                )
            self.alu[level] = stream
        for level, streams in enumerate(self.memory):
            ahead = self.alu[level]
            if isinstance(ahead, NextStream):
                # The pair mode reads stream 0.
                streams.sort(key=lambda stream, first=ahead.source: stream.number != first)
            for position, stream in enumerate(streams):
                if position >= self.config.streams_per_unit:
                    needed = f"stream {position} of unit t{stream.unit}"
                    raise over_limit(stream, needed, self.config, "streams_per_unit")
                self.owners[Slot(SlotKind.STREAM, stream.number)] = level, 2 + position
            if ahead is not None:
                selector = self.config.streams_per_unit + 2
                self.owners[Slot(SlotKind.STREAM, ahead.number)] = level, selector

    def _scalars(self) -> list[Slot]:
        """Return the values that bundles hold, in the order of the pushes."""
        found: list[Slot] = []
        for push in self.program.pushes:
            for slot in push.operands:
                if not self.is_value(slot) or slot in found:
                    continue
                if len(found) >= self.config.bundle_scalars:
                    name = f"au.push t{push.unit} {push.event.value}"
                    needed = f"scalar {len(found)} for {slot}"
                    raise over_limit(name, needed, self.config, "bundle_scalars")
                found.append(slot)
        return found

    def _number(self) -> dict[Slot, int]:
        """Give each value that is handed down an export number, free from its level to its last.

        Scalars of a bundle are the first exports of the innermost unit, so their values take the
        first numbers. The others follow, outermost first, each where the room is tightest: no other
        choice needs fewer numbers.
        """
        last: dict[Slot, int] = {}
        for value, exporter in self._reads():
            if self.is_value(value) and exporter >= self.owners[value][0]:
                last[value] = max(last.get(value, exporter), exporter)
        numbers = {value: number for number, value in enumerate(self.scalars)}
        # Of each number: the level from which on a scalar holds it, and up to which others do.
        ends = [self.leaf + 1] * self.config.exports
        for value, number in numbers.items():
            ends[number] = self.owners[value][0]
        taken = [_REQUEST - 1] * self.config.exports
        for level in range(_REQUEST, self.leaf + 1):
            for value in self._definitions(level):
                if value not in last or value in self.scalars:
                    continue
                free = [
                    number
                    for number, end in enumerate(ends)
                    if taken[number] < level and last[value] < end
                ]
                if not free:
                    raise self._exhausted(level, value)
                numbers[value] = min(free, key=lambda number: (ends[number], number))
                taken[numbers[value]] = last[value]
        return numbers

    def _exhausted(self, level: int, value: Slot) -> AssemblyError:
        number = self.config.exports
        if level != _REQUEST:
            unit = self.program.units[level]
            return over_limit(unit, f"export {number} for {value}", self.config, "exports")
        (argument,) = (a for a in self.program.arguments if a.number == value.number)
        return over_limit(argument, f"argument {number} of a request", self.config, "exports")

    def _definitions(self, level: int) -> list[Slot]:
        """Return the values of a level in text order, the unit's before its streams'."""
        arguments = [Slot(SlotKind.ARGUMENT, a.number) for a in self.program.arguments]
        units = [Slot(SlotKind.UNIT, unit.number) for unit in self.program.units]
        streams = [Slot(SlotKind.STREAM, stream.number) for stream in self.program.streams]
        return [
            value
            for value in (*arguments, *units, *streams)
            if self.is_value(value) and self.owners[value][0] == level
        ]

    def _reads(self) -> Iterator[tuple[Slot, int]]:
        """Yield each slot that is read and the level whose exports the reader sees."""
        for level, unit in enumerate(self.program.units):
            yield unit.lower, level - 1
            yield unit.upper, level - 1
        for stream in self.program.streams:
            above = self.levels[stream.unit] - 1
            if isinstance(stream, AluStream):
                yield stream.lhs, above
                yield stream.rhs, above
            elif isinstance(stream, MemoryStream):
                for slot in (stream.index, stream.scale, stream.offset):
                    if slot is not None:
                        yield slot, above
        for row in self.program.rows:
            shape = (row.table, row.rows, row.pitch, row.length)
            for slot in (row.index, *shape, row.offset, *(row.clip or ())):
                if slot is not None:
                    yield slot, self.leaf
        for push in self.program.pushes:
            for slot in push.operands:
                yield slot, self.leaf
