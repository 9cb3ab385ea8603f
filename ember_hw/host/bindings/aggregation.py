"""The binding of aggregation: each node of a graph pools the rows at the other ends of its edges.

The function is that of an embedding bag. Edges are sorted by their targets here, so that each
target pools its sources in the order of the edges.
"""

from __future__ import annotations

from typing import Any

from ember_hw.compiler.program import Program
from ember_hw.host.bindings.csr import from_edges
from ember_hw.host.bindings.operation import Call, check
from ember_hw.host.bindings.pooling import pooling_request
from ember_hw.host.bindings.request import Request
from ember_hw.host.bindings.row_types import types_of
from ember_hw.host.reference import exact
from ember_hw.host.request import LookupRequest

__all__ = ["check", "check_columns", "reference", "request"]


def check_columns(call: Call) -> None:
    """Refuse rows of another length than the result has, where the model fixes that.

    Raises
    ------
    ValueError
        They are of another length.
    """
    columns, found = call.facts["columns"], call.matrix("dense").shape[1]
    if columns not in (None, found):
        name = call.name("dense")
        raise ValueError(f"{name} must have the {columns} columns of the result, not {found}")


def _bags(call: Call) -> LookupRequest:
    check_columns(call)
    return from_edges(call, len(call.matrix("dense")))


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
    return pooling_request(call, _bags(call), call.facts["mode"])


def reference(program: Program, inputs: Any) -> Any:
    """Return the pooled rows, in NumPy in the order of the edges."""
    call = Call(program, inputs)
    dtype = types_of(program).output_dtype()
    return exact(call.matrix("dense"), _bags(call), call.facts["mode"], dtype)
