"""The binding of plain embeddings: each index becomes its row.

The function is `out[j] = tab[idx[j]]` for N indices, of any shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.program import Program
from ember_hw.host.arrays import IndexArray, check_count, check_rows, integer_array
from ember_hw.host.bindings.operation import Call, check
from ember_hw.host.bindings.request import Output, Request
from ember_hw.host.bindings.row_types import numbers_of, types_of

__all__ = ["check", "reference", "request"]


def _indices(call: Call) -> IndexArray:
    name = call.name("weight")
    indices = integer_array(call.name("indices"), call.value("indices"), name)
    check_count(call.name("indices"), indices.size, name)
    rows, _ = _shape(call)
    check_rows(call.name("indices"), indices, rows, name)
    return indices


def _shape(call: Call) -> tuple[int, int]:
    """Return rows and columns of the table."""
    weights: Any = call.program.model["weights"]
    rows, columns = weights["weight"]["shape"]
    return rows, columns


def request(program: Program, inputs: Any) -> Request:
    """Return the request of a run.

    Raises
    ------
    ProgramError
        The inputs don't match the program's arguments.
    TypeError
        The indices are no dense int32 or int64 array.
    ValueError
        There are more than the access unit can count.
    IndexError
        One is outside the table.
    """
    call = Call(program, inputs)
    indices = _indices(call)
    _, columns = _shape(call)

    def finish(outputs: Mapping[str, NDArray[Any]]) -> Any:
        return call.result(outputs["out"].reshape(*indices.shape, columns))

    flat = np.ascontiguousarray(indices).reshape(-1)
    return Request(
        arrays={"idx": flat.astype(np.dtype(call.facts["index_dtype"]), copy=False)},
        scalars={"N": flat.size},
        outputs={"out": Output((flat.size, columns))},
        lookups=flat.size,
        finish=finish,
        rows={"tab": flat},
    )


def reference(program: Program, inputs: Any) -> Any:
    """Return the rows."""
    call = Call(program, inputs)
    _, columns = _shape(call)
    rows = numbers_of(program, "tab", columns)[_indices(call)]
    dtype = types_of(program).output_dtype()
    # By way of float32, which is exact for what is narrower: rounded once.
    return rows if rows.dtype == dtype else rows.astype(np.float32).astype(dtype)
