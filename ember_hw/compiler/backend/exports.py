"""Places of an access-unit program's values: which slot holds each, and which each unit hands down.

Text of the access unit names values globally. In hardware a unit sees its own values and those that
the unit above exports, so every value that is read further down is handed from unit to unit.
"""

from __future__ import annotations

from collections.abc import Iterator

from ember_hw.compiler.dialects.au import Slot, SlotKind
from ember_hw.compiler.dialects.au_program import (
    AccessProgram,
    AluStream,
    MemoryStream,
    NextStream,
    Row,
    Stream,
    Unit,
)
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import AssemblyError


def heading(item: Unit | Stream | Row) -> str:
    """Return how messages name a record."""
    match item:
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


def refuse(item: Unit | Stream | Row | str, problem: str) -> AssemblyError:
    """Return the error that a record can't be encoded."""
    name = item if isinstance(item, str) else heading(item)
    return AssemblyError(f"au: {name!r}: {problem}")


def over_limit(
    item: Unit | Stream | Row | str, needed: str, config: AcceleratorConfig, limit: str
) -> AssemblyError:
    """Return the error that a record needs more than the config has."""
    has = getattr(config, limit)
    return refuse(item, f"needs {needed}, config {config.name!r} has {has} (limit {limit})")


def is_value(slot: Slot) -> bool:
    """Tell whether a slot names a value that changes in a run: a unit's or a stream's."""
    return slot.kind in (SlotKind.UNIT, SlotKind.STREAM)


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
        The program needs more units, streams, ALUs or exports than there are.
    """

    def __init__(self, program: AccessProgram, config: AcceleratorConfig) -> None:
        self.program, self.config = program, config
        self.levels = {unit.number: level for level, unit in enumerate(program.units)}
        for level, unit in enumerate(program.units):
            if level >= config.traversal_units:
                raise over_limit(unit, f"unit {level}", config, "traversal_units")
        #: Memory streams of each level, in the order of their stream records.
        self.memory: list[list[MemoryStream]] = [[] for _ in program.units]
        #: What the ALU slot of each level holds.
        self.alu: list[AluStream | NextStream | None] = [None for _ in program.units]
        #: Owner level and own slot of each value.
        self.owners: dict[Slot, tuple[int, int]] = {}
        self._place()
        #: Values that each level hands down, in the order of its export fields.
        self.exports: list[list[Slot]] = self._exports()

    @property
    def leaf(self) -> int:
        """Level of the innermost unit."""
        return len(self.program.units) - 1

    def slot(self, value: Slot, level: int) -> int:
        """Return the slot number that selects a value in the records of a level."""
        owner, own_slot = self.owners[value]
        if owner == level:
            return own_slot
        return self.config.streams_per_unit + 2 + self.exports[level - 1].index(value)

    def leaf_export(self, value: Slot) -> int:
        """Return the export of the innermost unit that holds a value."""
        return self.exports[self.leaf].index(value)

    def _place(self) -> None:
        for unit, level in self.levels.items():
            self.owners[Slot(SlotKind.UNIT, unit)] = level, 0
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
                self.owners[Slot(SlotKind.STREAM, stream.number)] = level, 1 + position
            if ahead is not None:
                slot = self.config.streams_per_unit + 1
                self.owners[Slot(SlotKind.STREAM, ahead.number)] = level, slot

    def _exports(self) -> list[list[Slot]]:
        order = {value: number for number, value in enumerate(self._definitions())}
        # The lowest level to which each value is handed down, its own if nothing below reads it.
        reach: dict[Slot, int] = {}
        for value, exporter in self._reads():
            if is_value(value):
                reach[value] = max(reach.get(value, -1), exporter)
        exports: list[list[Slot]] = []
        for level, unit in enumerate(self.program.units):
            live = [
                value for value, last in reach.items() if self.owners[value][0] <= level <= last
            ]
            live.sort(key=order.__getitem__)
            if len(live) > self.config.exports:
                needed = f"export {self.config.exports} for {live[self.config.exports]}"
                raise over_limit(unit, needed, self.config, "exports")
            exports.append(live)
        return exports

    def _definitions(self) -> Iterator[Slot]:
        """Yield all values, outermost unit first, each unit before its streams."""
        for unit in self.program.units:
            yield Slot(SlotKind.UNIT, unit.number)
            for stream in self.program.streams:
                if stream.unit == unit.number:
                    yield Slot(SlotKind.STREAM, stream.number)

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
            for slot in (row.index, row.pitch, row.offset, row.length, *(row.clip or ())):
                if slot is not None:
                    yield slot, self.leaf
        for push in self.program.pushes:
            for slot in push.operands:
                yield slot, self.leaf
