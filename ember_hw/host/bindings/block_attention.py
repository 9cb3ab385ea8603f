"""The binding of block-sparse attention.

Queries are padded to whole blocks; the last block of keys may be a partial one, whose end the
function learns from `count`. Scores of keys that it lacks stay -inf.
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
from ember_hw.host.reference_attention import block_attention

__all__ = ["check", "reference", "request"]


def _checked(call: Call) -> tuple[NDArray[np.float32], IndexArray]:
    """Return queries and blocks.

    Raises
    ------
    TypeError, ValueError, IndexError
        The inputs break a rule.
    """
    size: int = call.facts["block_size"]
    queries, keys, values = (call.matrix(role) for role in ("queries", "keys", "values"))
    names = {role: call.name(role) for role in ("queries", "keys", "values")}
    if values.shape != keys.shape:
        raise ValueError(
            f"{names['values']} must be of the shape {keys.shape} of {names['keys']}, "
            f"not {values.shape}"
        )
    if queries.shape[1] != keys.shape[1]:
        raise ValueError(
            f"{names['queries']} must have the {keys.shape[1]} columns of {names['keys']}, "
            f"not {queries.shape[1]}"
        )
    if call.facts["whole_blocks"]:
        for role, matrix in (("queries", queries), ("keys", keys)):
            if len(matrix) % size:
                raise ValueError(
                    f"{names[role]} must have whole blocks of {size} rows, not {len(matrix)} rows"
                )
    name = call.name("blocks")
    blocks = integer_array(name, call.value("blocks"), names["keys"])
    rows = -(-len(queries) // size)
    if blocks.ndim != 2 or blocks.shape[0] != rows or not blocks.shape[1]:
        raise ValueError(
            f"{name} must be of shape ({rows}, at least 1), a row for each block of "
            f"{names['queries']}, not {blocks.shape}"
        )
    check_count(name, blocks.size * size, names["keys"])
    check_rows(name, blocks, -(-len(keys) // size), f"blocks of {names['keys']}")
    return queries, blocks


def request(program: Program, inputs: Any) -> Request:
    """Return the request of a run.

    Raises
    ------
    ProgramError
        The inputs don't match the program's arguments.
    TypeError, ValueError, IndexError
        They break a rule.
    """
    call = Call(program, inputs)
    queries, blocks = _checked(call)
    size: int = call.facts["block_size"]
    num_keys = len(call.matrix("keys"))
    padded = np.zeros((blocks.shape[0] * size, queries.shape[1]), np.float32)
    padded[: len(queries)] = queries
    first = blocks.astype(np.int64) * size

    def finish(outputs: Mapping[str, NDArray[Any]]) -> Any:
        return call.result(np.ascontiguousarray(outputs["out"][: len(queries)]))

    width = blocks.shape[1] * size
    matrices = call.matrices()
    return Request(
        arrays={
            **matrices,
            "qry": padded,
            "first": first,
            "count": np.minimum(num_keys - first, size),
        },
        scalars={"NB": blocks.shape[0], "NS": blocks.shape[1], "BS": size, "W": width},
        outputs={
            "s": Output((len(padded), width), -np.inf),
            "out": Output(padded.shape),
        },
        lookups=None,
        finish=finish,
    )


def reference(program: Program, inputs: Any) -> Any:
    """Return the attended values, in NumPy in the order of the gathered keys."""
    call = Call(program, inputs)
    queries, blocks = _checked(call)
    keys, values = (call.matrix(role) for role in ("keys", "values"))
    facts = call.facts
    return block_attention(queries, keys, values, blocks, facts["block_size"], facts["scale"])
