"""Requests of functions that pool rows, as `emit_pooling` writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.host.bindings.operation import Call
from ember_hw.host.bindings.request import Request
from ember_hw.host.bindings.row_types import pooled_outputs, types_of
from ember_hw.host.request import LookupRequest


def pooling_request(call: Call, lookup: LookupRequest, mode: str) -> Request:
    """Return the request of bags of rows of the matrix `dense`.

    Parameters
    ----------
    call : Call
        The run.
    lookup : LookupRequest
        Its bags.
    mode : str
        "sum", "mean" or "max".
    """
    facts = call.facts
    dtype = np.dtype(facts["source_dtype"] if "source_dtype" in facts else facts["index_dtype"])
    arrays: dict[str, NDArray[Any]] = {
        "off": lookup.offsets,
        "idx": lookup.indices.astype(dtype, copy=False),
        **call.matrices(),
    }
    if lookup.weights is not None:
        arrays["psw"] = lookup.weights
    columns = call.matrix("dense").shape[1]

    def finish(outputs: Mapping[str, NDArray[Any]]) -> Any:
        return call.result(outputs["out"])

    start = -np.inf if mode == "max" else 0.0
    return Request(
        arrays=arrays,
        scalars={"B": lookup.num_bags},
        outputs=pooled_outputs(types_of(call.program), (lookup.num_bags, columns), start),
        lookups=int(lookup.offsets[-1]),
        finish=finish,
        rows={} if "dense" in call else {"tab": lookup.indices},
        gathered=int(lookup.offsets[-1]),
    )
