"""The two references that every level and backend is held against, both in NumPy.

`exact` is fp32 arithmetic in the program's order, which the kernels equal bit for bit. `true` is
float64, rounded once; `error_bound` says how far `exact` may be from it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.element_dtypes import FLOAT_NAMES, round_to
from ember_hw.host.request import LookupRequest

# With fewer bags than this left at a position, the rest is summed bag by bag: a NumPy call costs
# about a microsecond whatever its size, and a single long bag would pay it at each lookup.
_MIN_BAGS_PER_POSITION = 4
_CHUNK_LOOKUPS = 4096
_FLOAT32 = np.dtype(np.float32)


def exact(
    table: NDArray[Any],
    request: LookupRequest,
    mode: str = "sum",
    dtype: np.dtype[Any] = _FLOAT32,
) -> NDArray[Any]:
    """Pool each bag in fp32, sequentially in index order, on one accumulator.

    `out[b] = ((0 + table[i0]) + table[i1]) + ...` over the indices `i0, i1, ...` of bag `b`; with
    weights `w0 * table[i0]`, rounded, is added. Mode mean divides this by the number of indices.
    Mode max starts at -inf and takes the larger one: NaN if one is NaN, and +0.0 of zeros of both
    signs. Rows and weights of float16 and bfloat16 are widened to fp32 first, which is exact. The
    pooled rows are rounded to another dtype than float32 once, to nearest even.

    Parameters
    ----------
    table : float32, float16 or bfloat16 (num_embeddings, D)
        Strided tables are read as their contiguous copy.
    request : LookupRequest
        B bags.
    mode : str
        "sum", "mean" or "max".
    dtype : dtype
        float32, float16 or bfloat16: that of the pooled rows.

    Returns
    -------
    dtype (B, D)
        An empty bag is +0.0 in each mode; so is the sum of a bag of -0.0 alone.

    Raises
    ------
    TypeError
        `table` is of another dtype.
    ValueError
        `table` isn't 2-D.

    Examples
    --------
    >>> import numpy as np
    >>> from ember_hw.host.request import normalise_request
    >>> table = np.array([[1.0], [2.0 ** 24]], np.float32)
    >>> request = normalise_request(np.array([0, 1, 0]), np.array([0, 3]), num_embeddings=2)
    >>> exact(table, request).tolist()
    [[16777216.0], [0.0]]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return _pool(table, request, np.float32, mode).astype(dtype, copy=False)


def true(
    table: NDArray[Any],
    request: LookupRequest,
    mode: str = "sum",
    dtype: np.dtype[Any] = _FLOAT32,
) -> NDArray[Any]:
    """Pool each bag in float64 and round once to the dtype of the result.

    Parameters
    ----------
    table, request, mode, dtype
        See `exact`.

    Returns
    -------
    dtype (B, D)
        The correctly rounded results, as far as float64 holds them.

    Raises
    ------
    TypeError, ValueError
        As `exact`.
    """
    return round_to(_pool(table, request, np.float64, mode), dtype)


def error_bound(
    table: NDArray[Any], request: LookupRequest, mode: str = "sum"
) -> NDArray[np.float64]:
    """Bound `|exact - true|` of float32 as `n * 2^-23 * sum|w * x|` over the `n` rows of each bag.

    A mean has the bound of its sum over `n`, and one rounding more. A maximum rounds nothing.

    Parameters
    ----------
    table, request, mode
        See `exact`.

    Returns
    -------
    float64 (B, D)
        0 for an empty bag; inf or NaN where a row holds one.

    Raises
    ------
    TypeError, ValueError
        As `exact`.
    """
    lengths = np.diff(request.offsets).astype(np.float64)[:, None]
    magnitudes = _pool(table, request, np.float64, "sum", magnitudes=True)
    with np.errstate(invalid="ignore"):
        if mode == "max":
            return 0.0 * magnitudes
        if mode == "mean":
            return (lengths + 1) * 2.0**-23 * magnitudes / np.maximum(lengths, 1)
        return lengths * 2.0**-23 * magnitudes


