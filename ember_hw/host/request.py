"""Every rule for the arguments of a lookup, checked on the host before the device is touched.

`normalise_request` takes what `torch.nn.EmbeddingBag` takes and gives a `LookupRequest`: the
indices as they were and the bags as row pointers (CSR), the only form that the device sees.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.host.arrays import (
    IndexArray,
    check_count,
    check_rows,
    float_array,
    integer_array,
    row_pointers,
)

MODES = ("sum", "mean", "max")
_FLOAT32 = np.dtype(np.float32)


@dataclass(frozen=True)
class LookupRequest:
    """A checked lookup: bag `b` pools the rows `indices[offsets[b]:offsets[b + 1]]`.

    Attributes
    ----------
    indices : int32 or int64 (N,)
        C-contiguous, each a row of the table. Entries from `offsets[B]` on belong to no bag.
    offsets : int64 (B + 1,)
        C-contiguous, from 0, never decreasing, at most N.
    num_bags : int
        B, which may be 0.
    weights : float32, float16 or bfloat16 (N,), optional
        What each row is multiplied by.
    """

    indices: IndexArray
    offsets: NDArray[np.int64]
    num_bags: int
    weights: NDArray[Any] | None = None


def normalise_request(
    indices: Any,
    offsets: Any = None,
    *,
    num_embeddings: int,
    include_last_offset: bool = False,
    per_sample_weights: Any = None,
    padding_idx: int | None = None,
    mode: str = "sum",
    table_name: str = "weight",
    weights_dtype: np.dtype[Any] = _FLOAT32,
) -> LookupRequest:
    """Check the arguments of one embedding-bag call and bring them into one form.

    Nothing is cast and nothing wraps around: each value is compared in 64 bits as it was given.

    Parameters
    ----------
    indices : int32 or int64 (N,) or (B, L)
        NumPy array or torch tensor. With two dimensions each row is a bag.
    offsets : int32 or int64 (B,) or (B + 1,), optional
        First position of each bag in 1-D `indices`, followed by the end of the last bag when
        `include_last_offset` is set.
    num_embeddings : int
        Rows of the table; 0 is legal as long as nothing is looked up.
    include_last_offset : bool
        Whether `offsets` ends with the end of the last bag. No effect on 2-D `indices`.
    per_sample_weights : of `weights_dtype`, optional
        A weight of each index, of the shape of `indices`. With mode "sum" alone.
    padding_idx : int, optional
        A row that no bag pools; a negative one counts from the last row. Its indices are taken out.
    mode : str
        "sum", "mean" or "max".
    table_name : str
        How messages call the table.
    weights_dtype : dtype
        Of `per_sample_weights`: that of the table, as torch has it.

    Returns
    -------
    LookupRequest
        The lookup as row pointers. Arrays that are contiguous already are not copied.

    Raises
    ------
    TypeError
        `indices` or `offsets` is no dense array with data, or isn't int32 or int64;
        `per_sample_weights` isn't of its dtype.
    ValueError
        The dimensions don't fit together, an offset is out of order or out of range, there are more
        indices or bags than the access unit can count, or `mode`, `padding_idx` or `num_embeddings`
        is no legal value.
    IndexError
        An index is outside the table, whether it belongs to a bag or not, or is a row that the
        access unit can't name.
    NotImplementedError
        `per_sample_weights` with another mode than "sum".

    Examples
    --------
    >>> import numpy as np
    >>> request = normalise_request(
    ...     np.array([7, 0, 3]), np.array([0, 2]), num_embeddings=8
    ... )
    >>> request.offsets.tolist(), request.num_bags
    ([0, 2, 3], 2)
    """
    check_mode(mode, table_name)
    if mode != "sum" and per_sample_weights is not None:
        raise NotImplementedError(
            f"mode must be 'sum' with per_sample_weights, not {mode!r} (table {table_name!r})"
        )
    num_embeddings = operator.index(num_embeddings)
    if num_embeddings < 0:
        raise ValueError(f"num_embeddings must be at least 0, not {num_embeddings}")
    index_array = integer_array("indices", indices, table_name)
    check_count("indices", index_array.size, table_name)

    if index_array.ndim == 2:
        if offsets is not None:
            raise ValueError(
                f"offsets must be None with 2-D indices, where each row is a bag, not "
                f"{type(offsets).__name__} (table {table_name!r})"
            )
        num_bags, length = index_array.shape
        check_count("rows of indices", num_bags, table_name)  # more than indices if L is 0
        pointers = np.arange(num_bags + 1, dtype=np.int64) * length
    elif index_array.ndim == 1:
        if offsets is None:
            raise ValueError(
                f"offsets must be given with 1-D indices, not None; 2-D indices (B, L) need none "
                f"(table {table_name!r})"
            )
        offset_array = integer_array("offsets", offsets, table_name)
        check_count("offsets", offset_array.size, table_name)
        pointers = row_pointers(
            "offsets",
            offset_array,
            index_array.size,
            table_name,
            items="indices",
            ends_with_last=include_last_offset,
        )
    else:
        raise ValueError(
            f"indices must be 1-D with offsets or 2-D (B, L), not of shape {index_array.shape} "
            f"(table {table_name!r})"
        )
    weights = None
    if per_sample_weights is not None:
        weights = float_array(
            "per_sample_weights",
            per_sample_weights,
            table_name,
            shape=index_array.shape,
            dtype=weights_dtype,
        )
        weights = np.ascontiguousarray(weights).reshape(-1)
    padding = padding_row(padding_idx, num_embeddings, table_name)
    check_rows("indices", index_array, num_embeddings, table_name)
    request = LookupRequest(
        indices=np.ascontiguousarray(index_array).reshape(-1),
        offsets=pointers,
        num_bags=pointers.size - 1,
        weights=weights,
    )
    return request if padding is None else _without(request, padding)


def check_mode(mode: Any, table_name: str) -> None:
    """Refuse a mode that is none.

    Raises
    ------
    ValueError
        It is neither sum nor mean nor max.
    """
    if mode not in MODES:
        raise ValueError(
            f"mode must be 'sum', 'mean' or 'max', not {mode!r} (table {table_name!r})"
        )


def padding_row(padding_idx: Any, num_embeddings: int, table_name: str) -> int | None:
    """Return the row that no bag pools, counted from the first one.

    Raises
    ------
    ValueError
        It is none of the table's.
    """
    if padding_idx is None:
        return None
    row = operator.index(padding_idx)
    if not -num_embeddings <= row < num_embeddings:
        raise ValueError(
            f"padding_idx must be in [{-num_embeddings}, {num_embeddings}), the rows of table "
            f"{table_name!r} counted from either end, not {row}"
        )
    return row % num_embeddings


def _without(request: LookupRequest, row: int) -> LookupRequest:
    """Take the lookups of one row out of the bags."""
    kept = request.indices != row
    before = np.concatenate(([0], np.cumsum(kept, dtype=np.int64)))
    return LookupRequest(
        indices=request.indices[kept],
        offsets=before[request.offsets],
        num_bags=request.num_bags,
        weights=None if request.weights is None else request.weights[kept],
    )
