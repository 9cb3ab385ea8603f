# pyright: basic
"""Models of the op classes that can't be imported as a whole, and sparse inputs."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from ember_hw.bench.fuzzing.op_models import Model
from ember_hw.compiler.frontend import OperationSpec, import_module
from ember_hw.compiler.frontend.operation_spec import Source
from ember_hw.compiler.frontend.tests.operations import run_at_scf
from ember_hw.errors import UnsupportedError

X = torch.arange(14.0).reshape(7, 2)
SOURCE = torch.tensor([0, 1, 4, 2, 2])
TARGET = torch.tensor([1, 1, 0, 3, 2])
CROW = torch.tensor([0, 2, 5])


def _spec(function, *inputs) -> OperationSpec:
    spec = import_module(Model(function, 2), inputs).spec
    assert isinstance(spec, OperationSpec)
    return spec


def _refused(text: str, function, *inputs):
    with pytest.raises(UnsupportedError) as caught:
        import_module(Model(function, 2), inputs)
    assert re.match(text, str(caught.value)), str(caught.value)


def test_rows_of_an_input_are_told_apart():
    spec = _spec(
        lambda m, x, e: torch.zeros_like(x).index_add(0, e[1], x[e[0]]),
        X,
        torch.stack([SOURCE, TARGET]),
    )
    assert spec.sources == {
        "dense": Source("a"),
        "source": Source("b", 0),
        "target": Source("b", 1),
    }


def test_rows_of_the_result_are_those_of_the_matrix_or_fixed():
    def same(model, x, source, target):
        return torch.zeros_like(x).index_add(0, target, x[source])

    def fixed(model, x, source, target):
        return torch.zeros(9, 2).index_add(0, target, x[source])

    assert _spec(same, X, SOURCE, TARGET).facts["rows"] == "dense"
    spec = _spec(fixed, X, SOURCE, TARGET)
    assert (spec.facts["rows"], spec.facts["columns"]) == (9, 2)
    assert run_at_scf(spec, (X, SOURCE, TARGET)).shape == (9, 2)


def test_equal_sizes_of_the_example_are_not_taken_for_one():
    # As many edges as nodes: the result has a row for each edge, not for each node.
    def function(model, x, source, target):
        return x.new_zeros(source.shape[0], 2).index_add(0, target, x[source])

    nodes = torch.arange(5)
    _refused(
        "the result must have as many rows as dense, or a fixed number, not|Model must be the same",
        function,
        X[:5],
        nodes,
        nodes.clone(),
    )


def test_model_that_is_another_for_some_sizes_is_refused():
    def function(model, x, source, target):
        if source.shape[0] == 1:
            return torch.zeros_like(x).index_add(0, source, x[target])
        return torch.zeros_like(x).index_add(0, target, x[source])

    _refused(
        "Model must be the same operation at any sizes of its inputs, not another model at sizes "
        "of 1$",
        function,
        X,
        SOURCE,
        TARGET,
    )


def test_table_as_input_is_refused():
    _refused(
        "table must be a parameter or buffer of the model, not the input 'a', in node",
        lambda m, x, h, t: (x[h] * x[t]).sum(-1),
        X,
        SOURCE,
        TARGET,
    )


def test_values_of_another_dtype_are_refused():
    _refused(
        "values must be of dtype float32, not float64, in node",
        lambda m, crow, col, v, x: torch.ops.ember_hw.spmm(crow, col, v, x),
        CROW,
        SOURCE,
        torch.ones(5, dtype=torch.float64),
        X,
    )


def test_weights_of_edges_of_another_dtype_are_refused():
    _refused(
        "weights of edges must be of dtype float32, not int64, in node",
        lambda m, x, s, t, w: torch.zeros_like(x).index_add(0, t, w.unsqueeze(-1) * x[s]),
        X,
        SOURCE,
        TARGET,
        torch.ones(5, dtype=torch.int64),
    )


def test_row_of_an_input_is_no_argument_of_a_bag():
    _refused(
        r"indices must be an input of the model, not row 0 of 'a', in node",
        lambda m, both: torch.nn.functional.embedding_bag(both[0], m.weight, both[1], mode="sum"),
        torch.zeros(2, 4, dtype=torch.int64),
    )


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")
@pytest.mark.parametrize("layout", ["csr", "coo"])
@pytest.mark.parametrize("product", [torch.sparse.mm, torch.mm, torch.matmul, lambda a, b: a @ b])
def test_sparse_tensors_are_imported_by_their_parts(layout, product):
    dense = torch.tensor([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [3.0, 0.0, 4.0], [0.0, 0.0, 0.0]])
    sparse = dense.to_sparse_csr() if layout == "csr" else dense.to_sparse_coo()
    other = torch.randn(3, 5)
    spec = _spec(lambda m, a, b: product(a, b), sparse, other)
    assert (spec.kind, spec.facts["layout"]) == ("spmm", layout)
    assert spec.input_names == ("a", "b")
    assert spec.sources == {"sparse": Source("a"), "dense": Source("b")}
    torch.testing.assert_close(run_at_scf(spec, (sparse, other)), dense @ other)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")
def test_entries_of_an_unsorted_sparse_tensor_are_sorted_and_kept():
    places = torch.tensor([[2, 0, 2, 0], [1, 1, 0, 1]])
    sparse = torch.sparse_coo_tensor(
        places, torch.tensor([1.0, 2.0, 4.0, 8.0]), (4, 3), check_invariants=True
    )
    other = torch.randn(3, 5)
    spec = _spec(lambda m, a, b: a @ b, sparse, other)
    torch.testing.assert_close(run_at_scf(spec, (sparse, other)), sparse.to_dense() @ other)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")
@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda m, a, b: torch.sum(a) + b, "sum"),
        (lambda m, a, b: torch.mm(b, a), "mm"),
    ],
)
def test_other_uses_of_sparse_tensors_are_refused(function, name):
    square = torch.eye(3).to_sparse_csr()
    _refused(
        r"a sparse tensor must be used as torch\.sparse\.mm\(sparse, dense\) or sparse @ dense "
        rf"with a 2-D dense tensor, not in '{name}'; or pass its parts to "
        r"ember_hw\.spmm\(crow, col, values, dense\)$",
        function,
        square,
        torch.ones(3, 3),
    )


@pytest.mark.filterwarnings("ignore:Sparse CS")
@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_coo])
def test_sparse_constant_is_refused(layout):
    class Smooth(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("adjacency", torch.eye(4).to_sparse(layout=layout))

        def forward(self, x):
            return self.adjacency @ x

    with pytest.raises(UnsupportedError) as caught:
        import_module(Smooth(), (torch.ones(4, 3),))
    assert str(caught.value) == (
        f"adjacency of Smooth must be an input of the model, not a constant of layout {layout}; "
        "pass it to forward, or its parts to ember_hw.spmm(crow, col, values, dense)"
    )
    assert caught.value.node == "adjacency"


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")
def test_sparse_input_beside_another_operation_is_refused():
    class TwoSparse(torch.nn.Module):
        def forward(self, first, second, dense) -> Any:
            return (first @ dense) * 0 + second @ dense

    square = torch.eye(3).to_sparse_csr()
    with pytest.raises(UnsupportedError, match="must be the only embedding operation"):
        import_module(TwoSparse(), (square, square.clone(), torch.ones(3, 3)))
