"""Reads scores of triples: sums over the columns of what is computed from looked-up rows."""

from __future__ import annotations

from typing import Any

import torch

from ember_hw.compiler.frontend.operation import (
    Operation,
    check_indices,
    check_table,
    index_dtype,
    refuse,
)
from ember_hw.compiler.frontend.patterns import (
    as_part,
    as_product,
    as_rows,
    as_scaled,
    is_call,
    is_plain_sum,
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
)

_ATEN = torch.ops.aten
_SUM: Any = _ATEN.sum.dim_IntList
_NORM: Any = _ATEN.linalg_vector_norm.default
SCORE_OPS: tuple[Any, ...] = (_SUM, _NORM)
_UNARY: dict[Any, str] = {_ATEN.neg.default: "neg", _ATEN.abs.default: "abs"}
_AFTER: dict[Any, str] = {_ATEN.neg.default: "neg", _ATEN.sqrt.default: "sqrt"}

Node = torch.fx.Node


class _Expression:
    """What is summed, as nested lists, with the rows at its leaves.

    Leaf k is ``["row", k]``; `leaves[k]` is (table, indices, part, parts): one of `parts` equal
    parts of the rows.
    """

    def __init__(self, node: Node) -> None:
        self.root = node
        self.leaves: list[tuple[Node, Node, int, int]] = []
        self.shape: tuple[Any, ...] | None = None

    def read(self, node: Any) -> list[Any]:
        node = skip_copies(node)
        self._check_shape(node)
        if is_call(node, *_UNARY):
            return [_UNARY[node.target], self.read(node.args[0])]
        if is_call(node, _ATEN.pow.Tensor_Scalar) and node.args[1] == 2:
            return ["square", self.read(node.args[0])]
        pair = as_product(node)
        if pair is not None:
            if same_value(*pair):
                return ["square", self.read(pair[0])]
            return ["mul", *map(self.read, pair)]
        pair = as_scaled(node)
        if pair is not None:
            name = "add" if is_call(node, _ATEN.add.Tensor) else "sub"
            return [name, *map(self.read, pair)]
        return ["row", self._leaf(node)]

    def _check_shape(self, node: Any) -> None:
        """Refuse what is broadcast: all rows must be one for each triple."""
        shape = shape_of(node)
        self.shape = self.shape or shape
        differs = len(shape) != 2 or not same_size(shape[1], self.shape[1])
        if not differs:
            difference: Any = size_expression(shape[0]) - size_expression(self.shape[0])
            differs = bool(difference != 0) and is_fixed(difference)
        if differs:
            refuse(
                self.root,
                f"what is summed must be of one shape (triples, columns), not also {shape} "
                f"({node!s}), in {describe(self.root)}",
            )

    def _leaf(self, node: Any) -> int:
        part, parts, rows = 0, 1, as_rows(node)
        if rows is None and (found := as_part(node)) is not None:
            whole, part, parts = found
            rows = as_rows(skip_copies(whole))
        if rows is None:
            refuse(
                self.root,
                f"what is summed must be computed from looked-up rows by +, -, *, abs and squares, "
                f"not from {node!s}, in {describe(self.root)}; the rest is left to torch",
            )
        indices = skip_copies(rows.indices)
        for number, (table, others, *which) in enumerate(self.leaves):
            same_rows = same_value(table, rows.table) and same_value(others, indices)
            if same_rows and which == [part, parts]:
                return number
        check_table("table", rows.table, self.root)
        check_indices("indices", indices, self.root, (1,))
        self.leaves.append((rows.table, indices, part, parts))
        return len(self.leaves) - 1


def match_scores(node: Node) -> Operation:
    """Read a sum, or a norm, over the columns of what is computed from looked-up rows.

    TransE, DistMult and ComplEx are such scores; so is the product of the rows at both ends of an
    edge.

    Parameters
    ----------
    node : Node
        A call of one of `SCORE_OPS`.

    Returns
    -------
    Operation
        Roles `table0`, `table1`, .. and `indices0`, `indices1`, ..; facts `expression`, `leaves`
        ((table, indices, part, parts), with roles by number), `after` (what is done with the sum)
        and `index_dtypes`.

    Raises
    ------
    UnsupportedError
        It isn't computed by the accelerator; names the torch node.
    """
    given = bind_arguments(node)
    where = f"in {describe(node)}"
    after: list[str] = []
    if node.target is _NORM:
        if len(shape_of(given["self"])) != 2 or list(given["dim"] or []) not in ([-1], [1]):
            refuse(node, f"dim must be the last of 2-D rows, not {given['dim']}, {where}")
        if given["keepdim"] or given["dtype"] is not None:
            refuse(node, f"a norm must have no keepdim and no dtype, {where}")
        if given["ord"] not in (1, 2):
            refuse(node, f"the norm must be 1 or 2, not {given['ord']}, {where}")
        wrap = "abs" if given["ord"] == 1 else "square"
        after += ["sqrt"] if given["ord"] == 2 else []
    elif not is_plain_sum(node):
        refuse(
            node,
            f"a sum of scores must be x.sum(-1) of 2-D rows in their dtype, without keepdim, "
            f"{where}",
        )
    else:
        wrap = None
    reader = _Expression(node)
    expression = reader.read(given["self"])
    expression = [wrap, expression] if wrap else expression
    output = node
    while len(output.users) == 1 and is_call(user := next(iter(output.users)), *_AFTER):
        after.append(_AFTER[user.target])
        output = user
    return _operation(node, output, reader, expression, after)


def _operation(
    node: Node, output: Node, reader: _Expression, expression: list[Any], after: list[str]
) -> Operation:
    tables: list[Node] = []
    indices: list[Node] = []
    leaves: list[list[int]] = []
    for table, lookup, part, parts in reader.leaves:
        leaves.append([_place(tables, table), _place(indices, lookup), part, parts])
    return Operation(
        kind="scores",
        node=node,
        output=output,
        inputs={
            **{f"table{number}": table for number, table in enumerate(tables)},
            **{f"indices{number}": lookup for number, lookup in enumerate(indices)},
        },
        tables=tuple(f"table{number}" for number in range(len(tables))),
        facts={
            "expression": expression,
            "leaves": leaves,
            "after": after,
            "index_dtypes": [index_dtype(lookup) for lookup in indices],
        },
        sizes={f"indices{number}": ("K",) for number in range(len(indices))},
    )


def _place(values: list[Node], value: Node) -> int:
    """Return the number of a value, which is added if it is a new one."""
    for number, other in enumerate(values):
        if same_value(other, value):
            return number
    values.append(value)
    return len(values) - 1
