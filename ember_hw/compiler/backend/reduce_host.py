"""What the host does of a nest whose rows go through the reduce unit.

The host walks the loops that a result needs, without the rows, and runs the rest of the execute
code on results as on rows: where a result goes, the division of a mean, what becomes of an empty
bag. So its part is a nest of its own: an access program cut down to these loops, and execute code
made of the same cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ember_hw.compiler.backend.assemble import Assembly, assemble
from ember_hw.compiler.backend.execute_code import (
    Case,
    Compute,
    Constant,
    For,
    If,
    Pop,
    ReadRow,
    Statement,
    defines,
    is_row,
    reads,
    walk,
)
from ember_hw.compiler.backend.reduce_match import Pooling
from ember_hw.compiler.dialects.au import Event as EventName
from ember_hw.compiler.dialects.au import Slot, SlotKind
from ember_hw.compiler.dialects.au_program import (
    AccessProgram,
    AluStream,
    MemoryStream,
    NextStream,
    Push,
    Stream,
    Unit,
)
from ember_hw.compiler.nest import Callback, Nest, Operand, replay_config
from ember_hw.isa import Event, ReduceOperation

__all__ = ["narrowing_host", "pooled_host", "unpooled_host"]

_ZERO, _ONE = Slot(SlotKind.INTEGER, 0), Slot(SlotKind.INTEGER, 1)


def unpooled_host(program: AccessProgram, nest: Nest) -> Nest:
    """Return the host's part of a nest all of whose rows leave: all loops, and all of its code."""
    pushes = tuple(
        replace(push, operands=tuple(slot for slot in push.operands if not _is_row(slot)))
        for push in program.pushes
    )
    assembly = _assembled(program, len(program.units), pushes, nest)
    callbacks = tuple(
        replace(callback, operands=_operands(callback, _rows(nest, callback.id)))
        for callback in assembly.callbacks
    )
    return replace(assembly.nest(), callbacks=callbacks, code=nest.code)


def narrowing_host(part: Nest) -> Nest:
    """Return the host's part of a nest whose rows of half floats leave widened to fp32."""
    assert part.code is not None
    callbacks = tuple(
        replace(
            callback,
            operands=tuple(
                replace(operand, dtype="f32") if operand.kind == "row" else operand
                for operand in callback.operands
            ),
        )
        for callback in part.callbacks
    )
    types = part.code.types()
    cases = (
        replace(case, body=_narrowing(case.body, types, set(types))) for case in part.code.cases
    )
    return replace(part, callbacks=callbacks, code=replace(part.code, cases=tuple(cases)))


def _narrowing(
    body: Iterable[Statement], types: Mapping[str, str], taken: set[str]
) -> tuple[Statement, ...]:
    """Return statements in which each number of a row is made narrow as it is read."""
    narrowing: list[Statement] = []
    for statement in body:
        match statement:
            case Pop(name, type_) if is_row(type_):
                narrowing.append(Pop(name, "row<f32>"))
            case ReadRow(name):
                wide = _fresh(f"{name}_f32", taken)
                narrowing.append(replace(statement, name=wide))
                narrowing.append(Compute(name, types[name], "truncf", (wide,)))
            case For():
                narrowing.append(replace(statement, body=_narrowing(statement.body, types, taken)))
            case _:
                narrowing.append(statement)
    return tuple(narrowing)


def _fresh(what: str, taken: set[str]) -> str:
    """Return a name that is not taken, and take it."""
    number = 0
    while (name := f"{what}_{number}" if number else what) in taken:
        number += 1
    taken.add(name)
    return name


