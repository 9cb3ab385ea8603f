"""Reads aggregation over the edges of a graph, with and without a score per edge (FusedMM)."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from ember_hw.compiler.element_dtypes import FLOAT_NAMES
from ember_hw.compiler.frontend.operation import (
    Operation,
    check_indices,
    check_table,
    index_dtype,
    refuse,
)
from ember_hw.compiler.frontend.patterns import (
    Rows,
    as_column,
    as_expanded_column,
    as_product,
    as_rows,
    is_call,
    is_plain_sum,
    is_zeros,
    same_value,
    shape_of,
    skip_copies,
)
from ember_hw.compiler.frontend.torch_graph import (
    bind_arguments,
    describe,
    is_fixed,
    same_size,
    size_expression,
    value_of,
)

_ATEN = torch.ops.aten
_INDEX_ADD: Any = _ATEN.index_add.default
_SCATTER_ADD: Any = _ATEN.scatter_add.default
_SCATTER_REDUCE: Any = _ATEN.scatter_reduce.two
AGGREGATION_OPS: tuple[Any, ...] = (_INDEX_ADD, _SCATTER_ADD, _SCATTER_REDUCE)
_MODES = {"sum": "sum", "mean": "mean", "amax": "max"}
_NONLINEAR: dict[Any, str] = {
    _ATEN.sigmoid.default: "sigmoid",
    _ATEN.relu.default: "relu",
    _ATEN.exp.default: "exp",
}

Node = torch.fx.Node


class _Score(NamedTuple):
    """``nonlinearity(<left, right>)`` for each edge."""

    left: Rows
    right: Rows
    nonlinearity: str


def match_aggregation(node: Node) -> Operation:
    """Read ``zeros.index_add(0, target, x[source])`` and its relatives.

    Parameters
    ----------
    node : Node
        A call of one of `AGGREGATION_OPS`.

    Returns
    -------
    Operation
        Kind "aggregation": roles `dense`, `source`, `target` and, if each edge has one, `weights`.
        Kind "fusedmm": roles `queries`, `keys`, `dense`, `source`, `target`. Facts of both: `mode`,
        `rows` (an integer, or the role whose first dimension it is), dtypes of the indices, and of
        an aggregation `dtype`, that of rows, weights and result.

    Raises
    ------
    UnsupportedError
        It isn't computed by the accelerator; names the torch node.
    """
    given = bind_arguments(node)
    where = f"in {describe(node)}"
    mode = _mode(node, given)
    if given["dim"] not in (0, -2) or len(shape_of(given["self"])) != 2:
        refuse(node, f"dim must be 0 of a 2-D tensor, not {given['dim']}, {where}")
    if given.get("alpha", 1) != 1:
        refuse(node, f"alpha must be 1, not {given['alpha']}, {where}")
    if not is_zeros(given["self"]):
        refuse(
            node,
            f"the tensor that is added to must be zeros, not {given['self']!s}, {where}; add the "
            f"rows to zeros and the result to {given['self']!s}",
        )
    message = given["source"] if node.target is _INDEX_ADD else given["src"]
    target = skip_copies(given["index"])
    if node.target is not _INDEX_ADD:
        target = _whole_rows(node, target, message)
    target = skip_copies(target)
    rows, factor = _message(node, message)
    score = _score(factor) if factor is not None else None
    is_fused = score is not None and mode == "sum"
    check_table("dense", rows.table, node, ("float32",) if is_fused else tuple(FLOAT_NAMES))
    check_indices("source", rows.indices, node, (1,))
    check_indices("target", target, node, (1,))
    columns = size_expression(shape_of(node)[1])
    difference: Any = columns - size_expression(shape_of(rows.table)[1])
    if is_fixed(difference) and difference != 0:
        refuse(
            node,
            f"rows must have the {shape_of(node)[1]} columns of the result, not "
            f"{shape_of(rows.table)[1]}, {where}",
        )
    inputs = {"dense": rows.table, "source": skip_copies(rows.indices), "target": target}
    facts: dict[str, Any] = {
        "mode": mode,
        "columns": int(columns) if is_fixed(columns) else None,
        "source_dtype": index_dtype(rows.indices),
        "target_dtype": index_dtype(target),
    }
    dense_dtype = str(value_of(rows.table).dtype).removeprefix("torch.")
    sizes: dict[str, tuple[Any, ...]] = {"source": ("E",), "target": ("E",)}
    if score is not None and mode == "sum":
        queries, keys = _sides(node, score, rows, target)
        for role, table in (("queries", queries), ("keys", keys)):
            check_table(role, table, node)
            same_table = same_value(table, rows.table)
            inputs[role] = rows.table if same_table else table
        return Operation(
            kind="fusedmm",
            node=node,
            output=node,
            inputs=inputs,
            tables=("dense", "queries", "keys"),
            facts={
                **facts,
                "nonlinearity": score.nonlinearity,
                "rows": _rows(node, inputs, ("queries", "dense")),
            },
            sizes=sizes,
        )
    if factor is not None:
        weights = as_column(factor)
        if weights is None:
            weights = as_expanded_column(factor)
        if weights is None:
            refuse(
                node,
                f"rows must be multiplied by one weight for each edge, w.unsqueeze(-1), not "
                f"{factor!s}, {where}",
            )
        dtype = str(value_of(weights).dtype).removeprefix("torch.")
        if dtype != dense_dtype:
            refuse(node, f"weights of edges must be of dtype {dense_dtype}, not {dtype}, {where}")
        inputs["weights"], sizes["weights"] = weights, ("E",)
    return Operation(
        kind="aggregation",
        node=node,
        output=node,
        inputs=inputs,
        tables=("dense",),
        facts={**facts, "rows": _rows(node, inputs, ("dense",)), "dtype": dense_dtype},
        sizes=sizes,
    )


def _mode(node: Node, given: dict[str, Any]) -> str:
    if node.target is not _SCATTER_REDUCE:
        return "sum"
    where = f"in {describe(node)}"
    if given["reduce"] not in _MODES:
        refuse(node, f"reduce must be 'sum', 'mean' or 'amax', not {given['reduce']!r}, {where}")
    mode = _MODES[given["reduce"]]
    if given["include_self"] and mode != "sum":
        refuse(node, f"include_self must be False with {given['reduce']!r}, not True, {where}")
    return mode


def _whole_rows(node: Node, index: Any, message: Any) -> Any:
    """Read the index of a scatter that moves whole rows."""
    vector = as_expanded_column(index)
    if vector is None or not same_size(shape_of(index)[1], shape_of(message)[1]):
        refuse(
            node,
            f"index must be one row number for whole rows, i.unsqueeze(-1).expand_as(src), not "
            f"{index!s}, in {describe(node)}; index_add takes the row numbers as they are",
        )
    return vector


def _message(node: Node, message: Any) -> tuple[Rows, Any]:
    """Read ``x[source]`` or ``w * x[source]``: the rows, and what they are multiplied by."""
    message = skip_copies(message)
    rows = as_rows(message)
    if rows is not None:
        return rows, None
    for one, other in ((factors := as_product(message)) and (factors, factors[::-1])) or ():
        rows = as_rows(skip_copies(other))
        if rows is not None and len(shape_of(one)) == 2:
            is_column = same_size(shape_of(one)[1], 1) or as_expanded_column(one) is not None
            if is_column and _same_length(one, other):
                return rows, one
    refuse(
        node,
        f"what is added must be rows of a matrix, x[source], or these times a weight for each "
        f"edge, not {message!s}, in {describe(node)}; the rest is left to torch",
    )


def _same_length(left: Any, right: Any) -> bool:
    """Whether two tensors have the same number of rows, as far as export knows."""
    difference: Any = size_expression(shape_of(left)[0]) - size_expression(shape_of(right)[0])
    return difference == 0 or not is_fixed(difference)


def _score(factor: Any) -> _Score | None:
    """Read ``sigma((a * b).sum(-1))`` as a column, wherever that becomes one."""
    nonlinearity, columns = "identity", 0
    factor = skip_copies(factor)
    while True:
        vector = as_column(factor)
        if vector is not None:
            factor, columns = vector, columns + 1
        elif nonlinearity == "identity" and is_call(factor, *_NONLINEAR):
            nonlinearity = _NONLINEAR[factor.target]
            factor = skip_copies(factor.args[0])
        else:
            break
    if not is_plain_sum(factor, keepdim=None):
        return None
    if columns + bool(bind_arguments(factor)["keepdim"]) != 1:
        return None
    factors = as_product(skip_copies(factor.args[0]))
    if factors is None:
        return None
    left, right = (as_rows(skip_copies(one)) for one in factors)
    return None if left is None or right is None else _Score(left, right, nonlinearity)


def _sides(node: Node, score: _Score, rows: Rows, target: Any) -> tuple[Node, Node]:
    """Return the tables of the target's row and of the source's row in the score."""
    for query, key in ((score.left, score.right), (score.right, score.left)):
        if same_value(query.indices, target) and same_value(key.indices, rows.indices):
            return query.table, key.table
    refuse(
        node,
        f"the score of an edge must be a product of a row of its target and a row of its source, "
        f"not of rows {score.left.indices!s} and {score.right.indices!s}, in {describe(node)}",
    )


def _rows(node: Node, inputs: dict[str, Node], roles: tuple[str, ...]) -> int | str:
    """Return the number of rows of the result, or the role that has as many."""
    size = shape_of(node)[0]
    expression = size_expression(size)
    if is_fixed(expression):
        return int(expression)
    for role in roles:
        if same_size(size, shape_of(inputs[role])[0]):
            return role
    refuse(
        node,
        f"the result must have as many rows as {' or '.join(roles)}, or a fixed number, not "
        f"{size}, in {describe(node)}",
    )
