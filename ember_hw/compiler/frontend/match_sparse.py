"""Reads the product of a sparse matrix and a dense one, and the operators of `torch_ops`."""

from __future__ import annotations

from typing import Any

import torch

from ember_hw.compiler.frontend import torch_ops
from ember_hw.compiler.frontend.operation import (
    Operation,
    check_indices,
    check_table,
    index_dtype,
    refuse,
)
from ember_hw.compiler.frontend.torch_graph import bind_arguments, describe, target_name, value_of

_ATEN = torch.ops.aten
_SPMM: Any = torch.ops.ember_hw.spmm.default
_FUSEDMM: Any = torch.ops.ember_hw.fusedmm.default
assert torch_ops.spmm  # importing it registers the two
#: What `torch.sparse.mm` and `@` become.
SPARSE_TENSOR_OPS: tuple[Any, ...] = (
    _ATEN._sparse_mm.default,
    _ATEN.mm.default,
    _ATEN.matmul.default,
)
SPARSE_OPS: tuple[Any, ...] = (_SPMM, _FUSEDMM)
LAYOUTS = {torch.sparse_csr: "csr", torch.sparse_coo: "coo"}

Node = torch.fx.Node


def is_sparse_product(node: Node) -> bool:
    """Whether a node multiplies a sparse tensor by another one."""
    if node.target not in SPARSE_TENSOR_OPS:
        return False
    return any(
        isinstance(value := value_of(argument), torch.Tensor) and value.layout != torch.strided
        for argument in node.args
    )


def match_sparse(node: Node) -> Operation:
    """Read a product for which `is_sparse_product`, or a call of one of `SPARSE_OPS`.

    Returns
    -------
    Operation
        Kind "spmm": role `dense`, and `crow`, `col`, `values` or the tensor `sparse` (fact `layout`
        is then "csr" or "coo", else "parts"). Kind "fusedmm": roles `crow`, `col`, `dense`,
        `queries`, `keys`; facts as of the one written with edges.

    Raises
    ------
    UnsupportedError
        It isn't computed by the accelerator; names the torch node.
    """
    if node.target is _SPMM:
        return _match_spmm(node)
    if node.target is _FUSEDMM:
        return _match_fusedmm(node)
    where = f"in {describe(node)}"
    sparse, dense = node.args[:2]
    value: Any = value_of(sparse)
    if value.layout not in LAYOUTS:
        kind = str(value.layout)
        refuse(
            node,
            f"the left matrix must be sparse, CSR or COO, and the right one dense, not {kind}, "
            f"{where}",
        )
    check_table("dense", _node(node, dense), node)
    dtype = str(value.dtype).removeprefix("torch.")
    if dtype != "float32" or value.ndim != 2:
        refuse(
            node,
            f"the sparse matrix must be float32 with 2 dimensions, not {dtype} with {value.ndim}, "
            f"{where}",
        )
    return Operation(
        kind="spmm",
        node=node,
        output=node,
        inputs={"sparse": _node(node, sparse), "dense": _node(node, dense)},
        tables=("dense",),
        facts={"layout": LAYOUTS[value.layout], "index_dtype": "int64"},
    )


def _node(user: Node, value: Any) -> Node:
    if not isinstance(value, Node):
        refuse(user, f"{target_name(user)} must multiply tensors, not {type(value).__name__}")
    return value


def _match_spmm(node: Node) -> Operation:
    given = bind_arguments(node)
    _check_parts(node, given)
    dtype = str(value_of(given["values"]).dtype).removeprefix("torch.")
    if dtype != "float32":
        refuse(node, f"values must be of dtype float32, not {dtype}, in {describe(node)}")
    return Operation(
        kind="spmm",
        node=node,
        output=node,
        inputs={role: given[role] for role in ("crow", "col", "values", "dense")},
        tables=("dense",),
        facts={"layout": "parts", "index_dtype": index_dtype(given["col"])},
        sizes={"crow": (("R", 1),), "col": ("E",), "values": ("E",)},
    )


def _match_fusedmm(node: Node) -> Operation:
    given = bind_arguments(node)
    _check_parts(node, given)
    check_table("queries", given["queries"], node)
    return Operation(
        kind="fusedmm",
        node=node,
        output=node,
        inputs={
            "crow": given["crow"],
            "col": given["col"],
            "dense": given["dense"],
            "queries": given["queries"],
            "keys": given["dense"],
        },
        tables=("dense", "queries", "keys"),
        facts={
            "layout": "parts",
            "mode": "sum",
            "nonlinearity": given["nonlinearity"],
            "index_dtype": index_dtype(given["col"]),
        },
        sizes={"crow": (("R", 1),), "col": ("E",)},
    )


def _check_parts(node: Node, given: dict[str, Any]) -> None:
    check_indices("crow", given["crow"], node, (1,))
    check_indices("col", given["col"], node, (1,))
    check_table("dense", given["dense"], node)
