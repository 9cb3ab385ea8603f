"""The execute side's kernels in NumPy: each takes all calls of one callback within a chunk at once.

A batch gives bit for bit what its calls give one after another. Within each output cell the
additions happen in the order of the calls: position by position, the first call of every cell in
one vectorised addition, then the second of every cell, and so on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.errors import DeviceError, ProgramError

#: With fewer cells than this left at a position, the rest is summed cell by cell: a NumPy call
#: costs about a microsecond whatever its size, and one long bag would pay it at each lookup.
_MIN_CELLS_PER_POSITION = 4
#: Calls of one cell that are summed at a time; bounds the copy that this takes.
_CALLS_AT_A_TIME = 4096


@dataclass(frozen=True)
class Update:
    """A change of one variable at the end of a callback: an addition, or a new value.

    Parameters
    ----------
    variable : int
        Number of the variable.
    value : int
        What is added, or the new value.
    is_set : bool
        Whether `value` replaces the old one.
    """

    variable: int
    value: int
    is_set: bool


class Output:
    """One output of a program while its sums are built.

    Parameters
    ----------
    symbol : str
        Name of the argument.
    rows, columns : int
        Its shape; it starts as +0.0.
    part_columns : int
        Width of the parts that calls add. A last part that is cut short is held in full, so its
        lanes beyond `columns` are padding, whatever the queue held there.

    Attributes
    ----------
    parts : int
        Parts of a row: calls that one lookup takes.
    calls : int
        Additions so far.
    """

    def __init__(self, symbol: str, rows: int, columns: int, part_columns: int) -> None:
        self.symbol = symbol
        self.rows = rows
        self.columns = columns
        self.part_columns = part_columns
        self.parts = -(-columns // part_columns)
        self.calls = 0
        self._sums = np.zeros((rows, self.parts * part_columns), np.float32)

    def add(
        self,
        keys: NDArray[np.int64],
        columns: NDArray[np.int64] | None,
        values: NDArray[np.float32],
    ) -> None:
        """Add `values[i]` to row `keys[i]` from column `columns[i]` on, for i = 0, 1, ..

        Parameters
        ----------
        keys : int64 (M,)
            Rows of the output.
        columns : int64 (M,), optional
            First columns, multiples of `part_columns`; 0 where there are none.
        values : float32 (M, part_columns)
            What is added.

        Raises
        ------
        DeviceError
            A key or column doesn't lie in the output.
        """
        self._check("row", keys, self.rows, 1)
        cells = keys
        if columns is not None:
            self._check("column", columns, self.columns, self.part_columns)
            cells = keys * self.parts + columns // self.part_columns
        elif self.parts != 1:
            raise ProgramError(
                f"rows added to output {self.symbol!r} must be {self.columns} elements long, "
                f"not {self.part_columns}"
            )
        self.calls += keys.size
        add_in_order(self._sums.reshape(self.rows * self.parts, self.part_columns), cells, values)

    def result(self) -> NDArray[np.float32]:
        """Return the sums, float32 (rows, columns), C-contiguous."""
        return np.ascontiguousarray(self._sums[:, : self.columns])

    def _check(self, what: str, values: NDArray[np.int64], limit: int, multiple: int) -> None:
        bad = (values < 0) | (values >= limit)
        if multiple > 1:
            bad |= values % multiple != 0
        if bad.any():
            rule = f"in [0, {limit})" + (f" and a multiple of {multiple}" if multiple > 1 else "")
            raise DeviceError(
                f"{what} of output {self.symbol!r} must be {rule}, not {int(values[bad.argmax()])}"
            )


def add_in_order(
    sums: NDArray[np.float32], cells: NDArray[np.int64], values: NDArray[np.float32]
) -> None:
    """Do `sums[cells[i]] += values[i]` for i = 0, 1, .., as if one by one.

    Parameters
    ----------
    sums : float32 (C, n)
        Changed in place.
    cells : int64 (M,)
        Rows of `sums`. No copy is made to sort them where they never decrease.
    values : float32 (M, n)
        What is added.

    Examples
    --------
    >>> sums = np.zeros((2, 1), np.float32)
    >>> values = np.array([[2.0**24], [1.0], [5.0], [-(2.0**24)]], np.float32)
    >>> add_in_order(sums, np.array([1, 1, 0, 1]), values)
    >>> sums.tolist()
    [[5.0], [0.0]]
    """
    if cells.size == 0:
        return
    order: NDArray[np.int64] | None = None
    if bool(np.any(cells[1:] < cells[:-1])):
        order = np.argsort(cells, kind="stable")
        cells = cells[order]
    starts = np.flatnonzero(np.concatenate(([True], cells[1:] != cells[:-1])))
    lengths = np.diff(starts, append=cells.size)
    longest_first = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[longest_first], lengths[longest_first]
    targets = cells[starts]
    partial = sums[targets]

    with np.errstate(over="ignore", invalid="ignore"):
        position = 0
        while True:
            live = int(np.searchsorted(-lengths, -position, side="left"))
            if live < _MIN_CELLS_PER_POSITION:
                break
            calls = starts[:live] + position
            partial[:live] += values[calls if order is None else order[calls]]
            position += 1
        for cell in range(live):
            end = int(starts[cell] + lengths[cell])
            for first in range(int(starts[cell]) + position, end, _CALLS_AT_A_TIME):
                part = slice(first, min(first + _CALLS_AT_A_TIME, end))
                addends = values[part if order is None else order[part]]
                # accumulate, unlike add.reduce, never sums pairwise
                run = np.add.accumulate(np.concatenate((partial[cell, None], addends)), axis=0)
                partial[cell] = run[-1]
    sums[targets] = partial


class Variables:
    """The execute side's variables, across chunks.

    Parameters
    ----------
    initial : mapping of int to int
        Each variable's first value.
    """

    def __init__(self, initial: Mapping[int, int]) -> None:
        self._now = dict(initial)
        self._times: dict[int, NDArray[np.int64]] = {}
        self._values: dict[int, NDArray[np.int64]] = {}

    def advance(self, updates: Sequence[tuple[NDArray[np.int64], Update]]) -> None:
        """Take the updates of the next chunk; `at` then answers for times in that chunk.

        Parameters
        ----------
        updates : sequence of (int64 (M,), Update)
            The times, ascending, at which each update happens, counted from the chunk's beginning.
            Updates of the same time happen in the order of the sequence.
        """
        for variable, values in self._values.items():
            self._now[variable] = int(values[-1])
        self._times, self._values = {}, {}
        for variable in {update.variable for _, update in updates}:
            mine = [(times, u) for times, u in updates if u.variable == variable and times.size]
            if mine:
                self._times[variable], self._values[variable] = self._run(variable, mine)

    def at(self, variable: int, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the variable's value just before each of `times`, int64 (M,)."""
        if variable not in self._times:
            return np.full(times.size, self._now[variable], np.int64)
        before = np.searchsorted(self._times[variable], times, side="left")
        return np.concatenate(([self._now[variable]], self._values[variable]))[before]

    def _run(
        self, variable: int, updates: list[tuple[NDArray[np.int64], Update]]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return all times of update, sorted, and the value after each."""
        times = np.concatenate([t for t, _ in updates])
        added = np.concatenate([np.full(t.size, 0 if u.is_set else u.value) for t, u in updates])
        sets = np.concatenate([np.full(t.size, u.is_set) for t, u in updates])
        values = np.concatenate([np.full(t.size, u.value) for t, u in updates])
        if len(updates) > 1:
            order = np.argsort(times, kind="stable")
            times, added, sets, values = times[order], added[order], sets[order], values[order]
        total = np.cumsum(added)
        # What `total` lacks since the last set; the value before the chunk counts as one.
        base = np.concatenate(([self._now[variable]], np.where(sets, values - total, 0)))
        last_set = np.maximum.accumulate(np.where(sets, np.arange(1, sets.size + 1), 0))
        return times, total + base[last_set]


@dataclass(frozen=True)
class Calls:
    """All calls of one callback within a chunk, in program order.

    Parameters
    ----------
    operands : tuple of arrays
        Scalars as int64 or float32 (M,), rows as float32 (M, n), in the callback's order.
    variables : mapping of int to int64 (M,)
        The value that each variable the kernel reads has at each call.
    outputs : mapping of str to Output
        The program's outputs by symbol.
    """

    operands: tuple[NDArray[Any], ...]
    variables: Mapping[int, NDArray[np.int64]]
    outputs: Mapping[str, Output]

    def index(self, binding: Mapping[str, int]) -> NDArray[np.int64]:
        """Return what a key or column is bound to: an operand or a variable, int64 (M,)."""
        if "variable" in binding:
            return self.variables[binding["variable"]]
        return self.operands[binding["operand"]]


def accumulate(parameters: Mapping[str, Any], calls: Calls) -> None:
    """Run `output[key, column:column + n] += weight * value`.

    Parameters
    ----------
    parameters : mapping
        `output`: symbol; `value`: number of an operand, a row of n elements or a scalar (n = 1);
        `key`: `{"operand": number}` or `{"variable": number, "initial": value}`; `column`:
        likewise, or None for whole rows; `weight`: number of a scalar operand, or None.
    calls : Calls
        The calls.
    """
    number: int = parameters["value"]
    weight: int | None = parameters["weight"]
    values: NDArray[np.float32] = calls.operands[number]
    if values.ndim == 1:
        values = values[:, None]
    if weight is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            values = calls.operands[weight][:, None] * values
    column = None if parameters["column"] is None else calls.index(parameters["column"])
    calls.outputs[parameters["output"]].add(calls.index(parameters["key"]), column, values)


def update(parameters: Mapping[str, Any], calls: Calls) -> None:
    """Do nothing but the updates that every kernel may carry."""


#: Every kernel a program may name. Each also has `updates`, a list of changes of variables after
#: its work: `{"variable": number, "initial": value, "add": value}`, or "set" instead of "add".
KERNELS = {"accumulate": accumulate, "update": update}
