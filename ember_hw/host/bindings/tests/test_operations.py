# pyright: basic
"""Every rule for the inputs of imported operations, and what their requests hold."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from ember_hw.errors import ProgramError
from ember_hw.host.bindings import binding_of
from ember_hw.host.reference_attention import block_attention
from ember_hw.host.reference_edges import fusedmm
from ember_hw.host.reference_scores import scores
from ember_hw.host.request import normalise_request

TABLE = np.random.default_rng(0).standard_normal((7, 4)).astype(np.float32)


def _ints(*values: int) -> np.ndarray:
    return np.array(values)


def _program(kind: str, sources: dict[str, Any], facts: dict[str, Any], symbols: Any, **weights):
    names = list(dict.fromkeys(name for name, _ in sources.values()))
    program: Any = SimpleNamespace(
        name="case",
        model={
            "kind": kind,
            "name": kind,
            "input_names": names,
            "sources": sources,
            "facts": facts,
            "symbols": symbols,
            "weights": {role: {"name": role, "shape": [7, 4]} for role in weights},
            "size_limits": [],
        },
        tables={symbol: TABLE for symbol, (role, *_) in symbols.items() if role in weights},
    )
    binding_of(program).check(program)
    return program


def _named(*roles: str) -> dict[str, Any]:
    return {role: [role, None] for role in roles}


EMBEDDING = _program(
    "embedding",
    _named("indices"),
    {"index_dtype": "int64"},
    {"tab": ["weight", 0, 1]},
    weight=True,
)
SPMM = _program(
    "spmm",
    _named("crow", "col", "values", "dense"),
    {"layout": "parts", "index_dtype": "int64"},
    {"tab": ["dense", 0, 1]},
)
SPARSE = _program(
    "spmm",
    _named("sparse", "dense"),
    {"layout": "csr", "index_dtype": "int64"},
    {"tab": ["dense", 0, 1]},
)
AGGREGATION = _program(
    "aggregation",
    {"dense": ["x", None], "source": ["e", 0], "target": ["e", 1], "weights": ["w", None]},
    {
        "mode": "sum",
        "rows": "dense",
        "columns": 4,
        "source_dtype": "int64",
        "target_dtype": "int64",
    },
    {"tab": ["dense", 0, 1]},
)
TWO_LISTS = _program(
    "aggregation",
    _named("dense", "source", "target"),
    {**AGGREGATION.model["facts"], "rows": 3, "columns": None},
    {"tab": ["dense", 0, 1]},
)
FUSED = _program(
    "fusedmm",
    _named("queries", "keys", "dense", "crow", "col"),
    {"layout": "parts", "same": {}, "nonlinearity": "relu", "index_dtype": "int64"},
    {"qry": ["queries", 0, 1], "key": ["keys", 0, 1], "tab": ["dense", 0, 1]},
)
SCORES = _program(
    "scores",
    _named("indices0", "indices1"),
    {
        "expression": ["mul", ["row", 0], ["row", 1]],
        "leaves": [[0, 0, 0, 1], [0, 1, 0, 1]],
        "after": [],
        "index_dtypes": ["int64", "int32"],
    },
    {"tab0": ["table0", 0, 1]},
    table0=True,
)
ATTENTION = _program(
    "block_attention",
    _named("queries", "keys", "values", "blocks"),
    {"block_size": 2, "scale": 0.5, "index_dtype": "int64", "whole_blocks": False},
    {"key": ["keys", 0, 1], "val": ["values", 0, 1]},
)
WHOLE = _program(
    "block_attention",
    ATTENTION.model["sources"],
    {**ATTENTION.model["facts"], "whole_blocks": True},
    ATTENTION.model["symbols"],
)
X = TABLE
EDGES = np.array([[0, 6, 2], [1, 1, 0]])
W = np.ones(3, np.float32)
NAN = np.float32(np.nan)

REFUSED = [
    (EMBEDDING, (_ints(1, 7),), IndexError, "indices[1] must be in [0, 7), the rows of table "
     "'weight', not 7"),
    (EMBEDDING, (np.zeros(2, np.int16),), TypeError, "indices must be of dtype int32 or int64, "
     "not int16; nothing is cast (table 'weight')"),
    (EMBEDDING, (), ProgramError, "inputs of program 'case' must be (indices), and 'indices' must "
     "not be left out"),
    (SPMM, (_ints(1, 2), _ints(0, 0), W[:2], X), ValueError, "crow[0] must be 0, not 1 (table "
     "'dense')"),
    (SPMM, (_ints(0, 1), _ints(0, 0), W[:2], X), ValueError, "crow[1] must be 2, the number of "
     "entries, not 1 (table 'dense')"),
    (SPMM, (_ints(0, 3), _ints(0, 0), W[:2], X), ValueError, "crow[1] must be at most 2, the "
     "number of entries, not 3 (table 'dense')"),
    (SPMM, (_ints()[:0].astype(int), _ints(0), W[:1], X), ValueError, "crow must have an entry at "
     "least, not be empty (table 'dense')"),
    (SPMM, (_ints(0, 2), _ints(0, 0).reshape(1, 2), W[:2], X), ValueError, "col must be 1-D, not "
     "of shape (1, 2) (table 'dense')"),
    (SPMM, (_ints(0, 2), _ints(0, 7), W[:2], X), IndexError, "col[1] must be in [0, 7), the rows "
     "of table 'dense', not 7"),
    (SPMM, (_ints(0, 2), _ints(0, 6), W, X), ValueError, "values must be of shape (2,), not (3,) "
     "(table 'dense')"),
    (SPMM, (_ints(0, 2), _ints(0, 6), W[:2], X.astype(float)), TypeError, "dense must be of dtype "
     "float32, not float64; nothing is cast (table 'dense')"),
    (SPMM, (_ints(0, 2), _ints(0, 6), W[:2], X[0]), ValueError, "dense must be of shape (any, "
     "any), not (4,) (table 'dense')"),
    (SPARSE, (X, X), TypeError, "sparse must be a torch tensor of layout sparse_csr or sparse_coo, "
     "not ndarray (table 'dense')"),
    (SPARSE, (torch.zeros(3, 7), X), TypeError, "sparse must be a torch tensor of layout "
     "sparse_csr or sparse_coo, not strided (table 'dense')"),
    (SPARSE, (torch.eye(3).to_sparse_coo(), X), ValueError, "sparse must be of shape (any, 7), not "
     "(3, 3) (table 'dense')"),
    (AGGREGATION, (X[:, :2], EDGES, W), ValueError, "x must have the 4 columns of the result, not "
     "2"),
    (AGGREGATION, (X, EDGES[0], W), ValueError, "e must have 2 dimensions, not 1"),
    (AGGREGATION, (X, EDGES[:1], W), ValueError, "e must have at least 2 rows, not 1"),
    (AGGREGATION, (X, EDGES + 1, W), IndexError, "e[0][1] must be in [0, 7), the rows of table "
     "'x', not 7"),
    (AGGREGATION, (X, EDGES, W[:2]), ValueError, "w must be of shape (3,), not (2,) (table 'x')"),
    (TWO_LISTS, (X, EDGES[0], EDGES[1][:2]), ValueError, "target must have an entry for each of "
     "the 3 edges, not 2 (table 'dense')"),
    (TWO_LISTS, (X, EDGES, EDGES[1]), ValueError, "source must be 1-D, not of shape (2, 3) (table "
     "'dense')"),
    (TWO_LISTS, (X, EDGES[0], _ints(0, 3, 1)), IndexError, "target[1] must be in [0, 3), the rows "
     "of table 'the result', not 3"),
    (FUSED, (X[:1], X, X, _ints(0, 1, 2), _ints(0, 1)), ValueError, "queries must have a row for "
     "each of the 2 nodes, not 1"),
    (FUSED, (X, X[:6], X, _ints(0, 1, 2), _ints(0, 1)), ValueError, "keys must have the 7 rows of "
     "dense, not 6"),
    (FUSED, (X[:, :3], X, X, _ints(0, 1, 2), _ints(0, 1)), ValueError, "queries must have the 4 "
     "columns of dense, not 3"),
    (SCORES, (_ints(1, 2), _ints(1)), ValueError, "indices1 must have an entry for each of the 2 "
     "triples, not 1 (table 'table0')"),
    (SCORES, (_ints(1, 2).reshape(1, 2), _ints(1)), ValueError, "indices0 must be 1-D, not of "
     "shape (1, 2) (table 'table0')"),
    (SCORES, (_ints(1), _ints(-1)), IndexError, "indices1[0] must be in [0, 7), the rows of table "
     "'table0', not -1"),
    (ATTENTION, (X[:3], X, X[:5], _ints(0, 1).reshape(2, 1)), ValueError, "values must be of the "
     "shape (7, 4) of keys, not (5, 4)"),
    (ATTENTION, (X[:3, :2], X, X, _ints(0, 1).reshape(2, 1)), ValueError, "queries must have the 4 "
     "columns of keys, not 2"),
    (WHOLE, (X[:2], X, X, _ints(0).reshape(1, 1)), ValueError, "keys must have whole blocks of 2 "
     "rows, not 7 rows"),
    (ATTENTION, (X[:3], X, X, _ints(0, 1).reshape(1, 2)), ValueError, "blocks must be of shape "
     "(2, at least 1), a row for each block of queries, not (1, 2)"),
    (ATTENTION, (X[:3], X, X, _ints(0, 4).reshape(2, 1)), IndexError, "blocks[1, 0] must be in "
     "[0, 4), the rows of table 'blocks of keys', not 4"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "inputs", "error", "text"), REFUSED)
def test_inputs_that_break_a_rule_are_refused(program, inputs, error, text):
    with pytest.raises(error, match=f"^{re.escape(text)}$"):
        binding_of(program).request(program, inputs)


def test_edges_are_sorted_by_target_and_stay_in_order():
    weights = np.arange(3, dtype=np.float32)
    request = binding_of(AGGREGATION).request(AGGREGATION, (X, EDGES, weights))
    assert request.arrays["off"].tolist() == [0, 1, 3, 3, 3, 3, 3, 3]
    assert request.arrays["idx"].tolist() == [2, 0, 6]
    assert request.arrays["psw"].tolist() == [2.0, 0.0, 1.0]
    assert request.arrays["tab"] is X
    assert request.lookups == 3


def test_partial_blocks_end_with_the_keys_and_queries_are_padded():
    inputs = (X[:3], X, X, _ints(0, 3).reshape(2, 1))
    request = binding_of(ATTENTION).request(ATTENTION, inputs)
    assert request.arrays["first"].tolist() == [[0], [6]]
    assert request.arrays["count"].tolist() == [[2], [1]]
    assert request.arrays["qry"].shape == (4, 4)
    assert not request.arrays["qry"][3].any()
    assert request.outputs["s"].shape == (4, 2)
    assert request.finish({"out": np.zeros((4, 4), np.float32)}).shape == (3, 4)


def test_attention_is_near_the_true_value():
    blocks = _ints(0, 3, 1, 3).reshape(2, 2)
    single = block_attention(X[:3], X, X, blocks, 2, 0.5)
    double = block_attention(X[:3], X, X, blocks, 2, 0.5, np.float64)
    assert (single.dtype, double.dtype) == (np.float32, np.float64)
    np.testing.assert_allclose(single, double, rtol=1e-5, atol=1e-6)


def test_maximum_starts_below_every_row():
    program = _program(
        "aggregation",
        _named("dense", "source", "target"),
        {**TWO_LISTS.model["facts"], "mode": "max"},
        {"tab": ["dense", 0, 1]},
    )
    request = binding_of(program).request(program, (X, EDGES[0], EDGES[1]))
    assert request.outputs["out"].fill == -np.inf


def test_indices_come_in_the_dtype_of_the_program():
    request = binding_of(SCORES).request(SCORES, (_ints(1, 2), _ints(3, 4)))
    assert [request.arrays[f"idx{k}"].dtype for k in (0, 1)] == [np.int64, np.int32]
    assert request.rows["tab0"].tolist() == [1, 2, 3, 4]


def test_result_is_a_tensor_if_an_input_is():
    for indices, kind in ((_ints(1), np.ndarray), (torch.tensor([1]), torch.Tensor)):
        request = binding_of(EMBEDDING).request(EMBEDDING, (indices,))
        rows = request.finish({"out": np.zeros((1, 4), np.float32)})
        assert isinstance(rows, kind)
        assert rows.shape == (1, 4)


def test_table_of_another_shape_is_refused():
    program: Any = SimpleNamespace(name="case", model=EMBEDDING.model, tables={"tab": TABLE[:, :3]})
    text = (
        "table 'tab' of program 'case' must be float32 of shape (7, 4), not float32 of shape (7, 3)"
    )
    with pytest.raises(ProgramError, match=f"^{re.escape(text)}$"):
        binding_of(program).check(program)


def test_size_that_the_model_fixes_is_checked():
    program: Any = SimpleNamespace(
        name="case",
        model={**EMBEDDING.model, "size_limits": [["indices", 0, 2, 2]]},
        tables=EMBEDDING.tables,
    )
    with pytest.raises(ValueError, match=r"^indices\.shape\[0\] must be 2, as the program was"):
        binding_of(program).request(program, (_ints(1),))


@pytest.mark.parametrize("nonlinearity", ["identity", "sigmoid", "relu", "exp"])
def test_fusedmm_is_near_the_true_value(nonlinearity):
    edges = normalise_request(_ints(0, 6, 2, 2), _ints(0, 0, 3), num_embeddings=7)
    single = fusedmm(X, X, X, edges, nonlinearity)
    double = fusedmm(X, X, X, edges, nonlinearity, np.float64)
    assert (single.dtype, double.dtype) == (np.float32, np.float64)
    np.testing.assert_allclose(single, double, rtol=1e-5, atol=1e-6)
    assert not single[0].any()


def test_scores_are_near_the_true_value_and_sequential():
    expression = ["mul", ["row", 0], ["row", 1]]
    single = scores(expression, [X, X], ["sqrt"])
    double = scores(expression, [X, X], ["sqrt"], np.float64)
    np.testing.assert_allclose(single, double, rtol=1e-6)
    # Pairwise summation would not lose the small addends.
    row = np.array([[2.0**24] + [1.0] * 64], np.float32)
    assert scores(["row", 0], [row], []).tolist() == [2.0**24]
