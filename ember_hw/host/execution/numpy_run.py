"""Runs statements for many tokens at once: a name's value is an array with an element for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.backend.execute_code import (
    Compute,
    Constant,
    Extent,
    For,
    GetVariable,
    If,
    Increment,
    Load,
    Pop,
    ReadRow,
    Scalar,
    SetVariable,
    Store,
)
from ember_hw.host.execution.checks import Checked
from ember_hw.host.execution.numpy_checks import check
from ember_hw.host.execution.numpy_frame import Frame
from ember_hw.host.execution.numpy_lanes import fold_of, folded, is_rectangle
from ember_hw.host.execution.numpy_operations import DTYPES, Values, compute, wrap
from ember_hw.host.execution.numpy_plan import Accumulation
from ember_hw.host.execution.numpy_rows import Rows
from ember_hw.host.execution.numpy_sums import accumulate_in_order

__all__ = ["Runner"]

#: Groups of tokens with loops of different lengths that still run as rectangles.
_MOST_RECTANGLES = 8


class Runner:
    """Runs statements.

    Parameters
    ----------
    types : mapping of str to str
        Of names.
    arrays : mapping of str to array
        Memories, by symbol.
    scalars : mapping of str to int
        Index arguments, by symbol.
    stepwise : bool
        Whether memories may overlap: then loops run element by element.

    Attributes
    ----------
    rows : Rows
        Of the batch.
    cells : dict of int to array
        Values of variables that aren't free.
    """

    def __init__(
        self,
        types: Mapping[str, str],
        arrays: Mapping[str, NDArray[Any]],
        scalars: Mapping[str, int],
        *,
        stepwise: bool,
    ) -> None:
        self.types, self.arrays, self.scalars, self.stepwise = types, arrays, scalars, stepwise
        self.rows: Rows | None = None
        self.cells: dict[int, NDArray[Any]] = {}
        self.is_free: Callable[[str], bool] = lambda _: False
        self.accumulations: dict[str, Accumulation] = {}
        self._skipped: set[str] = set()
        self._done: Set[int] = frozenset()

    def enter(
        self,
        is_free: Callable[[str], bool],
        accumulations: Iterable[Accumulation],
        done: Set[int] = frozenset(),
    ) -> None:
        """Say what of the statements to come needs no computing, and what accumulates.

        `done` are the ids of sets of variables whose cells begin with their values.
        """
        self._done = done
        self.is_free = is_free
        self.accumulations = {a.combined: a for a in accumulations}
        self._skipped = {n for a in self.accumulations.values() for n in (a.read, a.combined)}

    def run(self, frame: Frame, statements: Iterable[Checked]) -> None:
        """Run statements for the tokens of a frame."""
        for statement in statements:
            name = getattr(statement, "name", None)
            if isinstance(name, str) and (name in self._skipped or self.is_free(name)):
                continue
            self._statement(frame, statement)

    def _statement(self, frame: Frame, statement: Checked) -> None:
        match statement:
            case Constant():
                frame[statement.name] = DTYPES[statement.type].type(statement.value)
            case Extent():
                extent = self.arrays[statement.symbol].shape[statement.dimension]
                frame[statement.name] = np.int64(extent)
            case Scalar():
                frame[statement.name] = np.int64(self.scalars[statement.symbol])
            case Compute():
                operands = [frame[operand] for operand in statement.operands]
                found = compute(statement.operation, statement.type, operands)
                frame[statement.name] = found
            case Load():
                place = tuple(frame[index] for index in statement.indices)
                frame[statement.name] = self.arrays[statement.symbol][place]
            case Store():
                self._store(frame, statement)
            case ReadRow():
                assert self.rows is not None
                numbers = frame.each(frame[statement.row])
                rows = self.rows.named(statement.row)
                frame[statement.name] = rows.elements(numbers, frame[statement.index])
            case GetVariable():
                found = frame[f"#{id(statement)}"]  # its cell, or the value itself
                cells = self.cells.get(statement.number)
                frame[statement.name] = found if cells is None else cells[frame.each(found)]
            case SetVariable() | Increment():
                self._set(frame, statement)
            case For():
                self._loop(frame, statement)
            case If():
                self._branches(frame, statement)
            case Pop():
                raise AssertionError("operands are free")
            case _:
                check(frame, statement, self.arrays, self.rows)

    def _cell(self, frame: Frame, statement: SetVariable | Increment) -> Any:
        return frame.each(frame[f"#{id(statement)}"])

    def _set(self, frame: Frame, statement: SetVariable | Increment) -> None:
        cells = self.cells.get(statement.number)
        if cells is None or id(statement) in self._done:
            return  # its values are known
        at = self._cell(frame, statement)
        if isinstance(statement, Increment):
            type_ = next(t for t, d in DTYPES.items() if d == cells.dtype)
            cells[at] = wrap(type_, cells[at].astype(np.int64) + statement.amount)
        elif (found := self.accumulations.get(statement.value)) is not None:
            values = frame.each(frame[found.value])[:, None]
            accumulate_in_order(found.operation, cells[:, None], at, values)
        else:
            cells[at] = frame[statement.value]

    def _store(self, frame: Frame, store: Store) -> None:
        array = self.arrays[store.symbol]
        found = self.accumulations.get(store.value)
        if found is None:
            place = tuple(frame.each(frame[index]) for index in store.indices)
            array[place] = frame.each(frame[store.value])
            return
        flat = self._flat_place(frame, store.indices, array.shape)
        values = frame.each(frame[found.value])[:, None]
        accumulate_in_order(found.operation, array.reshape(-1, 1), flat, values)

    def _flat_place(
        self, frame: Frame, indices: tuple[str, ...], shape: tuple[int, ...]
    ) -> NDArray[np.int64]:
        flat: NDArray[np.int64] = np.zeros(frame.times.shape, np.int64)
        for extent, index in zip(shape, indices, strict=True):
            flat = flat * extent + frame[index]
        return flat

    def _branches(self, frame: Frame, statement: If) -> None:
        condition = np.array(frame.each(frame[statement.condition]))
        merged = {
            m.name: np.empty(condition.shape, DTYPES[self.types[m.name]]) for m in statement.merged
        }
        for body, chosen in ((statement.then, condition), (statement.otherwise, ~condition)):
            index = np.flatnonzero(chosen)
            if not index.size:
                continue
            inner = frame.subset(index)
            self.run(inner, body)
            for m in statement.merged:
                merged[m.name][index] = inner[m.if_true if body is statement.then else m.if_false]
        for name, value in merged.items():
            frame[name] = value

    def _loop(self, frame: Frame, loop: For) -> None:
        bounds = [frame[name] for name in (loop.lower, loop.upper, loop.step)]
        if self.stepwise or not is_rectangle(loop):
            self._by_steps(frame, loop, bounds)
            return
        if not any(np.ndim(bound) for bound in bounds):
            self._rectangle(frame, loop, *(int(bound) for bound in bounds))
            return
        columns = np.stack([frame.each(bound) for bound in bounds], axis=1)
        if bool(np.all(columns == columns[:1])):
            self._rectangle(frame, loop, *columns[0].tolist())
            return
        kinds, which = np.unique(columns, axis=0, return_inverse=True)
        if len(kinds) > _MOST_RECTANGLES:
            self._by_steps(frame, loop, bounds)
            return
        results = {
            c.result: np.empty(frame.times.shape, DTYPES[self.types[c.result]])
            for c in loop.carried
        }
        which = which.reshape(-1)
        for number, kind in enumerate(kinds.tolist()):
            index = np.flatnonzero(which == number)
            inner = frame.subset(index)
            self._rectangle(inner, loop, *kind)
            for name, value in results.items():
                value[index] = inner[name]
        for name, value in results.items():
            frame[name] = value

    def _by_steps(self, frame: Frame, loop: For, bounds: list[Values]) -> None:
        """Run a loop iteration by iteration, for the tokens that have the iteration."""
        lower, upper, step = (np.array(frame.each(bound)) for bound in bounds)
        trips = np.maximum(-((lower - upper) // step), 0)
        carried = {c.argument: np.array(frame.each(frame[c.initial])) for c in loop.carried}
        for trip in range(int(trips.max(initial=0))):
            index = np.flatnonzero(trips > trip)
            inner = frame.subset(index)
            inner[loop.index] = (lower + trip * step)[index]
            for c in loop.carried:
                inner[c.argument] = carried[c.argument][index]
            self.run(inner, loop.body)
            for c, value in [(c, inner[c.following]) for c in loop.carried]:
                carried[c.argument][index] = value
        for c in loop.carried:
            frame[c.result] = carried[c.argument]

    def _rectangle(self, frame: Frame, loop: For, lower: int, upper: int, step: int) -> None:
        """Run a loop of the same length for all tokens: an axis of the arrays."""
        count = max(-((lower - upper) // step), 0)
        if not count:
            for c in loop.carried:
                frame[c.result] = frame[c.initial]
            return
        folds = {c.following: c for c in loop.carried}
        lanes = frame.lanes()
        lanes[loop.index] = lower + np.arange(count, dtype=np.int64)[None, :] * step
        for statement in loop.body:
            match statement:
                case Compute() if statement.name in folds or statement.name in self._skipped:
                    pass
                case Load() if statement.name in self._skipped:
                    pass
                case Load():
                    place = tuple(lanes[index] for index in statement.indices)
                    array = self.arrays[statement.symbol]
                    is_row = statement.indices[-1:] == (loop.index,) and lower == 0 and step == 1
                    if is_row and count == array.shape[-1] and array.ndim == 2:
                        outer = np.asarray(place[0]).reshape(-1)
                        lanes[statement.name] = array[outer]
                    else:
                        lanes[statement.name] = array[place]
                case ReadRow():
                    assert self.rows is not None
                    numbers = frame.each(frame[statement.row])
                    rows = self.rows.named(statement.row)
                    lanes[statement.name] = (
                        rows.block(numbers, lower, count, step)
                        if statement.index == loop.index
                        else rows.elements(numbers, lanes[statement.index])
                    )
                case Store():
                    self._store_lanes(lanes, statement, count, step)
                case _:
                    self._statement(lanes, statement)
        for c in loop.carried:
            fold = fold_of(loop, c.argument, c.following)
            assert fold is not None
            value = np.broadcast_to(lanes[fold[1]], (frame.times.size, count))
            frame[c.result] = folded(
                fold[0], self.types[c.result], frame.each(frame[c.initial]), value
            )

    def _store_lanes(self, lanes: Frame, store: Store, count: int, step: int) -> None:
        array, tokens = self.arrays[store.symbol], lanes.times.size
        shape = tokens, count
        found = self.accumulations.get(store.value)
        if found is None:
            place = tuple(np.broadcast_to(lanes[index], shape) for index in store.indices)
            array[place] = np.broadcast_to(lanes[store.value], shape)
            return
        values = np.broadcast_to(lanes[found.value], shape)
        first: NDArray[np.int64] = np.zeros(tokens, np.int64)
        for extent, index in zip(array.shape, store.indices, strict=True):
            at = np.broadcast_to(lanes[index], shape)[:, 0]
            first = first * extent + at
        if step == 1 and count == array.shape[-1]:
            accumulate_in_order(found.operation, array.reshape(-1, count), first // count, values)
            return
        cells, which = np.unique(first, return_inverse=True)
        flat = array.reshape(-1)
        place = cells[:, None] + np.arange(count)[None, :] * step
        totals = flat[place]
        accumulate_in_order(found.operation, totals, which.reshape(-1), values)
        flat[place] = totals
