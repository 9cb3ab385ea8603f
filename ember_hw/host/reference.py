"""The two references that every level and backend is held against, both in NumPy.

`exact` is fp32 arithmetic in the program's order, which the kernels equal bit for bit. `true` is
float64, rounded once; `error_bound` says how far `exact` may be from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.host.request import LookupRequest

# With fewer bags than this left at a position, the rest is summed bag by bag: a NumPy call costs
# about a microsecond whatever its size, and a single long bag would pay it at each lookup.
_MIN_BAGS_PER_POSITION = 4
_CHUNK_LOOKUPS = 4096


def exact(table: NDArray[np.float32], request: LookupRequest) -> NDArray[np.float32]:
    """Sum each bag in fp32, sequentially in index order, on one accumulator that starts at +0.0.

    `out[b] = ((0 + table[i0]) + table[i1]) + ...` over the indices `i0, i1, ...` of bag `b`.

    Parameters
    ----------
    table : float32 (num_embeddings, D)
        Strided tables are read as their contiguous copy.
    request : LookupRequest
        B bags.

    Returns
    -------
    float32 (B, D)
        An empty bag is +0.0; so is a bag of -0.0 alone.

    Raises
    ------
    TypeError
        `table` isn't float32.
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
    return _pool(table, request, np.float32, _identity)


def true(table: NDArray[np.float32], request: LookupRequest) -> NDArray[np.float32]:
    """Sum each bag in float64 and round once to the table's dtype.

    Parameters
    ----------
    table : float32 (num_embeddings, D)
        See `exact`.
    request : LookupRequest
        See `exact`.

    Returns
    -------
    float32 (B, D)
        The correctly rounded sums, as far as float64 holds them.

    Raises
    ------
    TypeError, ValueError
        As `exact`.
    """
    with np.errstate(over="ignore"):
        return _pool(table, request, np.float64, _identity).astype(np.float32)


def error_bound(table: NDArray[np.float32], request: LookupRequest) -> NDArray[np.float64]:
    """Bound `|exact - true|` as `n * 2^-23 * sum|x|` over the `n` rows of each bag.

    Parameters
    ----------
    table : float32 (num_embeddings, D)
        See `exact`.
    request : LookupRequest
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
    magnitudes = _pool(table, request, np.float64, np.abs)
    with np.errstate(invalid="ignore"):
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


def count_mismatches(pooled: NDArray[np.float32], expected: NDArray[np.float32]) -> int:
    """Count the bags that differ in any bit; all NaNs count as one value.

    Parameters
    ----------
    pooled, expected : float32 (B, D)
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
    both_nan = np.isnan(left) & np.isnan(right)
    return both_nan | ((left == right) & (np.signbit(left) == np.signbit(right)))


def _identity(rows: NDArray[Any]) -> NDArray[Any]:
    return rows


def _pool(
    table: NDArray[np.float32],
    request: LookupRequest,
    accumulator: type[np.floating[Any]],
    transform: Callable[[NDArray[Any]], NDArray[Any]],
) -> NDArray[Any]:
    """Sum `transform(table[i])` sequentially in each bag, position by position over all bags."""
    if table.ndim != 2:
        raise ValueError(f"table must be 2-D (num_embeddings, D), not of shape {table.shape}")
    if table.dtype != np.float32:
        raise TypeError(f"table must be of dtype float32, not {table.dtype}")
    out = np.zeros((request.num_bags, table.shape[1]), accumulator)
    lengths = np.diff(request.offsets)
    longest_first = np.argsort(-lengths, kind="stable")
    starts, lengths = request.offsets[:-1][longest_first], lengths[longest_first]
    sums = np.zeros_like(out)

    with np.errstate(over="ignore", invalid="ignore"):
        position = 0
        while True:
            live = int(np.searchsorted(-lengths, -position, side="left"))
            if live < _MIN_BAGS_PER_POSITION:
                break
            rows = table[request.indices[starts[:live] + position]]
            sums[:live] += transform(rows.astype(accumulator, copy=False))
            position += 1
        for bag in range(live):
            begin, end = int(starts[bag]) + position, int(starts[bag] + lengths[bag])
            for chunk in range(begin, end, _CHUNK_LOOKUPS):
                rows = table[request.indices[chunk : min(chunk + _CHUNK_LOOKUPS, end)]]
                rows = transform(rows.astype(accumulator, copy=False))
                # accumulate, unlike add.reduce, never sums pairwise
                sums[bag] = np.add.accumulate(np.concatenate((sums[bag, None], rows)), axis=0)[-1]
    out[longest_first] = sums
    return out
