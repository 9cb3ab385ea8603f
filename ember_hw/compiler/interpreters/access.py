"""
The access side of `dlc`: units, their streams, and what is pushed when.

Per event the access agent pushes the token, then the operands in text order; the root unit's end
pushes the done token. A row goes through the data queue entry by entry, so it may be longer than
the queue. Rules that need the whole program, which the op verifiers can't see, are checked here
again: an interpreter must not give meaning to text without one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import IsTerminator

from ember_hw.compiler.dialects import dlc
from ember_hw.compiler.dialects.dlc import Event
from ember_hw.compiler.dialects.stream_types import head_type
from ember_hw.compiler.interpreters.frame import Frame, Handlers, Lowering, Step, iterations
from ember_hw.compiler.interpreters.queues import DONE, Entry, Push, Queue
from ember_hw.compiler.interpreters.values import Array, as_memref, out_of_bounds
from ember_hw.errors import CheckError

__all__ = ["ACCESS", "AccessProgram", "row_entries", "row_view"]

ACCESS = Handlers()


def row_view(array: Array, position: Sequence[int], length: int, what: str) -> Array:
    """Return `length` elements of the last dimension from a position, which must lie in it."""
    *outer, first = position
    inside = all(0 <= i < extent for i, extent in zip(outer, array.shape, strict=False))
    if not inside or first < 0 or length < 0 or first + length > array.shape[-1]:
        raise out_of_bounds(f"{what} of length {length}", position, array.shape)
    return array[tuple(outer)][first : first + length]


def row_entries(type_: Attribute, row: Array, entry_elements: int) -> Iterator[Push]:
    """Push a row, `entry_elements` at a time; memory is read when an entry is reached."""
    starts = range(0, row.size, entry_elements) or range(1)  # an empty row is one empty entry
    for start in starts:
        part = row[start : start + entry_elements].copy()
        yield Queue.DATA, Entry(type_, part, last=start == starts[-1])


@dataclass
class _Unit:
    """A traversal unit: slots of its bounds and value, and what happens when."""

    number: int
    parent: _Unit | None
    bounds: tuple[int, int, int]
    value: int
    steps: list[Step] = field(default_factory=lambda: list[Step]())
    children: list[_Unit] = field(default_factory=lambda: list[_Unit]())
    tokens: dict[Event, int] = field(default_factory=lambda: dict[Event, int]())
    operands: dict[Event, list[tuple[int, Attribute]]] = field(
        default_factory=lambda: {event: list[tuple[int, Attribute]]() for event in Event}
    )

    def is_below(self, other: _Unit | None) -> bool:
        """Whether this unit is `other` or inside it; None stands for the host."""
        return (
            other is None
            or self is other
            or (self.parent is not None and self.parent.is_below(other))
        )


class AccessProgram:
    """
    An access region as units.

    Parameters
    ----------
    op : dlc.ConfigureAccessEngineOp
        The region.
    lowering : Lowering
        Of the function around it.
    """

    def __init__(self, op: dlc.ConfigureAccessEngineOp, lowering: Lowering) -> None:
        self._lowering = lowering
        self._units: list[_Unit] = []
        self._by_value: dict[SSAValue, _Unit] = {}
        self._owners: dict[SSAValue, _Unit | None] = {}
        self._constant_steps: list[Step] = []
        for inner in op.body.block.ops:
            self._add(inner)
        for unit in self._units:
            for event in Event:
                if unit.operands[event] and event not in unit.tokens:
                    raise CheckError(
                        f"operands of event {event} of unit {unit.number} must come with a "
                        "callback on it, not alone"
                    )
        roots = [unit.number for unit in self._units if unit.parent is None]
        if len(roots) != 1:
            raise CheckError(f"access program must have one root unit, not {len(roots)}")

    def _add(self, op: Operation) -> None:
        if isinstance(op, dlc.NewTuOp):
            self._add_unit(op)
        elif isinstance(op, dlc.GetIndVarOp):
            unit = self._by_value[op.tu]
            self._lowering.alias(op.result, unit.value)
            self._owners[op.result] = unit
        elif isinstance(op, dlc.RegisterCallbackOp):
            unit, event = self._by_value[op.tu], op.event.data
            if event in unit.tokens:
                raise CheckError(
                    f"event {event} of unit {unit.number} must have one callback, not 2"
                )
            unit.tokens[event] = op.id.value.data
        elif isinstance(op, dlc.RegisterOperandOp):
            self._add_operand(op)
        elif not op.has_trait(IsTerminator):
            owner = self._owner(op)
            for result in op.results:
                self._owners[result] = owner
            step = self._lowering.step(op)
            if step is not None:
                (self._constant_steps if owner is None else owner.steps).append(step)

    def _add_unit(self, op: dlc.NewTuOp) -> None:
        number = len(self._units)
        above = number - 1 if op.under is None else op.under.value.data
        if not (-1 if number == 0 else 0) <= above < number:
            raise CheckError(f"parent of unit {number} must be a unit before it, not {above}")
        parent = self._units[above] if number else None
        slot = self._lowering.slot
        bounds = slot(op.lower_bound), slot(op.upper_bound), slot(op.step)
        for bound in op.operands:
            self._check_visible(bound, parent, f"bound of unit {number}")
        unit = _Unit(number, parent, bounds, self._lowering.constant_slot(None))
        if parent is not None:
            parent.children.append(unit)
        self._units.append(unit)
        self._by_value[op.result] = unit

    def _add_operand(self, op: dlc.RegisterOperandOp) -> None:
        unit, event = self._by_value[op.tu], op.event.data
        holder = unit if event is Event.ITERATE else unit.parent
        self._check_visible(op.value, holder, f"operand of event {event} of unit {unit.number}")
        operand = self._lowering.slot(op.value), head_type(op.value.type)
        unit.operands[event].append(operand)

    def _check_visible(self, value: SSAValue, holder: _Unit | None, what: str) -> None:
        owner = self._owners.get(value)
        if owner is not None and (holder is None or not holder.is_below(owner)):
            raise CheckError(
                f"{what} must be a stream of the unit it is read on or of one above, "
                f"not of unit {owner.number}"
            )

    def _owner(self, op: Operation) -> _Unit | None:
        """Deepest unit among those of the operands; the others must be above it."""
        deepest: _Unit | None = None
        for operand in op.operands:
            owner = self._owners.get(operand)
            if owner is None:
                continue
            if owner.is_below(deepest):
                deepest = owner
            elif deepest is not None and not deepest.is_below(owner):
                raise CheckError(
                    f"operands of {op.name} must be streams of units below one another, "
                    f"not of units {deepest.number} and {owner.number}"
                )
        return deepest

    def start(self, frame: Frame, entry_elements: int) -> Iterator[Push]:
        """Walk the units, with rows of `entry_elements` elements an entry; the access agent."""
        for step in self._constant_steps:
            step(frame)
        yield from self._walk(self._units[0], frame, entry_elements)
        yield Queue.CONTROL, DONE

    def _walk(self, unit: _Unit, frame: Frame, width: int) -> Iterator[Push]:
        yield from self._push(unit, Event.BEGIN, frame, width)
        lower, upper, step = (frame[slot] for slot in unit.bounds)
        for value in iterations("dlc.new_tu", lower, upper, step):
            frame[unit.value] = value
            for stream in unit.steps:
                stream(frame)
            yield from self._push(unit, Event.ITERATE, frame, width)
            for child in unit.children:
                yield from self._walk(child, frame, width)
        yield from self._push(unit, Event.END, frame, width)

    def _push(self, unit: _Unit, event: Event, frame: Frame, width: int) -> Iterator[Push]:
        if event not in unit.tokens:
            return
        yield Queue.CONTROL, unit.tokens[event]
        for slot, type_ in unit.operands[event]:
            if as_memref(type_) is not None:
                yield from row_entries(type_, frame[slot], width)
            else:
                yield Queue.DATA, Entry(type_, frame[slot])


@ACCESS.register(dlc.RowStreamOp)
def _row_stream(op: dlc.RowStreamOp, lowering: Lowering) -> Step:
    array, length = lowering.slot(op.memref), lowering.slot(op.length)
    positions, target = lowering.slots(op.indices), lowering.slot(op.result)

    def run(frame: Frame) -> None:
        position = [*(frame[slot] for slot in positions), 0]
        frame[target] = row_view(frame[array], position, frame[length], "dlc.row_stream")

    return run
