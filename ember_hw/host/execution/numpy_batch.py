"""A batch in the NumPy engine: its tokens, what can be computed of them at once, and their order.

Tokens conflict if they touch the same place: elements of a memory that the code writes, or a
variable's value. `levels` gives each token a level above those of the earlier tokens that it
conflicts with; tokens of one level can run at once. Tokens that only read a place, and calls of one
case that accumulate into it, share a level: `accumulate_in_order` keeps the order of the latter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.backend.execute_code import (
    Compute,
    GetVariable,
    Load,
    Pop,
    SetVariable,
    defines,
    is_row,
)
from ember_hw.compiler.backend.execute_operations import HALVES
from ember_hw.compiler.program import Callback
from ember_hw.host.execution.numpy_operations import DTYPES, Values, compute, wrap
from ember_hw.host.execution.numpy_plan import CasePlan, Plan, Span
from ember_hw.host.execution.queues import Batch

__all__ = ["BatchValues", "Tokens", "chains_of", "levels"]

_READ, _FINE, _FIRST_ACCUMULATION = 1, 2, 3
_MOST_SWEEPS = 64


@dataclass(frozen=True)
class Tokens:
    """All tokens of one case in a batch: bundle and time of each, times ascending."""

    callback: Callback
    plan: CasePlan
    bundles: NDArray[np.int64]
    times: NDArray[np.int64]


class BatchValues:
    """Free names and free variables of a batch.

    Parameters
    ----------
    plan : Plan
        Of the code.
    batch : Batch
        Bundles and rows.
    tokens : mapping of int to Tokens
        By case.
    shared : mapping of str to value
        What the entry computed.
    arrays : mapping of str to array
        Memories.
    now : mapping of int to value
        Each free variable's value before the batch; a row's is its number, negative if it is kept
        from an earlier batch.
    types : mapping of int to str
        Of variables.
    """

    def __init__(
        self,
        plan: Plan,
        batch: Batch,
        tokens: Mapping[int, Tokens],
        shared: Mapping[str, Values],
        arrays: Mapping[str, NDArray[Any]],
        now: Mapping[int, Values],
        types: Mapping[int, str],
    ) -> None:
        self.plan, self.batch, self.tokens = plan, batch, tokens
        self._shared, self._arrays, self._now, self._types = shared, arrays, now, types
        #: Statements of a case at most, so that `time * positions + position` orders them.
        self.positions = 1 + max((len(t.plan.case.body) for t in tokens.values()), default=0)
        self._statements = {
            case: {name: (position, s) for position, s in t.plan.free for name in defines(s)}
            for case, t in tokens.items()
        }
        self._operands = {
            case: {
                s.name: operand
                for s, operand in zip(
                    [s for s in t.plan.case.body if isinstance(s, Pop)],
                    t.callback.operands,
                    strict=True,
                )
            }
            for case, t in tokens.items()
        }
        self._values: dict[tuple[int, str], Values] = {}
        self._histories: dict[int, tuple[NDArray[np.int64], NDArray[Any]]] = {}

    def value(self, case: int, name: str) -> Values:
        """Return a free name's value for each token of a case, or one for all of them."""
        if name in self._shared:
            return self._shared[name]
        key = case, name
        if key not in self._values:
            self._values[key] = self._compute(case, name)
        return self._values[key]

    def is_free(self, case: int, name: str) -> bool:
        """Whether a name's values are known before the case runs."""
        return name in self._statements[case]

    def last(self, variable: int) -> Values:
        """Return a free variable's value behind the batch."""
        return self._history(variable)[1][-1]

    def at(self, variable: int, moments: NDArray[np.int64]) -> NDArray[Any]:
        """Return a free variable's value just before each moment."""
        times, values = self._history(variable)
        return values[np.searchsorted(times, moments, side="left")]

    def moments(self, case: int, position: int) -> NDArray[np.int64]:
        """Return when each token of a case runs a statement at its top."""
        return self.tokens[case].times * self.positions + position

    def _compute(self, case: int, name: str) -> Values:
        position, statement = self._statements[case][name]
        tokens = self.tokens[case]
        match statement:
            case Pop():
                operand = self._operands[case][name]
                if is_row(statement.type):
                    return self.batch.numbers[operand.index][tokens.bundles]
                words = self.batch.scalars[tokens.bundles, operand.index]
                if statement.type == "f32":
                    return words.view(np.float32)
                if statement.type in HALVES:
                    return words.astype(np.uint16).view(DTYPES[statement.type])
                return (
                    wrap(statement.type, words.view(np.int32))
                    if statement.type != "i1"
                    else (words & 1).astype(np.bool_)
                )
            case GetVariable():
                return self.at(statement.number, self.moments(case, position))
            case Compute():
                operands = [self.value(case, operand) for operand in statement.operands]
                return compute(statement.operation, statement.type, operands)
            case Load():
                array = self._arrays[statement.symbol]
                # Outside the array is an error of the token that comes to it.
                indices = [
                    np.clip(self.value(case, index), 0, max(extent - 1, 0))
                    for index, extent in zip(statement.indices, array.shape, strict=True)
                ]
                if array.size == 0:
                    return np.zeros(tokens.times.shape, array.dtype)
                return array[tuple(indices)]
            case _:
                raise AssertionError(statement)

    def _history(self, variable: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Return the moments of all writes, and the value before and after each."""
        if variable not in self._histories:
            self._histories[variable] = self._make_history(variable)
        return self._histories[variable]

    def _make_history(self, variable: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
        type_ = self._types[variable]
        dtype = np.dtype(np.int64) if is_row(type_) else DTYPES[type_]
        now = np.array([self._now[variable]], dtype)
        moments: list[NDArray[np.int64]] = []
        values: list[NDArray[Any]] = []
        sets: list[NDArray[np.bool_]] = []
        for case, tokens in self.tokens.items():
            for position, write in tokens.plan.writes:
                if write.number != variable or not tokens.times.size:
                    continue
                moments.append(self.moments(case, position))
                is_set = isinstance(write, SetVariable)
                value: Values
                value = (
                    self.value(case, write.value)
                    if isinstance(write, SetVariable)
                    else write.amount
                )
                values.append(np.broadcast_to(np.asarray(value, dtype), tokens.times.shape))
                sets.append(np.full(tokens.times.shape, is_set))
        if not moments:
            return np.zeros(0, np.int64), now
        times = np.concatenate(moments)
        order = np.argsort(times, kind="stable")
        times, written = times[order], np.concatenate(values)[order]
        is_set = np.concatenate(sets)[order]
        if is_set.all():
            return times, np.concatenate((now, written))
        total = np.cumsum(np.where(is_set, 0, written), dtype=np.int64)
        # What `total` lacks since the last set; the value before the batch counts as one.
        base = np.concatenate((now, np.where(is_set, written - total, 0)))
        last_set = np.maximum.accumulate(np.where(is_set, np.arange(1, is_set.size + 1), 0))
        return times, np.concatenate((now, wrap(type_, total + base[last_set])))


@dataclass(frozen=True)
class _Chain:
    """Accesses to places: key of the place, token, and what accesses may share a level."""

    keys: NDArray[np.int64]
    tokens: NDArray[np.int64]
    kinds: NDArray[np.int64]


def chains_of(
    values: BatchValues,
    ranks: Mapping[int, NDArray[np.int64]],
    arrays: Mapping[str, NDArray[Any]],
    segments: Mapping[tuple[int, int], NDArray[np.int64]],
) -> list[_Chain]:
    """Return the places that tokens touch.

    Parameters
    ----------
    values : BatchValues
        Of the batch.
    ranks : mapping of int to int64 (M,)
        Place of each case's tokens among all tokens of the batch.
    arrays : mapping of str to array
        Memories.
    segments : mapping of (int, int) to int64 (M,)
        By case and place in its cell accesses: the cell that each token accesses.
    """
    chains: list[_Chain] = []
    symbols = {a.symbol for t in values.tokens.values() for a in t.plan.memories}
    for symbol in sorted(symbols):
        chains += _memory_chains(symbol, values, ranks, arrays[symbol].shape)
    cells: dict[int, list[_Chain]] = {}
    for case, tokens in values.tokens.items():
        in_place = {a.variable for a in tokens.plan.cells if a.writes and not a.begins}
        for number, access in enumerate(tokens.plan.cells):
            if access.is_known:
                continue  # the cell begins with its value, before any token
            kind = 0
            if access.accumulates:
                kind = _FIRST_ACCUMULATION + case
            elif not access.writes and access.variable not in in_place:
                kind = _READ
            keys = segments[case, number]
            chain = _Chain(keys, ranks[case], np.full(keys.shape, kind))
            cells.setdefault(access.variable, []).append(chain)
    chains += [_join(parts) for parts in cells.values()]
    return [chain for chain in chains if chain.keys.size]


def _join(parts: Sequence[_Chain]) -> _Chain:
    return _Chain(
        np.concatenate([p.keys for p in parts]),
        np.concatenate([p.tokens for p in parts]),
        np.concatenate([p.kinds for p in parts]),
    )


def _memory_chains(
    symbol: str,
    values: BatchValues,
    ranks: Mapping[int, NDArray[np.int64]],
    shape: tuple[int, ...],
) -> list[_Chain]:
    accesses = [
        (case, access)
        for case, tokens in values.tokens.items()
        if tokens.times.size
        for access in tokens.plan.memories
        if access.symbol == symbol
    ]
    if not any(access.writes for _, access in accesses):
        return []

    def origin(case: int, span: Span) -> NDArray[np.int64]:
        assert span.origin is not None
        found = np.asarray(values.value(case, span.origin), np.int64)
        return np.broadcast_to(found, ranks[case].shape)

    def is_point(span: Span) -> bool:
        return span.origin is not None and span.width == 1

    rank = len(shape)
    known = 0
    while known < rank and all(is_point(access.spans[known]) for _, access in accesses):
        known += 1
    fine = [
        access.spans[-1].width
        for _, access in accesses
        if known == rank - 1 and access.spans[-1].origin is not None
    ]
    width = fine[0] if fine and len(set(fine)) == 1 else None
    if width is not None:
        parts = [(c, a.spans[-1]) for c, a in accesses if a.spans[-1].origin is not None]
        if any(bool(np.any(origin(case, span) % width)) for case, span in parts):
            width = None
    coarse_chain: list[_Chain] = []
    fine_chain: list[_Chain] = []
    has_coarse = width is None or len(fine) < len(accesses)
    for case, access in accesses:
        keys = np.zeros(ranks[case].shape, np.int64)
        for extent, span in zip(shape[:known], access.spans[:known], strict=True):
            keys = keys * extent + origin(case, span)
        is_alone = sum(c == case for c, _ in accesses) == 1
        kind = 0
        if access.accumulates:
            kind = _FIRST_ACCUMULATION + case
        elif not access.writes and (is_alone or not _writes(accesses, case)):
            kind = _READ
        is_fine = width is not None and access.spans[-1].origin is not None
        if has_coarse:
            coarse = _FINE if is_fine else kind
            coarse_chain.append(_Chain(keys, ranks[case], np.full(keys.shape, coarse)))
        if is_fine:
            assert width is not None
            keys = keys * (shape[-1] // width + 1) + origin(case, access.spans[-1]) // width
            fine_chain.append(_Chain(keys, ranks[case], np.full(keys.shape, kind)))
    return [_join(parts) for parts in (coarse_chain, fine_chain) if parts]


def _writes(accesses: Sequence[tuple[int, Any]], case: int) -> bool:
    return any(access.writes for other, access in accesses if other == case)


def levels(count: int, chains: Sequence[_Chain]) -> NDArray[np.int64]:
    """Return the level of each of `count` tokens.

    Along a chain, sorted by place and token, a level is at least the one before, and one more where
    the two accesses may not share it. Sweeps over all chains go on until nothing changes.
    """
    result = np.zeros(count, np.int64)
    sorted_chains: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]] = []
    for chain in chains:
        order = np.lexsort((chain.tokens, chain.keys))
        keys, tokens, kinds = chain.keys[order], chain.tokens[order], chain.kinds[order]
        begins = np.concatenate(([True], keys[1:] != keys[:-1]))
        shares = (tokens[1:] == tokens[:-1]) | ((kinds[1:] == kinds[:-1]) & (kinds[1:] > 0))
        steps = np.concatenate(([0], np.cumsum(~begins[1:] & ~shares)))
        apart = np.cumsum(begins) * (count + keys.size + 1)
        sorted_chains.append((tokens, steps, apart))
    for _ in range(_MOST_SWEEPS):
        before = result.copy()
        for tokens, steps, apart in sorted_chains:
            lifted = np.maximum.accumulate(result[tokens] - steps + apart) - apart + steps
            np.maximum.at(result, tokens, lifted)
        if len(sorted_chains) < 2 and _is_single(sorted_chains):
            return result
        if np.array_equal(before, result):
            return result
    return _levels_one_by_one(count, sorted_chains)


def _is_single(chains: Sequence[tuple[NDArray[np.int64], ...]]) -> bool:
    """Whether no token stands twice in the only chain."""
    return not chains or np.unique(chains[0][0]).size == chains[0][0].size


def _levels_one_by_one(
    count: int, chains: Sequence[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]
) -> NDArray[np.int64]:
    """Return the levels where chains cross too often for sweeps: token by token, in order."""
    edges: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for tokens, steps, apart in chains:
        is_linked = apart[1:] == apart[:-1]
        columns = (tokens[:-1], tokens[1:], steps[1:] - steps[:-1])
        links: list[list[int]] = np.stack([c[is_linked] for c in columns], axis=1).tolist()
        for earlier, later, step in links:
            if earlier != later:
                edges[later].append((earlier, step))
    result = [0] * count
    for token, found in enumerate(edges):
        if found:
            result[token] = max(result[earlier] + step for earlier, step in found)
    return np.array(result, np.int64)
