"""Small tables of any format, for a compilation that checks itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.element_dtypes import ELEMENT_DTYPES
from ember_hw.compiler.quantized_rows import FORMATS, RowFormat, quantize
from ember_hw.config import LINE_BYTES

__all__ = ["CheckedTable", "checked_table"]


#: Scale and bias of what belongs to no row; no NaN, as records are compared whole.
_POISON = 1e30


@dataclass(frozen=True, eq=False)
class CheckedTable:
    """A table in a memory of one dimension, and the numbers that it stands for.

    Attributes
    ----------
    memory : (E,)
        As the interpreters hold it: rows that begin at multiples of 64 bytes, with poison between.
    numbers : float32 (N, D)
        What the elements are; of an odd D of codes of 4 bits with the gap behind them.
    length_bytes, pitch_bytes : int
        Length and distance of rows.
    """

    memory: NDArray[Any]
    numbers: NDArray[np.float32]
    length_bytes: int
    pitch_bytes: int


def checked_table(rows: str, values: NDArray[np.float64]) -> CheckedTable:
    """Return a table of some values.

    Parameters
    ----------
    rows : str
        Its element type, or the format of its rows.
    values : float64 (N, D)
        What it holds, as far as its elements can.

    Examples
    --------
    >>> table = checked_table("f16", np.ones((2, 3)))
    >>> table.memory.size, table.length_bytes, table.pitch_bytes
    (64, 6, 64)
    """
    if rows in FORMATS:
        return _quantized(FORMATS[rows], values)
    element = ELEMENT_DTYPES[rows]
    count, columns = values.shape
    pitch = _line(columns * element.itemsize) // element.itemsize
    padded = np.full((count, pitch), np.nan, element)
    padded[:, :columns] = values.astype(element)
    return CheckedTable(
        padded.reshape(-1),
        padded[:, :columns].astype(np.float32),
        columns * element.itemsize,
        padded.strides[0],
    )


def _quantized(form: RowFormat, values: NDArray[np.float64]) -> CheckedTable:
    """Return codes in records, those of a scale's bytes and of poison too."""
    table = quantize(values.astype(np.float32), f"int{form.bits}", str(form.scale.name))
    count, length = table.rows.shape
    padded = np.full((count, _line(length)), 0xFF, np.uint8)
    padded[:, :length] = table.rows
    codes = form.unpacked(padded)
    records = np.zeros(codes.shape, form.records)
    records["code"] = codes
    records["scale"] = records["bias"] = _POISON
    columns = form.elements(length)
    own = form.to_records(table.rows)
    records[:, :columns] = own
    with np.errstate(all="ignore"):
        product = own["scale"] * own["code"].astype(np.float32)
    return CheckedTable(records.reshape(-1), product + own["bias"], length, padded.shape[1])


def _line(count_bytes: int) -> int:
    return -(-count_bytes // LINE_BYTES) * LINE_BYTES
