# pyright: basic
"""Calls that tracing torch code hardly makes, but graphs of other makers may have: the reasons."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch

from ember_hw.compiler.frontend import find_operations

_ATEN = torch.ops.aten
_BAG = _ATEN.embedding_bag.padding_idx
_SPMM = torch.ops.ember_hw.spmm.default
TABLE = torch.zeros(5, 2)
IDS = torch.zeros(4, dtype=torch.int64)
OFFSETS = torch.zeros(2, dtype=torch.int64)
VALUES = torch.zeros(4)
#: Arguments of a bag: its inputs are named a, b, c ..
BAG = (False, 0, False)


def _graph(target: Any, values: tuple[Any, ...], rest: tuple[Any, ...] = ()) -> torch.fx.Node:
    """Return the call in a graph whose inputs have these values, and the names a, b, c .."""
    graph = torch.fx.Graph()
    inputs = [graph.placeholder(chr(ord("a") + place)) for place in range(len(values))]
    for node, value in zip(inputs, values, strict=True):
        node.meta["val"] = value
    return graph.call_function(target, (*inputs, *rest))


def _only_reason(node: torch.fx.Node, output: torch.fx.Node | None = None) -> str:
    node.graph.output(output or node)
    (refusal,) = find_operations(node.graph).refusals
    return refusal.reason


def _in(node: torch.fx.Node, name: str) -> str:
    return f"node {node.name!r} ({name})"


@pytest.mark.parametrize(
    ("values", "rest", "rule"),
    [
        (
            (TABLE, IDS, OFFSETS),
            (False, 1, False, VALUES),
            "mode must be 'sum' with per_sample_weights, not 'mean', in",
        ),
        ((torch.zeros(5), IDS, OFFSETS), BAG, "table 'a' must have 2 dimensions, not 1, in"),
        ((3, IDS, OFFSETS), BAG, "table must be a tensor, not int, in"),
        (
            (torch.eye(2).to_sparse(), IDS, OFFSETS),
            BAG,
            "table 'a' must be dense, not torch.sparse_coo, in",
        ),
        ((TABLE, 3, OFFSETS), BAG, "indices must be a tensor, not int, in"),
        (
            (TABLE, IDS.to(torch.int16), OFFSETS),
            BAG,
            "indices must be of dtype int32 or int64, not int16, in",
        ),
        (
            (TABLE, IDS, OFFSETS.reshape(1, 2)),
            BAG,
            "offsets must have 1 dimensions, not 2, in",
        ),
    ],
)
def test_arguments_of_a_bag(values, rest, rule):
    bag = _graph(_ATEN.embedding_bag.default, values, rest)
    pooled = bag.graph.call_function(operator.getitem, (bag, 0))
    assert _only_reason(bag, pooled) == f"{rule} {_in(bag, 'aten.embedding_bag.default')}"


def test_weights_of_lookups_must_be_float32():
    bag = _graph(_BAG, (TABLE, IDS, OFFSETS, VALUES.double()))
    *first, weights = bag.args
    bag.args = (*first, *BAG, weights, False, None)
    pooled = bag.graph.call_function(operator.getitem, (bag, 0))
    assert _only_reason(bag, pooled) == (
        "per_sample_weights must be of dtype float32, not float64, in "
        f"{_in(bag, 'aten.embedding_bag.padding_idx')}"
    )


def test_all_results_of_a_bag_at_once():
    bag = _graph(_ATEN.embedding_bag.default, (TABLE, IDS, OFFSETS), BAG)
    user = bag.graph.call_function(len, (bag,))
    assert _only_reason(bag, user) == (
        f"{_in(user, 'len')} must take one result of node {bag.name!r}, not all of them"
    )


def test_pooled_rows_taken_twice():
    bag = _graph(_ATEN.embedding_bag.default, (TABLE, IDS, OFFSETS), BAG)
    takes = [bag.graph.call_function(operator.getitem, (bag, 0)) for _ in range(2)]
    assert _only_reason(bag, takes[0]) == (
        f"{_in(takes[1], 'getitem')} must be the only one to take the pooled rows of "
        f"node {bag.name!r}, not a second one"
    )


def test_pooled_rows_not_taken():
    bag = _graph(_ATEN.embedding_bag.default, (TABLE, IDS, OFFSETS), BAG)
    for number in (1, 2):
        bag.graph.call_function(operator.getitem, (bag, number))
    assert _only_reason(bag, bag.graph.placeholder("other")) == (
        f"{_in(bag, 'aten.embedding_bag.default')} must have its pooled rows used, not ignored"
    )


def _matrix(layout: torch.layout, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    matrix = torch.eye(4, dtype=dtype)
    return matrix if layout == torch.strided else matrix.to_sparse(layout=layout)


@pytest.mark.filterwarnings("ignore:Sparse CS")
@pytest.mark.parametrize(
    ("layouts", "dtype", "rule"),
    [
        (
            (torch.sparse_csc, torch.strided),
            torch.float32,
            "the left matrix must be sparse, CSR or COO, and the right one dense, not "
            "torch.sparse_csc, in",
        ),
        (
            (torch.strided, torch.sparse_coo),
            torch.float32,
            "the left matrix must be sparse, CSR or COO, and the right one dense, not "
            "torch.strided, in",
        ),
        (
            (torch.sparse_coo, torch.strided),
            torch.float64,
            "the sparse matrix must be float32 with 2 dimensions, not float64 with 2, in",
        ),
        (
            (torch.sparse_csr, torch.sparse_csr),
            torch.float32,
            "dense 'b' must be dense, not torch.sparse_csr, in",
        ),
    ],
)
def test_products_of_sparse_matrices(layouts, dtype, rule):
    left, right = layouts
    node = _graph(_ATEN._sparse_mm.default, (_matrix(left, dtype), _matrix(right)))
    assert _only_reason(node) == f"{rule} {_in(node, 'aten._sparse_mm.default')}"


def test_product_with_something_that_is_no_node():
    node = _graph(_ATEN._sparse_mm.default, (_matrix(torch.sparse_coo),), (3,))
    assert _only_reason(node) == "aten._sparse_mm.default must multiply tensors, not int"


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ((OFFSETS, IDS, VALUES.double(), TABLE), "values must be of dtype float32, not float64"),
        ((VALUES, IDS, VALUES, TABLE), "crow must be of dtype int32 or int64, not float32"),
        ((OFFSETS, TABLE.long(), VALUES, TABLE), "col must have 1 dimensions, not 2"),
    ],
)
def test_parts_of_sparse_matrices(values, rule):
    node = _graph(_SPMM, values)
    assert _only_reason(node) == f"{rule}, in {_in(node, 'ember_hw.spmm.default')}"
