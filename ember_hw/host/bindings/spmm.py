"""The binding of SpMM: a sparse matrix times a dense one.

The function is `out[b] = sum of psw[j] * tab[idx[j]] for j in off[b] .. off[b + 1]`.
"""

from __future__ import annotations

from typing import Any

from ember_hw.compiler.program import Program
from ember_hw.host.bindings.csr import from_parts, from_sparse
from ember_hw.host.bindings.operation import Call, check
from ember_hw.host.bindings.pooling import pooling_request
from ember_hw.host.bindings.request import Request
from ember_hw.host.reference import exact
from ember_hw.host.request import LookupRequest

__all__ = ["check", "reference", "request"]


def _bags(call: Call) -> LookupRequest:
    read = from_parts if call.facts["layout"] == "parts" else from_sparse
    return read(call, len(call.matrix("dense")))


def request(program: Program, inputs: Any) -> Request:
    """Return the request of a run.

    Raises
    ------
    ProgramError
        The inputs don't match the program's arguments.
    TypeError, ValueError, IndexError
        The matrices break a rule, or don't fit each other.
    """
    call = Call(program, inputs)
    return pooling_request(call, _bags(call), "sum")


def reference(program: Program, inputs: Any) -> Any:
    """Return the product, summed in NumPy in the order of the entries."""
    call = Call(program, inputs)
    return exact(call.matrix("dense"), _bags(call))
