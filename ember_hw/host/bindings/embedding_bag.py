"""The binding of embedding bags: indices and offsets become row pointers, pooled rows come back.

The function is `out[b, d] = sum of psw[j] * tab[idx[j], d] for j in off[b] .. off[b + 1]`, with `B`
bags; without `psw` where lookups have no weights, and with the mean or the maximum for the sum.
`ember_hw.host.request` holds the rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.element_dtypes import ELEMENT_DTYPES
from ember_hw.compiler.program import Program
from ember_hw.host.bindings.inputs import (
    check_sizes,
    checked_lookups,
    is_torch,
    named_inputs,
)
from ember_hw.host.bindings.request import Request
from ember_hw.host.bindings.row_types import (
    as_given,
    check_table,
    numbers_of,
    pooled_outputs,
    types_of,
)
from ember_hw.host.reference import exact
from ember_hw.host.request import LookupRequest, normalise_request

#: Symbols of the function's arguments: row pointers, indices, weights of lookups, table, pooled
#: rows, number of bags.
OFFSETS, INDICES, WEIGHTS, TABLE, POOLED, NUM_BAGS = "off", "idx", "psw", "tab", "out", "B"


def check(program: Program) -> None:
    """Refuse a table that isn't the one the model describes.

    Raises
    ------
    ProgramError
        Its dtype or shape differs.
    """
    model: Mapping[str, Any] = program.model
    for symbol in program.tables:
        check_table(program, symbol, model["num_embeddings"], model["embedding_dim"])


def lookup_request(program: Program, inputs: Any) -> LookupRequest:
    """Check the inputs of a run.

    Parameters
    ----------
    program : Program
        Says what its inputs are.
    inputs : sequence or mapping
        Indices, offsets and weights, in the order of the module's arguments or by their names.
        Offsets may be left out where the indices are 2-D.

    Raises
    ------
    ProgramError
        The inputs don't match the program's arguments.
    ValueError
        A size is one that the program was not exported for.
    TypeError, ValueError, IndexError
        As `normalise_request`.
    """
    model: Mapping[str, Any] = program.model
    weights_name = model.get("weights_name")
    needed = [name for name in (model["indices_name"], weights_name) if name is not None]
    given = named_inputs(program, inputs, needed=needed)
    check_sizes(model.get("size_limits", ()), given)
    return normalise_request(
        given[model["indices_name"]],
        given.get(model["offsets_name"]),
        num_embeddings=model["num_embeddings"],
        include_last_offset=model["include_last_offset"],
        per_sample_weights=given[weights_name] if weights_name else None,
        padding_idx=model.get("padding_idx"),
        mode=model.get("mode", "sum"),
        table_name=model["name"],
        weights_dtype=ELEMENT_DTYPES[types_of(program).weights],
    )


def request(program: Program, inputs: Any) -> Request:
    """Return the request of a run; see `lookup_request` for what is refused.

    A list of one `LookupRequest` for this table, which is checked, is taken as it is.
    """
    checked = checked_lookups(inputs)
    if checked is not None:
        (lookup,) = checked
        return bind(program, lookup)
    lookup = lookup_request(program, inputs)
    model: Mapping[str, Any] = program.model
    given = named_inputs(program, inputs)
    return bind(program, lookup, as_torch=is_torch(given[model["indices_name"]]))


def bind(program: Program, lookup: LookupRequest, *, as_torch: bool = False) -> Request:
    """Return the request of a checked lookup.

    Parameters
    ----------
    program : Program
        An embedding bag.
    lookup : LookupRequest
        The bags.
    as_torch : bool
        Whether the pooled rows become a torch tensor.
    """
    model: Mapping[str, Any] = program.model

    def finish(outputs: Mapping[str, NDArray[Any]]) -> Any:
        return as_given(outputs[POOLED], as_torch)

    arrays: dict[str, NDArray[Any]] = {
        OFFSETS: lookup.offsets,
        INDICES: lookup.indices.astype(np.dtype(model["index_dtype"]), copy=False),
    }
    if lookup.weights is not None:
        arrays[WEIGHTS] = lookup.weights
    start = -np.inf if model.get("mode") == "max" else 0.0
    return Request(
        arrays=arrays,
        scalars={NUM_BAGS: lookup.num_bags},
        outputs=pooled_outputs(types_of(program), (lookup.num_bags, model["embedding_dim"]), start),
        lookups=int(lookup.offsets[-1]),
        finish=finish,
        rows={TABLE: lookup.indices},
        gathered=int(lookup.offsets[-1]),
    )


def reference(program: Program, inputs: Any) -> NDArray[Any]:
    """Return the pooled rows, pooled in NumPy in the program's order."""
    mode = str(program.model.get("mode", "sum"))
    lookup = lookup_request(program, inputs)
    columns: Any = program.model["embedding_dim"]
    numbers = numbers_of(program, TABLE, columns)
    return exact(numbers, lookup, mode, types_of(program).output_dtype())
