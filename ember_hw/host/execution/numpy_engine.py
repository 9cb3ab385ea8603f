"""The engine `numpy`: execute code on arrays, many tokens at once; needs no C compiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.backend.execute_code import SetVariable, defines, is_row
from ember_hw.compiler.program import Callback
from ember_hw.errors import DeviceError
from ember_hw.host.execution.checks import CheckedCode
from ember_hw.host.execution.numpy_batch import BatchValues, Tokens, chains_of, levels
from ember_hw.host.execution.numpy_cases import make_plan
from ember_hw.host.execution.numpy_frame import Failure, Frame
from ember_hw.host.execution.numpy_operations import DTYPES, Values
from ember_hw.host.execution.numpy_rows import Rows
from ember_hw.host.execution.numpy_run import Runner
from ember_hw.host.execution.queues import Batch, RowEntry

__all__ = ["NumpyEngine"]


class NumpyEngine:
    """Runs execute code on arrays; the parameters are those of `CEngine`.

    Raises
    ------
    DeviceError
        A check of the code's entry fails.
    """

    def __init__(
        self,
        code: CheckedCode,
        callbacks: Sequence[tuple[Callback, int]],
        entries: Sequence[RowEntry],
        bundle_scalars: int,
        arrays: Mapping[str, NDArray[Any]],
        scalars: Mapping[str, int],
    ) -> None:
        self._code, self._callbacks, self._arrays = code, callbacks, arrays
        self._calls = {callback.id: 0 for callback, _ in callbacks}
        self._plan = make_plan(code.code)
        self._types = {variable.number: variable.type for variable in code.code.variables}
        self._is_serial = not code.code.no_alias and self._overlap()
        self._runner = Runner(code.types, arrays, scalars, stepwise=self._is_serial)
        entry = Frame(np.zeros(1, np.int64), lambda name: self._shared[name])
        self._shared: dict[str, Values] = {}
        self._run_all(entry, code.entry)
        for statement in code.code.entry:
            for name in defines(statement):
                self._shared[name] = entry[name]
        self._now: dict[int, Values] = {}
        self._kept: dict[int, NDArray[Any]] = {}
        for variable in code.code.variables:
            if is_row(variable.type):
                self._now[variable.number] = -1 - variable.number
            else:
                initial = variable.initial
                dtype = DTYPES[variable.type]
                self._now[variable.number] = (
                    dtype.type(0) if initial is None else dtype.type(self._shared[initial])
                )

    @property
    def calls(self) -> dict[int, int]:
        """Calls so far, by callback id."""
        return self._calls

    def finish(self) -> None:
        """Run the code's end."""
        frame = Frame(np.zeros(1, np.int64), self._at_the_end)
        self._runner.cells = {
            number: np.array([value], DTYPES[self._types[number]])
            for number, value in self._now.items()
            if not is_row(self._types[number])
        }
        self._runner.enter(lambda _: False, ())
        self._run_all(frame, self._code.end)

    def run(self, batch: Batch) -> None:
        """Run the callbacks of a batch; DeviceError if a check fails."""
        tokens: dict[int, Tokens] = {}
        for rank, (callback, mask) in enumerate(self._callbacks):
            bundles = np.flatnonzero(batch.events & np.uint32(mask))
            times = bundles * len(self._callbacks) + rank
            tokens[callback.id] = Tokens(callback, self._plan.cases[callback.id], bundles, times)
            self._calls[callback.id] += bundles.size
        if not tokens:
            return
        values = BatchValues(
            self._plan, batch, tokens, self._shared, self._arrays, self._now, self._types
        )
        self._runner.rows = Rows(batch, self._kept, self._code.types)
        segments = self._make_cells(values)
        groups = self._groups(values, segments)
        failure = self._run_groups(values, segments, groups)
        if failure is not None:
            raise DeviceError(self._code.errors[failure.check](failure.value, failure.limit))
        self._carry_over(values)

    def _run_groups(
        self,
        values: BatchValues,
        segments: Mapping[tuple[int, int], NDArray[np.int64]],
        groups: Sequence[tuple[int, NDArray[np.int64]]],
    ) -> Failure | None:
        """Run groups of tokens of one case; return the failure of the earliest token."""
        failure: Failure | None = None
        for case, members in groups:
            tokens = values.tokens[case]
            while True:
                if failure is not None:
                    members = members[tokens.times[members] < failure.time]
                if not members.size:
                    break
                try:
                    self._run_group(values, segments, case, members)
                    break
                except Failure as found:
                    failure = found
        return failure

    def _run_group(
        self,
        values: BatchValues,
        segments: Mapping[tuple[int, int], NDArray[np.int64]],
        case: int,
        members: NDArray[np.int64],
    ) -> None:
        tokens = values.tokens[case]
        by_statement = {
            f"#{id(access.statement)}": segments[case, number]
            for number, access in enumerate(tokens.plan.cells)
        } | {
            f"#{id(get)}": values.at(get.number, values.moments(case, position))
            for position, get in tokens.plan.inner_gets
        }
        is_all = members.size == tokens.times.size

        def outside(name: str) -> Values:
            found = by_statement[name] if name in by_statement else values.value(case, name)
            return found if is_all or not np.ndim(found) else found[members]

        frame = Frame(tokens.times if is_all else tokens.times[members], outside)
        is_serial = self._is_serial
        self._runner.enter(
            lambda name: values.is_free(case, name),
            () if is_serial else tokens.plan.accumulations,
            {id(access.statement) for access in tokens.plan.cells if access.is_known},
        )
        self._runner.run(frame, self._code.cases[case])

    def _make_cells(self, values: BatchValues) -> dict[tuple[int, int], NDArray[np.int64]]:
        """Make the cells of variables that aren't free; return which one each access has."""
        self._runner.cells = {}
        segments: dict[tuple[int, int], NDArray[np.int64]] = {}
        for variable, type_ in self._types.items():
            if variable in self._plan.free_variables:
                continue
            begins = [
                values.moments(case, access.position)
                for case, tokens in values.tokens.items()
                for access in tokens.plan.cells
                if access.variable == variable and access.begins
            ]
            moments = np.sort(np.concatenate(begins)) if begins else np.zeros(0, np.int64)
            cells = np.zeros(moments.size + 1, DTYPES[type_])
            cells[0] = self._now[variable]
            self._runner.cells[variable] = cells
            for case, tokens in values.tokens.items():
                for number, access in enumerate(tokens.plan.cells):
                    if access.variable == variable:
                        side = "right" if access.begins else "left"
                        at = values.moments(case, access.position)
                        segments[case, number] = np.searchsorted(moments, at, side=side)
                        if access.is_known:
                            assert isinstance(access.statement, SetVariable)
                            known = values.value(case, access.statement.value)
                            cells[segments[case, number]] = known
        return segments

    def _groups(
        self, values: BatchValues, segments: Mapping[tuple[int, int], NDArray[np.int64]]
    ) -> list[tuple[int, NDArray[np.int64]]]:
        """Return the tokens in groups that run at once, none before what it needs."""
        cases = list(values.tokens)
        times = np.concatenate([values.tokens[case].times for case in cases])
        order = np.argsort(times, kind="stable")
        ranks = np.empty(order.size, np.int64)
        ranks[order] = np.arange(order.size)
        sizes = [values.tokens[case].times.size for case in cases]
        edges = np.cumsum([0, *sizes])
        by_case = {c: ranks[a:b] for c, a, b in zip(cases, edges, edges[1:], strict=False)}
        if self._is_serial:
            level = np.arange(order.size)
        else:
            level = levels(order.size, chains_of(values, by_case, self._arrays, segments))
        groups: list[tuple[int, int, NDArray[np.int64]]] = []
        for case in cases:
            mine = level[by_case[case]]
            if not mine.size:
                continue
            members = np.argsort(mine, kind="stable")
            starts = np.flatnonzero(np.diff(mine[members], prepend=-1))
            parts = np.split(members, starts[1:])
            groups += [(int(mine[part[0]]), case, part) for part in parts]
        groups.sort(key=lambda group: group[0])
        return [(case, part) for _, case, part in groups]

    def _carry_over(self, values: BatchValues) -> None:
        """Keep what the next batch begins with."""
        rows = self._runner.rows
        assert rows is not None
        kept: dict[int, NDArray[Any]] = {}
        for variable, type_ in self._types.items():
            if variable not in self._plan.free_variables:
                self._now[variable] = self._runner.cells[variable][-1]
            elif not is_row(type_):
                self._now[variable] = values.last(variable)
            elif (last := int(values.last(variable))) >= 0:
                kept[variable] = rows.typed(type_).copy(last)
        self._kept = {**self._kept, **kept}

    def _run_all(self, frame: Frame, statements: Sequence[Any]) -> None:
        try:
            self._runner.run(frame, statements)
        except Failure as failure:
            text = self._code.errors[failure.check](failure.value, failure.limit)
            raise DeviceError(text) from None

    def _at_the_end(self, name: str) -> Values:
        return np.zeros(1, np.int64) if name.startswith("#") else self._shared[name]

    def _overlap(self) -> bool:
        """Whether two of the memories share bytes."""
        arrays = [self._arrays[memory.symbol] for memory in self._code.code.memories]
        pairs = ((a, b) for i, a in enumerate(arrays) for b in arrays[:i])
        return any(np.may_share_memory(a, b) for a, b in pairs)
