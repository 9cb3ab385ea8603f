"""What FusedMM must be, in NumPy: in the order of every level, and in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.float_math import exp
from ember_hw.host.reference import larger
from ember_hw.host.request import LookupRequest

_NONLINEAR: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "identity": lambda x: x,
    "sigmoid": lambda x: 1 / (exp(-x) + 1),
    "relu": lambda x: larger(x, np.zeros_like(x)),
    "exp": exp,
}


def fusedmm(
    queries: NDArray[Any],
    keys: NDArray[Any],
    dense: NDArray[Any],
    edges: LookupRequest,
    nonlinearity: str,
    dtype: type[np.floating[Any]] = np.float32,
) -> NDArray[Any]:
    """Sum ``s(<queries[b], keys[c]>) * dense[c]`` over the neighbours c of each node b.

    Products are summed from 0.0 in the order of the columns, edges in their order. exp of float32
    is that of `float_math`.

    Parameters
    ----------
    queries : (B, D)
        A row for each node, or more.
    keys, dense : (N, D)
        A row for each neighbour.
    edges : LookupRequest
        A bag of neighbours for each node.
    nonlinearity : str
        s: "identity", "sigmoid", "relu" or "exp".
    dtype : type
        float32 for the arithmetic of every level, float64 for the true value.

    Returns
    -------
    dtype (B, D)
    """
    out = np.zeros((edges.num_bags, dense.shape[1]), dtype)
    wide = dense.astype(dtype, copy=False)
    with np.errstate(all="ignore"):
        for node in range(edges.num_bags):
            for place in range(int(edges.offsets[node]), int(edges.offsets[node + 1])):
                other = int(edges.indices[place])
                products = queries[node].astype(dtype) * keys[other].astype(dtype)
                start = np.zeros(1, dtype)
                dot = np.add.accumulate(np.concatenate((start, products)))[-1:]
                out[node] = out[node] + _NONLINEAR[nonlinearity](dot) * wide[other]
    return out
