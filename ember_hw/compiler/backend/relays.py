"""Relays: units of one iteration that take the streams a unit has no room for.

A unit has one ALU, which takes one of the unit's own values, and a few memory streams, whose
addresses take the unit's own value and one from above. What doesn't fit goes to a relay below: it
is entered once for each iteration of the unit, so it costs no cycle but its own latency, and its
value may be any value from above, which so becomes one of its own. Events of the unit stay where
they are in the order of the program; a push that needs a stream of a relay becomes the relay's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from xdsl.ir import Operation

from ember_hw.compiler.backend.exports import LimitError, over_limit, refuse
from ember_hw.compiler.dialects.au import (
    AluOp,
    ArgOp,
    Event,
    MemOp,
    NextOp,
    ProgramOp,
    PushOp,
    RowOp,
    Slot,
    SlotKind,
    TuOp,
)
from ember_hw.compiler.dialects.au_program import (
    AccessProgram,
    AluStream,
    MemoryStream,
    NextStream,
    Push,
    Row,
    Stream,
    Unit,
    read_program,
)
from ember_hw.config import MOST_TRAVERSAL_UNITS, AcceleratorConfig

_ZERO, _ONE = Slot(SlotKind.INTEGER, 0), Slot(SlotKind.INTEGER, 1)


def add_relays(program: ProgramOp, config: AcceleratorConfig) -> ProgramOp:
    """
    Put what the units of a program have no room for on relays.

    Parameters
    ----------
    program : ProgramOp
        A verified program.
    config : AcceleratorConfig
        Gives streams of a unit, and units.

    Returns
    -------
    ProgramOp
        The program itself if everything fits. Else the streams that don't fit are on relays
        (`{relay}`), and so are the pushes and rows that need them; names stay.

    Raises
    ------
    AssemblyError
        The relays are more than the config has units for; the message names the stream.
    """
    source = read_program(program)
    relays = _Relays(source, config)
    if not relays.added:
        return program
    return _write(relays.program())


@dataclass
class _Place:
    """A unit, or a relay below it, and what it holds so far.

    `value` is what a relay's own value is; None if it isn't chosen yet.
    """

    unit: Unit
    position: int
    memory: list[Stream] = field(default_factory=list[Stream])
    alu: Stream | None = None
    value: Slot | None = None


class _Relays:
    """The chain of units and relays, and the streams on each."""

    def __init__(self, program: AccessProgram, config: AcceleratorConfig) -> None:
        self.source, self.config = program, config
        self.chain: list[_Place] = []
        #: Place in the chain of each value of units and streams; arguments are above all.
        self.positions: dict[Slot, int] = {}
        #: Streams and rows that wanted a relay, in the order in which they got one.
        self.added: list[Stream | Row] = []
        #: Value that stands for the row number of each row whose number is no value.
        self._row_indices: dict[int, Slot] = {}
        self._requests = {
            Slot(SlotKind.ARGUMENT, a.number) for a in program.arguments if a.is_request
        }
        self._sources = {s.source for s in program.streams if isinstance(s, NextStream)}
        self._next_number = max(unit.number for unit in program.units) + 1
        self._streams: dict[int, Stream] = {}
        for unit in program.units:
            self._add_unit(unit)
        self._check_room()

    def program(self) -> AccessProgram:
        """Return the program with its relays."""
        rows = tuple(self._row(row) for row in self.source.rows)
        return replace(
            self.source,
            units=tuple(self._unit(place) for place in self.chain),
            streams=tuple(
                self._streams[stream.number]
                for place in self.chain
                for stream in (*place.memory, *([place.alu] if place.alu else []))
            ),
            rows=rows,
            pushes=tuple(self._push(push) for push in self.source.pushes),
        )

    def _add_unit(self, unit: Unit) -> None:
        first = self._open(unit)
        places = [first]
        for stream in (s for s in self.source.streams if s.unit == unit.number):
            placed = next((p for p in places if self._put(stream, p, first)), None)
            if placed is None:
                self.added.append(stream)
                places.append(self._open(self._relay(unit)))
                # A new relay has room for any stream that some unit can hold.
                self._put(stream, places[-1], first, force=True)
        for row in (r for r in self.source.rows if r.unit == unit.number):
            if not self._is_value(row.index):
                self._row_index(row, places)

    def _open(self, unit: Unit) -> _Place:
        place = _Place(unit, len(self.chain))
        self.chain.append(place)
        self.positions[Slot(SlotKind.UNIT, unit.number)] = place.position
        return place

    def _relay(self, unit: Unit) -> Unit:
        number = self._next_number
        self._next_number += 1
        return Unit(number, unit.number, _ZERO, _ONE, None, 1, is_relay=True)

    def _check_room(self) -> None:
        """Raise if there are more units than the config has, because of relays."""
        needed, has = len(self.chain), self.config.traversal_units
        if needed <= has:
            return
        spare = has - len(self.source.units)
        if spare < 0:
            unit = self.source.units[has]
            raise over_limit(unit, f"unit {has}", self.config, "traversal_units")
        stream = self.added[spare]
        most = MOST_TRAVERSAL_UNITS
        remedy = f"a config with {needed} would do" if needed <= most else f"no config has {needed}"
        problem = (
            f"needs a relay below t{stream.unit}, so {needed} units in all, config "
            f"{self.config.name!r} has {has} (limit traversal_units; {remedy})"
        )
        raise LimitError(str(refuse(stream, problem)), "traversal_units")

    def _put(self, stream: Stream, place: _Place, first: _Place, *, force: bool = False) -> bool:
        """Put a stream on a unit or relay, if it fits; whether it did."""
        if any(self._position(slot) > place.position for slot in _slots(stream)):
            return False
        match stream:
            case MemoryStream():
                new = self._memory(stream, place, is_first=place is first, force=force)
            case AluStream():
                new = self._alu(stream, place, force=force)
            case NextStream():
                fits = place is first and place.alu is None
                new = stream if fits else None
        if new is None:
            return False
        new = replace(new, unit=place.unit.number)
        if isinstance(new, MemoryStream):
            place.memory.append(new)
        else:
            place.alu = new
        self._streams[stream.number] = new
        self.positions[Slot(SlotKind.STREAM, stream.number)] = place.position
        return True

    def _row_index(self, row: Row, places: list[_Place]) -> None:
        """Let a relay have a row number that is the same always: only values select rows."""
        relays = [place for place in places if place.unit.is_relay]
        place = next((p for p in relays if p.value in (None, row.index)), None)
        if place is None:
            self.added.append(row)
            place = self._open(self._relay(places[0].unit))
            places.append(place)
        place.value = row.index
        self._row_indices[row.number] = Slot(SlotKind.UNIT, place.unit.number)

    def _memory(
        self, stream: MemoryStream, place: _Place, *, is_first: bool, force: bool
    ) -> MemoryStream | None:
        """Return a memory stream as it stands on a place; None if it doesn't fit there."""
        room = self.config.streams_per_unit - len(place.memory)
        if is_first and stream.number not in self._sources:
            # The pair mode reads a stream of the unit itself.
            room -= sum(
                1
                for other in self.source.streams
                if other.number in self._sources
                and other.unit == stream.unit
                and other.number not in self._streams
            )
        if room < 1 and not force:
            return None
        own: list[tuple[Slot, bool]] = []
        above = 0
        for value, factor in self._terms(stream):
            if self._position(value) == place.position:
                own.append((value, factor == _ONE))
            else:
                above += 1
        if own:
            fits = len(own) == 1 and own[0] == (Slot(SlotKind.UNIT, place.unit.number), True)
            return stream if (fits and above <= 1) or force else None
        if above <= 1:
            return stream
        if is_first:
            return None
        return self._take(stream, place) or (stream if force else None)

    def _take(self, stream: MemoryStream, place: _Place) -> MemoryStream | None:
        """Let a relay's own value be a term of an address that has two values from above."""
        unscaled = {
            slot
            for slot, factor in (("index", stream.scale), ("offset", None))
            if factor in (None, _ONE) and self._is_value(getattr(stream, slot))
        }
        for name in ("offset", "index"):
            value: Slot | None = getattr(stream, name)
            if name in unscaled and value is not None and self._carries(place, value):
                return replace(stream, **{name: Slot(SlotKind.UNIT, place.unit.number)})
        return None

    def _alu(self, stream: AluStream, place: _Place, *, force: bool) -> AluStream | None:
        """Return an ALU stream as it stands on a place; None if it doesn't fit there."""
        if place.alu is not None:
            return None
        if any(self._is_own(slot, place) for slot in (stream.lhs, stream.rhs)):
            return stream
        if not place.unit.is_relay:
            return None
        for name, slot in (("lhs", stream.lhs), ("rhs", stream.rhs)):
            if slot.kind is not SlotKind.INTEGER and self._carries(place, slot):
                return replace(stream, **{name: Slot(SlotKind.UNIT, place.unit.number)})
        return stream if force else None

    def _terms(self, stream: MemoryStream) -> Iterator[tuple[Slot, Slot]]:
        """Yield the values that an address adds up, each with its factor."""
        scale = stream.scale or _ONE
        if self._is_value(stream.index):
            yield stream.index, scale
        elif self._is_value(scale):
            yield scale, stream.index
        if stream.offset is not None and self._is_value(stream.offset):
            yield stream.offset, _ONE

    def _carries(self, place: _Place, value: Slot) -> bool:
        """Whether a relay's own value is this one, from now on if it was none."""
        if place.value is None:
            place.value = value
        return place.value == value

    def _is_own(self, slot: Slot, place: _Place) -> bool:
        return self._is_value(slot) and self._position(slot) == place.position

    def _is_value(self, slot: Slot | None) -> bool:
        return slot is not None and (
            slot.kind in (SlotKind.UNIT, SlotKind.STREAM) or slot in self._requests
        )

    def _position(self, slot: Slot) -> int:
        return self.positions.get(slot, -1)

    def _unit(self, place: _Place) -> Unit:
        unit = place.unit
        above = self.chain[place.position - 1].unit.number if place.position else None
        if place.value is None:
            return replace(unit, parent=above)
        return replace(unit, parent=above, lower=place.value, upper=place.value, upper_offset=1)

    def _row(self, row: Row) -> Row:
        row = replace(row, index=self._row_indices.get(row.number, row.index))
        return replace(row, unit=self._lowest(row.unit, _row_slots(row)))

    def _push(self, push: Push) -> Push:
        if push.event is not Event.ITERATE:
            return push
        rows = {row.number: self._row(row) for row in self.source.rows}
        slots = [
            slot
            for operand in push.operands
            for slot in (
                _row_slots(rows[operand.number]) if operand.kind is SlotKind.ROW else [operand]
            )
        ]
        return replace(push, unit=self._lowest(push.unit, slots))

    def _lowest(self, unit: int, slots: Iterable[Slot]) -> int:
        """Return the lowest of a unit and the relays that have the slots."""
        place = self.positions[Slot(SlotKind.UNIT, unit)]
        lowest = max([place, *(self._position(slot) for slot in slots)])
        return self.chain[lowest].unit.number


