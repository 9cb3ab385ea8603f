"""The binding of FusedMM: each node sums the rows of its neighbours, scaled by scores.

The function is `out[b] = sum of s(<qry[b], key[c]>) * tab[c]` over the neighbours
`c = idx[off[b]] .. idx[off[b + 1] - 1]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.program import Program
from ember_hw.host.bindings.aggregation import check_columns
from ember_hw.host.bindings.csr import from_edges, from_parts
from ember_hw.host.bindings.operation import Call, check
from ember_hw.host.bindings.request import Output, Request
from ember_hw.host.reference_edges import fusedmm
from ember_hw.host.request import LookupRequest

__all__ = ["check", "reference", "request"]


def _matrices(call: Call) -> dict[str, NDArray[np.float32]]:
    same: Mapping[str, str] = call.facts["same"]
    roles = ("queries", "keys", "dense")
    return {role: call.matrix(same.get(role, role)) for role in roles}


def _edges(call: Call) -> LookupRequest:
    matrices = _matrices(call)
    rows = len(matrices["dense"])
    if len(matrices["keys"]) < rows:
        raise ValueError(
            f"{call.name('keys')} must have the {rows} rows of {call.name('dense')}, "
            f"not {len(matrices['keys'])}"
        )
    for role in ("queries", "keys"):
        found, wanted = matrices[role].shape[1], matrices["dense"].shape[1]
        if found != wanted:
            raise ValueError(
                f"{call.name(role)} must have the {wanted} columns of {call.name('dense')}, "
                f"not {found}"
            )
    if call.facts.get("layout") == "parts":
        edges = from_parts(call, rows)
    else:
        check_columns(call)
        edges = from_edges(call, rows)
    if len(matrices["queries"]) < edges.num_bags:
        name = call.name(call.facts["same"].get("queries", "queries"))
        raise ValueError(
            f"{name} must have a row for each of the {edges.num_bags} nodes, "
            f"not {len(matrices['queries'])}"
        )
    return edges


def request(program: Program, inputs: Any) -> Request:
    """Return the request of a run.

    Raises
    ------
    ProgramError
        The inputs don't match the program's arguments.
    TypeError, ValueError, IndexError
        The edges or the rows break a rule.
    """
    call = Call(program, inputs)
    edges = _edges(call)
    facts = call.facts
    dtype = np.dtype(facts["index_dtype" if facts.get("layout") == "parts" else "source_dtype"])

    def finish(outputs: Mapping[str, NDArray[Any]]) -> Any:
        return call.result(outputs["out"])

    return Request(
        arrays={
            "off": edges.offsets,
            "idx": edges.indices.astype(dtype, copy=False),
            **call.matrices(),
        },
        scalars={"B": edges.num_bags},
        outputs={"out": Output((edges.num_bags, call.matrix("dense").shape[1]))},
        lookups=int(edges.offsets[-1]),
        finish=finish,
        gathered=int(edges.offsets[-1]),  # of each nest: at low levels every edge is walked twice
    )


def reference(program: Program, inputs: Any) -> Any:
    """Return the sums, in NumPy in the order of the edges."""
    call = Call(program, inputs)
    matrices = _matrices(call)
    return fusedmm(
        matrices["queries"],
        matrices["keys"],
        matrices["dense"],
        _edges(call),
        call.facts["nonlinearity"],
    )
