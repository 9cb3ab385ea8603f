"""What block-sparse attention must be, in NumPy: in the order of every level, and in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.float_math import exp


def block_attention(
    queries: NDArray[Any],
    keys: NDArray[Any],
    values: NDArray[Any],
    blocks: NDArray[Any],
    block_size: int,
    scale: float,
    dtype: type[np.floating[Any]] = np.float32,
) -> NDArray[Any]:
    """Attend from blocks of queries to gathered blocks of keys.

    Products are summed from 0.0 in the order of the columns, weights and values in the order of the
    gathered keys. exp of float32 is that of `float_math`.

    Parameters
    ----------
    queries : (T, D)
    keys, values : (S, D)
        The last block may be a partial one.
    blocks : int (B, N)
        Blocks of keys of each block of queries.
    block_size : int
        Rows of a block.
    scale : float
        Factor of the products, rounded to float32.
    dtype : type
        float32 for the arithmetic of every level, float64 for the true value.

    Returns
    -------
    dtype (T, D)
    """
    wide_keys, wide_values = keys.astype(dtype), values.astype(dtype)
    out = np.zeros(queries.shape, dtype)
    factor = dtype(np.float32(scale))
    with np.errstate(all="ignore"):
        for row, query in enumerate(queries.astype(dtype)):
            places = (
                blocks[row // block_size][:, None] * block_size + np.arange(block_size)
            ).ravel()
            places = places[places < len(keys)]
            scores = _sum(wide_keys[places] * query) * factor
            weights = exp(scores - scores.max())
            weights = weights / _sum(weights[None])
            start = np.zeros((1, values.shape[1]), dtype)
            terms = np.concatenate((start, weights[:, None] * wide_values[places]))
            out[row] = np.add.accumulate(terms, axis=0)[-1]
    return out


def _sum(terms: NDArray[Any]) -> NDArray[Any]:
    """Sum the last axis from 0.0 in order; accumulate, unlike add.reduce, never sums pairwise."""
    start = np.zeros((len(terms), 1), terms.dtype)
    return np.add.accumulate(np.concatenate((start, terms), axis=1), axis=1)[:, -1]
