# pyright: basic
"""What is found in graphs, what is refused and why, and what must not be taken for an operation."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn

from ember_hw.bench.fuzzing.op_models import Model
from ember_hw.compiler.frontend import find_operations
from ember_hw.compiler.frontend.tests.operations import captured, fusedmm, run_operation

X = torch.arange(14.0).reshape(7, 2)
SOURCE = torch.tensor([0, 1, 4, 2, 2])
TARGET = torch.tensor([1, 1, 0, 3, 2])
WEIGHTS = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
TRIPLES = (torch.tensor([0, 5, 2]), torch.tensor([0, 2, 1]), torch.tensor([3, 5, 1]))


def _find(function, *inputs, columns: int = 2):
    return captured(Model(function, columns), inputs)


def _zeros(x):
    return torch.zeros_like(x)


def _column(index, like):
    return index[:, None].expand_as(like)


#: Each breaks one side condition: name, function, inputs, kinds that are found, reason.
REFUSED = [
    (
        "added to something",
        lambda m, x, s, t: x.index_add(0, t, x[s]),
        (X, SOURCE, TARGET),
        "the tensor that is added to must be zeros, not .*; add the rows to zeros and the result",
    ),
    (
        "columns",
        lambda m, x, s: _zeros(x).index_add(1, s[:2], x[:, :2]),
        (X, SOURCE),
        "dim must be 0 of a 2-D tensor, not 1",
    ),
    (
        "alpha",
        lambda m, x, s, t: _zeros(x).index_add(0, t, x[s], alpha=2),
        (X, SOURCE, TARGET),
        "alpha must be 1, not 2",
    ),
    (
        "message of a network",
        lambda m, x, s, t: _zeros(x).index_add(0, t, torch.relu(x[s])),
        (X, SOURCE, TARGET),
        "what is added must be rows of a matrix, .* not relu, .*; the rest is left to torch",
    ),
    (
        "rows that are repeated along the columns",
        lambda m, x, s, t, w: torch.zeros(7, 2).index_add(0, t, w[:, None].expand(-1, 2) * x[s]),
        (X[:, :1].clone(), SOURCE, TARGET, WEIGHTS),
        "rows must have the 2 columns of the result, not 1, in",
    ),
    (
        "product",
        lambda m, x, s, t: _zeros(x).scatter_reduce(
            0, _column(t, x[s]), x[s], "prod", include_self=False
        ),
        (X, SOURCE, TARGET),
        "reduce must be 'sum', 'mean' or 'amax', not 'prod'",
    ),
    (
        "itself",
        lambda m, x, s, t: _zeros(x).scatter_reduce(0, _column(t, x[s]), x[s], "amax"),
        (X, SOURCE, TARGET),
        "include_self must be False with 'amax', not True",
    ),
    (
        "single elements",
        lambda m, x, i: _zeros(x).scatter_add(0, i, x[:5]),
        (X, torch.zeros(5, 2, dtype=torch.int64)),
        "index must be one row number for whole rows, .* index_add takes the row numbers",
    ),
    (
        "weight of an element",
        lambda m, x, s, t: _zeros(x).index_add(0, t, x[s] * x[t]),
        (X, SOURCE, TARGET),
        "what is added must be rows of a matrix",
    ),
    (
        "weight that is computed as a matrix",
        lambda m, x, s, t: _zeros(x).index_add(0, t, x[s] * x[t].sum(-1, keepdim=True)),
        (X, SOURCE, TARGET),
        r"rows must be multiplied by one weight for each edge, w\.unsqueeze\(-1\), not",
    ),
    (
        "score of other nodes",
        lambda m, x, s, t: _zeros(x).index_add(
            0, t, x[s] * (x[s] * x[s.flip(0)]).sum(-1, keepdim=True)
        ),
        (X, SOURCE, TARGET),
        "the score of an edge must be a product of a row of its target and a row of its source",
    ),
    (
        "double rows",
        lambda m, x, s, t: _zeros(x).index_add(0, t, x[s]),
        (X.double(), SOURCE, TARGET),
        "dense .* must be of dtype float32 or float16 or bfloat16, not float64, .*; convert the "
        "model",
    ),
    (
        "double weights",
        lambda m, x, s, t, w: torch.zeros(7, 2).index_add(
            0, t, torch.ops.aten.mul.Tensor(x[s], w.unsqueeze(-1)).float()
        ),
        (X, SOURCE, TARGET, WEIGHTS.double()),
        "what is added must be rows of a matrix",
    ),
    (
        "max_norm",
        lambda m, i: nn.functional.embedding(i, m.weight, max_norm=1.0),
        (SOURCE,),
        r"max_norm must be None, not 1\.0",
    ),
    (
        "double table",
        lambda m, i: nn.functional.embedding(i, m.weight.double()),
        (SOURCE,),
        "table .* must be of dtype float32 or float16 or bfloat16, not float64",
    ),
    (
        "double spmm",
        lambda m, c, s, w, x: torch.ops.ember_hw.spmm(c, s, w, x),
        (torch.tensor([0, 2, 5]), SOURCE, WEIGHTS.double(), X.double()),
        "dense .* must be of dtype float32, not float64",
    ),
]


@pytest.mark.parametrize(
    ("function", "inputs", "reason"),
    [case[1:] for case in REFUSED],
    ids=[case[0] for case in REFUSED],
)
def test_what_breaks_a_side_condition_is_refused_with_the_reason(function, inputs, reason):
    _, findings = _find(function, *inputs)
    assert all(operation.kind in ("scores", "embedding") for operation in findings.operations)
    (refusal,) = findings.refusals
    assert re.match(reason, refusal.reason), refusal.reason
    assert "node '" in refusal.reason


def _scores(function):
    return _find(function, *TRIPLES, columns=6)[1]


@pytest.mark.parametrize(
    "function",
    [
        lambda m, h, r, t: (m.entities(h) * 2.0).sum(-1),
        lambda m, h, r, t: m.entities(h).sum(0),
        lambda m, h, r, t: m.entities(h).sum(-1, dtype=torch.float64),
        lambda m, h, r, t: torch.add(m.entities(h), m.relations(r), alpha=2).sum(-1),
        lambda m, h, r, t: (m.entities(h) * m.relations.weight[0]).sum(-1),
        lambda m, h, r, t: (m.entities(h) - m.entities(t)).norm(p=3, dim=-1),
        lambda m, h, r, t: (m.entities(h) - m.entities(t)).norm(dim=-1, keepdim=True),
        lambda m, h, r, t: m.entities(h).exp().sum(-1),
    ],
)
def test_other_sums_are_no_scores(function):
    assert [o.kind for o in _scores(function).operations if o.kind == "scores"] == []


@pytest.mark.parametrize(
    ("function", "part"),
    [
        (lambda m, h, r, t: m.entities(h).split(4, -1)[1].sum(-1), 2),
        (lambda m, h, r, t: m.entities(h)[:, 4:].sum(-1), 2),
        (lambda m, h, r, t: m.entities(h)[:, 2:4].sum(-1), 1),
        (lambda m, h, r, t: m.entities(h).chunk(3, 1)[0].sum(-1), 0),
        (lambda m, h, r, t: m.entities(h).chunk(3, 1)[-1].sum(-1), 2),
    ],
)
def test_parts_of_rows_are_told_by_where_they_begin(function, part):
    values, findings = _find(function, *TRIPLES, columns=6)
    (operation,) = findings.operations
    assert operation.facts["leaves"] == [[0, 0, part, 3]]
    torch.testing.assert_close(run_operation(operation, values), values[operation.output])


def test_part_that_is_no_multiple_of_its_size_is_left():
    findings = _scores(lambda m, h, r, t: m.entities(h)[:, 1:3].sum(-1))
    assert [operation.kind for operation in findings.operations] == ["embedding"]


def test_rows_that_others_use_too_are_looked_up_by_themselves():
    def function(model, heads, relations, tails):
        rows = model.entities(heads)
        return (rows * model.relations(relations)).sum(-1), rows * 2

    findings = _scores(function)
    assert [operation.kind for operation in findings.operations] == ["embedding", "scores"]


def test_same_rows_looked_up_twice_are_one():
    findings = _scores(lambda m, h, r, t: (m.entities(h) * m.entities(h)).sum(-1))
    (operation,) = findings.operations
    assert operation.facts["expression"] == ["square", ["row", 0]]


def test_graph_that_writes_in_place_is_refused():
    graph = torch.fx.Graph()
    table, indices = graph.placeholder("table"), graph.placeholder("indices")
    table.meta["val"], indices.meta["val"] = torch.zeros(3, 2), torch.zeros(4, dtype=torch.int64)
    aten = torch.ops.aten
    written = graph.call_function(aten.zero_.default, (table,))
    rows = graph.call_function(aten.embedding.default, (table, indices))
    graph.output(rows)
    findings = find_operations(graph)
    assert findings.operations == ()
    assert findings.refusals[0].reason == (
        "the graph must be functional to compute node 'embedding_default' "
        "(aten.embedding.default), and "
        f"node {written.name!r} (aten.zero_.default) writes in place; write it without the "
        "trailing _"
    )


@pytest.mark.parametrize(("reads_later", "found"), [(False, 1), (True, 0)])
def test_copy_to_an_input_at_the_end_is_no_write_in_place(reads_later, found):
    graph = torch.fx.Graph()
    table, indices = graph.placeholder("table"), graph.placeholder("indices")
    table.meta["val"], indices.meta["val"] = torch.zeros(3, 2), torch.zeros(4, dtype=torch.int64)
    aten = torch.ops.aten

    def lookup():
        return graph.call_function(aten.embedding.default, (table, indices))

    rows = None if reads_later else lookup()
    doubled = graph.call_function(aten.mul.Tensor, (table, 2.0))
    graph.call_function(aten.copy_.default, (table, doubled))
    graph.output(rows or lookup())
    assert len(find_operations(graph).operations) == found


def test_blocks_without_rows_are_refused():
    graph = torch.fx.Graph()
    matrices = [graph.placeholder(name) for name in ("query", "key", "value")]
    blocks = graph.placeholder("blocks")
    for matrix in matrices:
        matrix.meta["val"] = torch.zeros(4, 2)
    blocks.meta["val"] = torch.zeros(2, 1, dtype=torch.int64)
    operator = torch.ops.ember_hw.block_attention.default
    node = graph.call_function(operator, (*matrices, blocks, 0, 1.0))
    graph.output(node)
    (refusal,) = find_operations(graph).refusals
    assert refusal.reason == (
        f"block_size must be a number, at least 1, not 0, in node {node.name!r} "
        "(ember_hw.block_attention.default)"
    )


def test_operator_of_two_matrices_is_read():
    _, findings = _find(
        lambda m, c, s, x: fusedmm(c, s, m.weight[:2] * 1.0, x, "relu"),
        torch.tensor([0, 2, 5]),
        SOURCE,
        X,
    )
    (operation,) = findings.operations
    assert operation.inputs["keys"] is operation.inputs["dense"]
    assert operation.inputs["queries"] is not operation.inputs["dense"]