def pooled_host(
    program: AccessProgram, nest: Nest, pooling: Pooling, *, length: Slot | None
) -> tuple[Nest, int | None]:
    """Return the host's part of a nest whose rows are pooled.

    In each iteration of the result's level it does, one after the other, what the iteration and the
    begin of the pooled loop started, stores the result, and does what the loop's end started.

    Parameters
    ----------
    program : AccessProgram
        Of the nest.
    nest : Nest
        With its code.
    pooling : Pooling
        What the unit does of it.
    length : Slot, optional
        The value that tells a row's bytes, where one does.

    Returns
    -------
    nest : Nest
        The part.
    length_scalar : int or None
        Scalar of its bundles that is the length.
    """
    assert nest.code is not None
    part = _PooledCase(program, nest, pooling, length)
    level = max(pooling.level, 0)
    unit = program.units[level].number
    merged = Push(unit, EventName.ITERATE, pooling.case.id, tuple(part.slots))
    kept = [push for push in program.pushes if push.id not in part.taken]
    depth = pooling.level + 1
    if depth == 0:  # one result in all: the walk is a single iteration
        program = replace(program, units=(Unit(unit, None, _ZERO, _ONE, None, 1),))
    assembly = _assembled(program, max(depth, 1), (*kept, merged), nest)
    row = Operand("row", 0, "f32")
    callbacks = tuple(
        replace(callback, operands=_operands(callback, {part.row_position: row}))
        if callback.id == pooling.case.id
        else callback
        for callback in assembly.callbacks
    )
    (operands,) = (c.operands for c in callbacks if c.id == pooling.case.id)
    place = part.length_position
    scalar = None if place is None else operands[place].index
    cases = [case for case in nest.code.cases if case.id not in part.taken]
    code = replace(nest.code, cases=(*cases, Case(pooling.case.id, part.body)))
    return replace(assembly.nest(), callbacks=callbacks, code=code), scalar


class _PooledCase:
    """The case that a result starts.

    Attributes
    ----------
    body : tuple of Statement
        Of the case.
    slots : list of Slot
        What it pops, but for the result.
    row_position, length_position : int
        Which of its operands are the result and its length.
    taken : set of int
        Cases whose statements are in it.
    """

    def __init__(
        self, program: AccessProgram, nest: Nest, pooling: Pooling, length: Slot | None
    ) -> None:
        assert nest.code is not None
        self.slots: list[Slot] = []
        self.taken = {pooling.case.id}
        self.length_position: int | None = None
        self._names = set(nest.code.types())
        self._pops: list[Statement] = []
        self._pushed = {push.id: push.operands for push in program.pushes}
        body: list[Statement] = []
        for event, level in ((Event.ITERATE, pooling.level), (Event.BEGIN, pooling.level + 1)):
            body += self._whole(nest, event, level)
        body += self._result(program, pooling)
        body += self._whole(nest, Event.END, pooling.level + 1)
        if length is not None:
            if length not in self.slots:
                self._pop("length", length)
            place = self.slots.index(length)
            self.length_position = place + (place >= self.row_position)
        self.body = (*self._pops, *body)

    def _whole(self, nest: Nest, event: Event, level: int) -> Iterator[Statement]:
        """Yield the statements of a callback's case, if there is one."""
        assert nest.code is not None
        for callback in nest.callbacks:
            if (callback.event, callback.level) != (event, level):
                continue
            self.taken.add(callback.id)
            case = nest.code.case(callback.id)
            slots = iter(self._pushed[callback.id])
            for statement in case.body:
                if isinstance(statement, Pop):
                    self._pops.append(statement)
                    self.slots.append(next(slots))
                else:
                    yield statement

    def _result(self, program: AccessProgram, pooling: Pooling) -> Iterator[Statement]:
        """Yield what stores a result: where the pooled loop's case would have stored its sum."""
        case, loop = pooling.case, pooling.loop
        value = _fresh("result", self._names)
        store = replace(
            loop,
            body=(
                ReadRow(value, pooling.row.name, loop.index),
                replace(pooling.store, value=value),
            ),
        )
        needed = _needed(case.body, {loop.lower, loop.upper, loop.step, *pooling.indices})
        slots = dict(zip(_pops(case), self._pushed[case.id], strict=True))
        for statement in case.body:
            if isinstance(statement, Pop):
                if statement.name == pooling.row.name:
                    self.row_position = len(self.slots)
                    self._pops.append(replace(statement, type="row<f32>"))
                elif statement.name in needed:
                    self._pops.append(statement)
                    self.slots.append(slots[statement.name])
            elif not isinstance(statement, For) and set(defines(statement)) & needed:
                yield statement
        if pooling.operation is ReduceOperation.MAXIMUM:
            yield from self._if_it_ran(program.units[pooling.level + 1], store)
        else:
            yield store

    def _if_it_ran(self, unit: Unit, store: Statement) -> Iterator[Statement]:
        """Yield a statement that runs if a loop had an iteration: no row leaves no maximum."""
        if unit.upper_offset is not None:  # of so many iterations, from a bound on
            yield store
            return
        bounds: list[str] = []
        for what, slot in (("first", unit.lower), ("last", unit.upper)):
            if slot.kind is SlotKind.INTEGER:
                name = _fresh(what, self._names)
                yield Constant(name, "index", slot.number)
            else:
                name = self._pop(what, slot)
            bounds.append(name)
        ran = _fresh("ran", self._names)
        yield Compute(ran, "i1", "cmpi_slt", tuple(bounds))
        yield If(ran, (store,))

    def _pop(self, what: str, slot: Slot) -> str:
        name = _fresh(what, self._names)
        self._pops.append(Pop(name, "index"))
        self.slots.append(slot)
        return name


