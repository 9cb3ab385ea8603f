"""Accumulations of many calls at once, in the order of the calls."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.host.execution.numpy_operations import maximum, minimum

__all__ = ["ACCUMULATIONS", "accumulate_in_order"]

#: Operations that accumulate, with the ufunc that folds them in order; None where order is free.
ACCUMULATIONS = {
    "addf": (np.add, np.add),
    "mulf": (np.multiply, np.multiply),
    "maximumf": (maximum, None),
    "minimumf": (minimum, None),
}

#: With fewer cells than this left at a position, the rest is summed cell by cell: a NumPy call
#: costs about a microsecond whatever its size, and one long bag would pay it at each lookup.
_MIN_CELLS_PER_POSITION = 4
#: Calls of one cell that are summed at a time; bounds the copy that this takes.
_CALLS_AT_A_TIME = 4096


def accumulate_in_order(
    operation: str,
    totals: NDArray[Any],
    cells: NDArray[np.int64],
    values: NDArray[Any],
) -> None:
    """Do `totals[cells[i]] = operation(totals[cells[i]], values[i])` for i = 0, 1, ..

    Position by position, the first call of every cell is done in one array operation, then the
    second of every cell, and so on.

    Parameters
    ----------
    operation : str
        One of `ACCUMULATIONS`.
    totals : float32 or float64 (C, n)
        Changed in place.
    cells : int64 (M,)
        Rows of `totals`. No copy is made to sort them where they never decrease.
    values : of the same dtype (M, n)
        What is accumulated.

    Examples
    --------
    >>> totals = np.zeros((2, 1), np.float32)
    >>> values = np.array([[2.0**24], [1.0], [5.0], [-(2.0**24)]], np.float32)
    >>> accumulate_in_order("addf", totals, np.array([1, 1, 0, 1]), values)
    >>> totals.tolist()
    [[5.0], [0.0]]
    """
    if cells.size == 0:
        return
    combine, in_order = ACCUMULATIONS[operation]
    order: NDArray[np.int64] | None = None
    if bool(np.any(cells[1:] < cells[:-1])):
        order = np.argsort(cells, kind="stable")
        cells = cells[order]
    starts = np.flatnonzero(np.concatenate(([True], cells[1:] != cells[:-1])))
    lengths = np.diff(starts, append=cells.size)
    longest_first = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[longest_first], lengths[longest_first]
    targets = cells[starts]
    partial = totals[targets]

    with np.errstate(all="ignore"):
        position = 0
        while True:
            live = int(np.searchsorted(-lengths, -position, side="left"))
            if live < _MIN_CELLS_PER_POSITION:
                break
            calls = starts[:live] + position
            added = values[calls if order is None else order[calls]]
            partial[:live] = combine(partial[:live], added)
            position += 1
        for cell in range(live):
            end = int(starts[cell] + lengths[cell])
            for first in range(int(starts[cell]) + position, end, _CALLS_AT_A_TIME):
                part = slice(first, min(first + _CALLS_AT_A_TIME, end))
                added = values[part if order is None else order[part]]
                run = np.concatenate((partial[cell, None], added))
                # accumulate, unlike reduce, never works pairwise
                partial[cell] = (
                    _halve(combine, run) if in_order is None else in_order.accumulate(run)[-1]
                )
    totals[targets] = partial


def _halve(combine: Any, values: NDArray[Any]) -> NDArray[Any]:
    """Return all values combined, in any order."""
    while len(values) > 1:
        half = len(values) // 2
        rest = values[2 * half :]
        values = np.concatenate((combine(values[:half], values[half : 2 * half]), rest))
    return values[0]
