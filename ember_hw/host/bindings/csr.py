"""Edges as row pointers: what SpMM, aggregation and FusedMM have in common."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_hw.compiler.element_dtypes import ELEMENT_DTYPES
from ember_hw.host.arrays import (
    check_count,
    check_rows,
    float_array,
    integer_array,
    row_pointers,
)
from ember_hw.host.bindings.operation import Call
from ember_hw.host.bindings.row_types import types_of
from ember_hw.host.request import LookupRequest


def from_edges(call: Call, num_sources: int) -> LookupRequest:
    """Sort edges by their targets; edges of one target stay in the caller's order.

    Parameters
    ----------
    call : Call
        Has the roles `source`, `target` and, where edges have weights, `weights`.
    num_sources : int
        Rows that sources name.

    Returns
    -------
    LookupRequest
        A bag of sources for each target, with the edges' weights.

    Raises
    ------
    TypeError, ValueError, IndexError
        The edges break a rule.
    """
    table = call.name("dense")
    names = {role: call.name(role) for role in ("source", "target")}
    source, target = (integer_array(name, call.value(role), table) for role, name in names.items())
    for role, array in (("source", source), ("target", target)):
        if array.ndim != 1:
            raise ValueError(
                f"{names[role]} must be 1-D, not of shape {array.shape} (table {table!r})"
            )
    check_count(names["source"], source.size, table)
    if target.size != source.size:
        raise ValueError(
            f"{names['target']} must have an entry for each of the {source.size} edges, "
            f"not {target.size} (table {table!r})"
        )
    check_rows(names["source"], source, num_sources, table)
    rows = num_rows(call)
    check_rows(names["target"], target, rows, "the result")
    order = np.argsort(target, kind="stable")
    counts = np.bincount(target, minlength=rows)
    pointers = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    weights = None
    if "weights" in call:
        name = call.name("weights")
        dtype = ELEMENT_DTYPES[types_of(call.program).weights]
        weights = float_array(name, call.value("weights"), table, shape=source.shape, dtype=dtype)
        weights = weights[order]
    return LookupRequest(np.ascontiguousarray(source[order]), pointers, rows, weights)


def num_rows(call: Call) -> int:
    """Return the rows of the result: a fixed number, or as many as a role has."""
    rows = call.facts["rows"]
    return rows if isinstance(rows, int) else len(call.matrix(rows))


def from_parts(call: Call, num_sources: int) -> LookupRequest:
    """Check row pointers, columns and values.

    Parameters
    ----------
    call : Call
        Has the roles `crow`, `col` and, for SpMM, `values`.
    num_sources : int
        Rows that columns name.

    Raises
    ------
    TypeError, ValueError, IndexError
        They break a rule.
    """
    values = call.value("values") if "values" in call else None
    names = tuple(call.name(role) if role in call else role for role in ("crow", "col", "values"))
    return _checked(call, names, (call.value("crow"), call.value("col"), values), num_sources)


def _checked(
    call: Call, names: tuple[str, ...], parts: tuple[Any, Any, Any], num_sources: int
) -> LookupRequest:
    table = call.name("dense")
    crow, col = (
        integer_array(name, part, table) for name, part in zip(names[:2], parts[:2], strict=True)
    )
    for name, array in zip(names[:2], (crow, col), strict=True):
        if array.ndim != 1:
            raise ValueError(f"{name} must be 1-D, not of shape {array.shape} (table {table!r})")
    check_count(names[0], crow.size, table)
    check_count(names[1], col.size, table)
    if crow.size == 0:
        raise ValueError(f"{names[0]} must have an entry at least, not be empty (table {table!r})")
    pointers = row_pointers(names[0], crow, col.size, table, items="entries", ends_with_last=True)
    if int(pointers[-1]) != col.size:
        raise ValueError(
            f"{names[0]}[{crow.size - 1}] must be {col.size}, the number of entries, "
            f"not {int(pointers[-1])} (table {table!r})"
        )
    check_rows(names[1], col, num_sources, table)
    weights = None
    if parts[2] is not None:
        weights = float_array(names[2], parts[2], table, shape=col.shape)
        weights = np.ascontiguousarray(weights)
    return LookupRequest(np.ascontiguousarray(col), pointers, pointers.size - 1, weights)


def from_sparse(call: Call, num_sources: int) -> LookupRequest:
    """Take a sparse tensor apart; entries of COO are sorted by their rows, and stay in order.

    Parameters
    ----------
    call : Call
        Has the role `sparse`, a torch tensor of layout CSR or COO.
    num_sources : int
        Rows of the dense matrix.

    Raises
    ------
    TypeError, ValueError, IndexError
        It is another tensor, or doesn't fit the dense matrix.
    """
    name, sparse, table = call.name("sparse"), call.value("sparse"), call.name("dense")
    layout = str(getattr(sparse, "layout", type(sparse).__name__)).removeprefix("torch.")
    if layout not in ("sparse_csr", "sparse_coo"):
        raise TypeError(
            f"{name} must be a torch tensor of layout sparse_csr or sparse_coo, not {layout} "
            f"(table {table!r})"
        )
    shape = tuple(sparse.shape)
    if len(shape) != 2 or shape[1] != num_sources:
        raise ValueError(
            f"{name} must be of shape (any, {num_sources}), not {shape} (table {table!r})"
        )
    if layout == "sparse_csr":
        parts = sparse.crow_indices(), sparse.col_indices(), sparse.values()
    else:
        rows = sparse._indices()[0].cpu().numpy()
        order = np.argsort(rows, kind="stable")
        crow = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=shape[0]))))
        values = sparse._values().detach().cpu().numpy()
        parts = crow, sparse._indices()[1].cpu().numpy()[order], values[order]
    names = (f"{name}.crow_indices()", f"{name}.col_indices()", f"{name}.values()")
    return _checked(call, names, parts, num_sources)