def _needed(body: Iterable[Statement], names: set[str]) -> set[str]:
    """Return names and all that they are computed from in a case."""
    needed = set(names)
    for statement in reversed(tuple(body)):
        if not isinstance(statement, For) and set(defines(statement)) & needed:
            needed.update(reads(statement))
    return needed


def _pops(case: Case) -> list[str]:
    return [statement.name for statement in walk(case.body) if isinstance(statement, Pop)]


def _is_row(slot: Slot) -> bool:
    return slot.kind is SlotKind.ROW


def _rows(nest: Nest, callback_id: int) -> dict[int, Operand]:
    """Return the row operands of a callback by their place."""
    (callback,) = (c for c in nest.callbacks if c.id == callback_id)
    return {place: o for place, o in enumerate(callback.operands) if o.kind == "row"}


def _operands(callback: Callback, rows: Mapping[int, Operand]) -> tuple[Operand, ...]:
    """Return a callback's operands with rows at their places."""
    scalars = iter(callback.operands)
    count = len(callback.operands) + len(rows)
    return tuple(rows[place] if place in rows else next(scalars) for place in range(count))


def _assembled(
    program: AccessProgram, depth: int, pushes: tuple[Push, ...], nest: Nest
) -> Assembly:
    """Assemble the outer loops of a program, without rows, and with the streams that they need."""
    units = program.units[:depth]
    numbers = {unit.number for unit in units}
    streams = tuple(stream for stream in program.streams if stream.unit in numbers)
    cut = replace(program, units=units, rows=(), pushes=pushes)
    config = replay_config(nest.microcode.config)
    return assemble(replace(cut, streams=tuple(_used(cut, streams))), config)


def _used(program: AccessProgram, streams: tuple[Stream, ...]) -> Iterator[Stream]:
    """Yield the streams whose values bounds or pushes need, in their order."""
    by_number = {stream.number: stream for stream in streams}
    needed: set[int] = set()
    pending = [slot for push in program.pushes for slot in push.operands]
    pending += [slot for unit in program.units for slot in (unit.lower, unit.upper)]
    while pending:
        slot = pending.pop()
        if slot.kind is not SlotKind.STREAM or slot.number in needed:
            continue
        needed.add(slot.number)
        match by_number[slot.number]:
            case MemoryStream() as stream:
                parts = (stream.index, stream.scale, stream.offset)
                pending += [part for part in parts if part is not None]
            case NextStream() as stream:
                pending.append(Slot(SlotKind.STREAM, stream.source))
            case AluStream() as stream:
                pending += [stream.lhs, stream.rhs]
    yield from (stream for stream in streams if stream.number in needed)
