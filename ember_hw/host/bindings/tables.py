"""The binding of many embedding bags in one program, each with a table of its own or a shared one.

The function is that of `emit_tables`. Each bag's inputs obey the rules of `ember_hw.host.request`
with its own table's rows; messages name the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.element_dtypes import ELEMENT_DTYPES
from ember_hw.compiler.program import Program
from ember_hw.config import LINE_BYTES
from ember_hw.host.arrays import check_count
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
from ember_hw.host.memory_layout import Region
from ember_hw.host.reference import exact
from ember_hw.host.request import LookupRequest, normalise_request


def check(program: Program) -> None:
    """Refuse tables that aren't the ones the model describes.

    Raises
    ------
    ProgramError
        The dtype or shape of one differs.
    """
    for bag in _bags(program):
        check_table(program, bag["table"], bag["num_embeddings"], bag["embedding_dim"])


def request(program: Program, inputs: Any) -> Request:
    """Return the request of a run; see `lookup_requests` for what is refused.

    A list of a `LookupRequest` for each bag, which are checked, is taken as it is.
    """
    checked = checked_lookups(inputs)
    if checked is not None:
        return bind(program, checked)
    lookups = lookup_requests(program, inputs)
    given = named_inputs(program, inputs)
    return bind(program, lookups, as_torch=any(is_torch(value) for value in given.values()))


def lookup_requests(program: Program, inputs: Any) -> list[LookupRequest]:
    """Check the inputs of a run, bag by bag.

    Raises
    ------
    ProgramError
        The inputs don't match the program's arguments.
    TypeError, ValueError, IndexError
        As `normalise_request`.
    """
    bags = _bags(program)
    needed = [
        bag[role]
        for bag in bags
        for role in ("indices_name", "weights_name")
        if bag[role] is not None
    ]
    given = named_inputs(program, inputs, needed=needed)
    limits: Any = program.model["size_limits"]
    check_sizes(limits, given)
    return [
        normalise_request(
            given[bag["indices_name"]],
            given.get(bag["offsets_name"]),
            num_embeddings=bag["num_embeddings"],
            include_last_offset=bag["include_last_offset"],
            per_sample_weights=given[bag["weights_name"]] if bag["weights_name"] else None,
            padding_idx=bag["padding_idx"],
            mode=bag["mode"],
            table_name=bag["name"],
            weights_dtype=ELEMENT_DTYPES[types_of(program).weights],
        )
        for bag in bags
    ]


def bind(program: Program, lookups: Sequence[LookupRequest], *, as_torch: bool = False) -> Request:
    """Return the request of checked lookups.

    Parameters
    ----------
    program : Program
        Of kind "tables".
    lookups : sequence of LookupRequest
        One for each bag. All get as many bags as the one with most, empty ones behind their own.
    as_torch : bool
        Whether the pooled rows become torch tensors.

    Raises
    ------
    ValueError
        In sum there are more indices or bags than the access unit can count.
    """
    bags = _bags(program)
    counts = [int(lookup.offsets[-1]) for lookup in lookups]
    most = max(lookup.num_bags for lookup in lookups)
    name = str(program.model["name"])
    check_count("indices", sum(counts), name)
    check_count("bags", most * len(bags), name)
    types = types_of(program)
    size = types.table_dtype().itemsize
    shapes = [types.table_shape(bag["num_embeddings"], bag["embedding_dim"]) for bag in bags]
    firsts = np.cumsum([0, *counts])
    pointers = np.empty((len(bags), most), np.int64)
    for number, (lookup, first) in enumerate(zip(lookups, firsts, strict=False)):
        pointers[number, : lookup.num_bags] = lookup.offsets[:-1] + first
        pointers[number, lookup.num_bags :] = firsts[number + 1]
    arrays: dict[str, NDArray[Any]] = {
        "rows": np.array([bag["num_embeddings"] for bag in bags], np.int64),
        "length": np.array([size * columns for _, columns in shapes], np.int64),
        "off": np.append(pointers.reshape(-1), firsts[-1]),
        "idx": np.concatenate(
            [lookup.indices[:count] for lookup, count in zip(lookups, counts, strict=True)]
        ).astype(str(program.model["index_dtype"]), copy=False),
    }
    if lookups[0].weights is not None:
        arrays["psw"] = np.concatenate(
            [
                lookup.weights[:count]
                for lookup, count in zip(lookups, counts, strict=True)
                if lookup.weights is not None
            ]
        )

    def located(regions: Mapping[str, Region]) -> dict[str, NDArray[Any]]:
        base = min(region.base for region in regions.values())
        own = [regions[bag["table"]] for bag in bags]
        return {
            "place": np.array([(region.base - base) // LINE_BYTES for region in own], np.int64),
            "pitch": np.array([size * region.pitch for region in own], np.int64),
        }

    def finish(outputs: Mapping[str, NDArray[Any]]) -> tuple[Any, ...]:
        out = outputs["out"]
        results: list[Any] = []
        for number, (bag, lookup) in enumerate(zip(bags, lookups, strict=True)):
            rows = out[number * most : number * most + lookup.num_bags, : bag["embedding_dim"]]
            results.append(np.ascontiguousarray(rows))
        return tuple(as_given(rows, as_torch) for rows in results)

    rows: dict[str, list[NDArray[Any]]] = {}
    for bag, lookup in zip(bags, lookups, strict=True):
        rows.setdefault(bag["table"], []).append(lookup.indices)
    widest = max(types.elements(columns) for _, columns in shapes)
    start = -np.inf if program.model["mode"] == "max" else 0.0
    return Request(
        arrays=arrays,
        scalars={"T": len(bags), "B": most},
        outputs=pooled_outputs(types, (most * len(bags), widest), start),
        lookups=sum(counts),
        finish=finish,
        rows={symbol: np.concatenate(parts) for symbol, parts in rows.items()},
        gathered=sum(counts),
        located=located,
    )


def reference(program: Program, inputs: Any) -> tuple[NDArray[Any], ...]:
    """Return the pooled rows of each bag, pooled in NumPy in the program's order."""
    pairs = zip(_bags(program), lookup_requests(program, inputs), strict=True)
    dtype = types_of(program).output_dtype()
    return tuple(
        exact(numbers_of(program, bag["table"], bag["embedding_dim"]), lookup, bag["mode"], dtype)
        for bag, lookup in pairs
    )


def _bags(program: Program) -> list[dict[str, Any]]:
    bags: Any = program.model["bags"]
    return bags
