"""The binding of scores: one number for each triple of rows.

The function is `out[k] = after(sum over d of expression(rows of triple k at d))`; a row is read of
table t at `idx<i>[k]`, whole or one of its equal parts.
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
from ember_hw.host.reference_scores import scores

__all__ = ["check", "reference", "request"]


def _indices(call: Call) -> list[IndexArray]:
    """Return the checked indices, in the order of their numbers."""
    found: list[IndexArray] = []
    for number in range(len(call.facts["index_dtypes"])):
        role = f"indices{number}"
        name = call.name(role)
        tables = sorted({table for table, lookup, *_ in call.facts["leaves"] if lookup == number})
        table = call.name(f"table{tables[0]}")
        indices = integer_array(name, call.value(role), table)
        if indices.ndim != 1:
            raise ValueError(f"{name} must be 1-D, not of shape {indices.shape} (table {table!r})")
        check_count(name, indices.size, table)
        if found and indices.size != found[0].size:
            raise ValueError(
                f"{name} must have an entry for each of the {found[0].size} triples, "
                f"not {indices.size} (table {table!r})"
            )
        for each in tables:
            rows = len(call.matrix(f"table{each}"))
            check_rows(name, indices, rows, call.name(f"table{each}"))
        found.append(indices)
    return found


def _leaves(program: Program) -> list[tuple[str, int]]:
    """Return the symbol of the matrix that each leaf reads, and the number of its indices."""
    facts: Any = program.model["facts"]
    symbols: Any = program.model["symbols"]
    by_part = {tuple(read): symbol for symbol, read in symbols.items()}
    return [
        (by_part[f"table{table}", part, parts], lookup)
        for table, lookup, part, parts in facts["leaves"]
    ]


def request(program: Program, inputs: Any) -> Request:
    """Return the request of a run.

    Raises
    ------
    ProgramError
        The inputs don't match the program's arguments.
    TypeError, ValueError, IndexError
        The indices break a rule.
    """
    call = Call(program, inputs)
    indices = _indices(call)
    arrays = {
        f"idx{number}": np.ascontiguousarray(array).astype(np.dtype(dtype), copy=False)
        for number, (array, dtype) in enumerate(
            zip(indices, call.facts["index_dtypes"], strict=True)
        )
    }
    rows: dict[str, list[NDArray[Any]]] = {}
    for symbol, lookup in _leaves(program):
        rows.setdefault(symbol, []).append(indices[lookup])

    def finish(outputs: Mapping[str, NDArray[Any]]) -> Any:
        return call.result(outputs["out"])

    return Request(
        arrays=arrays,
        scalars={"N": indices[0].size},
        outputs={"out": Output((indices[0].size,))},
        lookups=None,
        finish=finish,
        rows={symbol: np.concatenate(numbers) for symbol, numbers in rows.items()},
    )


def reference(program: Program, inputs: Any) -> Any:
    """Return the scores, in NumPy in the order of the columns."""
    call = Call(program, inputs)
    indices = _indices(call)
    rows = [program.tables[symbol][indices[lookup]] for symbol, lookup in _leaves(program)]
    return scores(call.facts["expression"], rows, call.facts["after"])