def _slots(stream: Stream) -> list[Slot]:
    match stream:
        case MemoryStream():
            slots = (stream.index, stream.scale, stream.offset)
            return [slot for slot in slots if slot is not None]
        case AluStream():
            return [stream.lhs, stream.rhs]
        case NextStream():
            return [Slot(SlotKind.STREAM, stream.source)]


def _row_slots(row: Row) -> list[Slot]:
    slots = (row.index, row.pitch, row.offset, row.length, row.table, row.rows, *(row.clip or ()))
    return [slot for slot in slots if slot is not None]


def _write(program: AccessProgram) -> ProgramOp:
    """Return a program as text: each unit with what is on it, rows and pushes in their order."""
    records: list[Operation] = [
        ArgOp(a.number, a.symbol, a.type, request=a.is_request) for a in program.arguments
    ]
    rows, pushes = list(program.rows), list(program.pushes)
    for unit in program.units:
        records.append(
            TuOp(
                unit.number, unit.lower, unit.upper, unit.step,
                under=unit.parent, upper_offset=unit.upper_offset, relay=unit.is_relay,
            )
        )  # fmt: skip
        records += [_stream_op(s) for s in program.streams if s.unit == unit.number]
        while rows and rows[0].unit == unit.number:
            records.append(_row_op(rows.pop(0)))
        while not rows and pushes and pushes[0].unit == unit.number:
            records.append(_push_op(pushes.pop(0)))
    records += [_row_op(row) for row in rows]
    records += [_push_op(push) for push in pushes]
    return ProgramOp(program.name, program.target, records)


def _stream_op(stream: Stream) -> Operation:
    match stream:
        case MemoryStream():
            return MemOp(
                stream.number, stream.unit, stream.base, stream.index, stream.element_type,
                scale=stream.scale, offset=stream.offset, constant=stream.constant,
                nontemporal=stream.nontemporal, keep=stream.keep, queue=stream.queue,
            )  # fmt: skip
        case NextStream():
            return NextOp(stream.number, stream.unit, stream.source)
        case AluStream():
            return AluOp(stream.number, stream.unit, stream.operation, stream.lhs, stream.rhs)


def _row_op(row: Row) -> Operation:
    return RowOp(
        row.number, row.unit, row.base, row.index, row.pitch, row.length, row.element_type,
        offset=row.offset, clip=row.clip, table=row.table, rows=row.rows, in_bytes=row.in_bytes,
        nontemporal=row.nontemporal, keep=row.keep,
    )  # fmt: skip


def _push_op(push: Push) -> Operation:
    return PushOp(push.unit, push.event, push.id, push.operands)