def bit_equal(left: NDArray[Any], right: NDArray[Any]) -> bool:
    """Tell whether two arrays agree in shape, dtype and each bit; all NaNs count as one value.

    Examples
    --------
    >>> import numpy as np
    >>> bit_equal(np.array([0.0]), np.array([-0.0]))
    False
    """
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    return bool(np.all(_same_bits(left, right)))


def count_mismatches(pooled: NDArray[Any], expected: NDArray[Any]) -> int:
    """Count the bags that differ in any bit; all NaNs count as one value.

    Parameters
    ----------
    pooled, expected : (B, D)
        Pooled rows, and what they must be.

    Raises
    ------
    ValueError
        The shapes differ.

    Examples
    --------
    >>> import numpy as np
    >>> pooled = np.array([[0.0], [-0.0], [np.nan]], np.float32)
    >>> count_mismatches(pooled, np.array([[0.0], [0.0], [-np.nan]], np.float32))
    1
    """
    if pooled.shape != expected.shape:
        raise ValueError(f"pooled rows must be of shape {expected.shape}, not {pooled.shape}")
    return int((~_same_bits(pooled, expected)).any(axis=1).sum())


def _same_bits(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):  # bfloat16's NaNs that signal
        both_nan = np.isnan(left) & np.isnan(right)
        return both_nan | ((left == right) & (np.signbit(left) == np.signbit(right)))


def larger(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Return the larger of two floats: NaN if one is NaN, +0.0 of zeros of both signs."""
    found = np.maximum(left, right)
    np.copyto(found, left + right, where=(left == 0) & (right == 0))
    return found


def _pool(
    table: NDArray[Any],
    request: LookupRequest,
    accumulator: type[np.floating[Any]],
    mode: str,
    *,
    magnitudes: bool = False,
) -> NDArray[Any]:
    """Pool each bag sequentially, position by position over all bags."""
    if table.ndim != 2:
        raise ValueError(f"table must be 2-D (num_embeddings, D), not of shape {table.shape}")
    if table.dtype.name not in FLOAT_NAMES:
        raise TypeError(f"table must be of dtype {', '.join(FLOAT_NAMES)}, not {table.dtype}")
    out = np.zeros((request.num_bags, table.shape[1]), accumulator)
    all_lengths = np.diff(request.offsets)
    longest_first = np.argsort(-all_lengths, kind="stable")
    starts, lengths = request.offsets[:-1][longest_first], all_lengths[longest_first]
    pooled = np.full_like(out, -np.inf) if mode == "max" else np.zeros_like(out)

    def rows_at(places: Any) -> NDArray[Any]:
        rows = table[request.indices[places]].astype(accumulator, copy=False)
        if request.weights is not None:
            rows = rows * request.weights[places].astype(accumulator)[:, None]
        return np.abs(rows) if magnitudes else rows

    with np.errstate(over="ignore", invalid="ignore"):
        position = 0
        while True:
            live = int(np.searchsorted(-lengths, -position, side="left"))
            if live < _MIN_BAGS_PER_POSITION:
                break
            rows = rows_at(starts[:live] + position)
            pooled[:live] = larger(pooled[:live], rows) if mode == "max" else pooled[:live] + rows
            position += 1
        for bag in range(live):
            begin, end = int(starts[bag]) + position, int(starts[bag] + lengths[bag])
            for chunk in range(begin, end, _CHUNK_LOOKUPS):
                rows = rows_at(slice(chunk, min(chunk + _CHUNK_LOOKUPS, end)))
                if mode == "max":
                    for row in rows:
                        pooled[bag] = larger(pooled[bag], row)
                    continue
                # accumulate, unlike add.reduce, never sums pairwise
                rows = np.concatenate((pooled[bag, None], rows))
                pooled[bag] = np.add.accumulate(rows, axis=0)[-1]
        if mode == "mean":
            pooled /= np.maximum(lengths, 1).astype(accumulator)[:, None]
    pooled[lengths == 0] = 0
    out[longest_first] = pooled
    return out
