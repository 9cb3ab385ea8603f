"""Rows of tables that have probably changed since they went into a memory of the device's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.program import Program
from ember_hw.errors import ProgramError
from ember_hw.host.arrays import check_rows, integer_array
from ember_hw.host.memory_layout import Region

__all__ = ["LikelyRows", "Uploads", "changed_rows"]

#: Rows of a table that are kept in mind, at most; beyond that the latest ones.
MOST_ROWS = 1 << 16


@runtime_checkable
class Uploads(Protocol):
    """A backend whose memory isn't the host's: what changes has to be written there."""

    def expect(self, region: Region, rows: NDArray[Any]) -> None:
        """Look at these rows of a table first, when the next launch finds that it has changed.

        Parameters
        ----------
        region : Region
            Where the table lies.
        rows : int (N,)
            Rows of it that may have been written; they may repeat. That others weren't isn't taken
            for granted.
        """
        ...


class LikelyRows:
    """What to write first where a table is found changed.

    A gradient changes the rows that were looked up, so that what a run reads is what probably
    differs before the next one.

    Examples
    --------
    >>> rows = LikelyRows()
    >>> region = Region("tab", 1 << 20, np.zeros(256, np.uint8), 256, rows=4, pitch=16)
    >>> rows.expect(region, np.array([3, 0, 1, 3]))
    >>> rows.ranges(region).tolist()
    [[0, 128], [192, 256]]
    """

    def __init__(self) -> None:
        self._rows: dict[int, NDArray[np.int64]] = {}  # by the region's address, sorted

    def expect(self, region: Region, rows: NDArray[Any]) -> None:
        """Add rows of a table."""
        known = self._rows.get(region.base)
        fresh = np.unique(rows)
        if known is not None and known.size + fresh.size <= MOST_ROWS:
            fresh = np.union1d(known, fresh)
        self._rows[region.base] = fresh.astype(np.int64)

    def ranges(self, region: Region) -> NDArray[np.int64]:
        """Return first byte and end of the rows of a table, int64 (N, 2), neighbours as one."""
        rows = self._rows.get(region.base)
        if rows is None or not region.rows:
            return np.empty((0, 2), np.int64)
        rows = rows[rows < region.rows]  # another table may have lain here
        starts = np.flatnonzero(np.diff(rows, prepend=-2) > 1)
        ends = np.append(starts[1:], rows.size) - 1 if starts.size else starts
        pitch_bytes = region.num_bytes // region.rows
        return np.stack((rows[starts], rows[ends] + 1), axis=1) * pitch_bytes

    def forget(self, region: Region) -> None:
        """Forget the rows of a table, as all of it has just been brought up to date."""
        self._rows.pop(region.base, None)


def changed_rows(program: Program, rows: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Return rows of a program's tables by symbol.

    Parameters
    ----------
    program : Program
        Has the tables.
    rows : mapping of str to int (N,)
        By the table's name in the model or by its symbol.

    Raises
    ------
    ProgramError
        There is no table of a name.
    TypeError, IndexError
        Rows are no integers, or no rows of their table.
    """
    named: Any = program.model.get("table_names", {})
    names = {symbol: str(named.get(symbol, symbol)) for symbol in program.tables}
    found: dict[str, NDArray[Any]] = {}
    for name, numbers in rows.items():
        symbols = [symbol for symbol, own in names.items() if name in (symbol, own)]
        if not symbols:
            raise ProgramError(
                f"name of a table of program {program.name!r} must be one of "
                f"{', '.join(names.values())}, not {name!r}"
            )
        for symbol in symbols:
            checked = integer_array("rows", numbers, name)
            check_rows("rows", checked, len(program.tables[symbol]), name)
            found[symbol] = checked.reshape(-1)
    return found
