"""What scores of triples must be, in NumPy: bit for bit, and in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_OPERATIONS: dict[str, Callable[..., NDArray[Any]]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "neg": np.negative,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "square": np.square,
}


def scores(
    expression: Sequence[Any],
    rows: Sequence[NDArray[Any]],
    after: Sequence[str],
    dtype: type[np.floating[Any]] = np.float32,
) -> NDArray[Any]:
    """Sum an expression over the columns, from 0.0 in their order.

    Parameters
    ----------
    expression : nested sequence
        ``["row", k]`` is `rows[k]`; ``[name, operand, ..]`` is add, sub, mul, neg, abs or square.
    rows : sequence of float32 (K, D)
        The rows of each triple.
    after : sequence of str
        What is done with the sum: neg, sqrt.
    dtype : type
        float32 for what every level must give, float64 for the true value.

    Returns
    -------
    dtype (K,)

    Examples
    --------
    >>> import numpy as np
    >>> rows = [np.array([[1, 2]], np.float32), np.array([[3, 5]], np.float32)]
    >>> scores(["abs", ["sub", ["row", 0], ["row", 1]]], rows, ["neg"]).tolist()
    [-5.0]
    """
    wide = [row.astype(dtype, copy=False) for row in rows]
    with np.errstate(all="ignore"):
        terms = _evaluate(expression, wide)
        start = np.zeros((len(terms), 1), dtype)
        # accumulate, unlike add.reduce, never sums pairwise
        total = np.add.accumulate(np.concatenate((start, terms), axis=1), axis=1)[:, -1]
        for name in after:
            total = _OPERATIONS[name](total)
    return np.ascontiguousarray(total)


def _evaluate(expression: Sequence[Any], rows: Sequence[NDArray[Any]]) -> NDArray[Any]:
    name: Any = expression[0]
    operands: Any = expression[1:]
    if name == "row":
        return rows[int(operands[0])]
    return _OPERATIONS[name](*(_evaluate(operand, rows) for operand in operands))
