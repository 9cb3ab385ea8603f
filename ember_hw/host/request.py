"""Every rule for the arguments of a lookup, checked on the host before the device is touched.

`normalise_request` takes what `torch.nn.EmbeddingBag` takes and gives a `LookupRequest`: the
indices as they were and the bags as row pointers (CSR), the only form that the device sees.
"""

from __future__ import annotations

import operator
import sys
from dataclasses import dataclass
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from ember_hw.config import VALUE_WIDTH_BITS

INDEX_DTYPES = ("int32", "int64")
MODES = ("sum", "mean", "max")

#: Largest position or index that the access unit's signed values hold.
_LARGEST_VALUE = (1 << (VALUE_WIDTH_BITS - 1)) - 1

IndexArray = NDArray[np.int32 | np.int64]


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
    """

    indices: IndexArray
    offsets: NDArray[np.int64]
    num_bags: int


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
    per_sample_weights, padding_idx
        Not supported: anything but None is refused.
    mode : str
        "sum"; the other modes of torch are refused.
    table_name : str
        How messages call the table.

    Returns
    -------
    LookupRequest
        The lookup as row pointers. Arrays that are contiguous already are not copied.

    Raises
    ------
    TypeError
        `indices` or `offsets` is no dense array with data, or isn't int32 or int64.
    ValueError
        The dimensions don't fit together, an offset is out of order or out of range, there are more
        indices or bags than the access unit can count, or `mode` or `num_embeddings` is no legal
        value.
    IndexError
        An index is outside the table, whether it belongs to a bag or not, or is a row that the
        access unit can't name.
    NotImplementedError
        A legal mode or argument that isn't supported.

    Examples
    --------
    >>> import numpy as np
    >>> request = normalise_request(
    ...     np.array([7, 0, 3]), np.array([0, 2]), num_embeddings=8
    ... )
    >>> request.offsets.tolist(), request.num_bags
    ([0, 2, 3], 2)
    """
    _check_features(mode, per_sample_weights, padding_idx, table_name)
    num_embeddings = operator.index(num_embeddings)
    if num_embeddings < 0:
        raise ValueError(f"num_embeddings must be at least 0, not {num_embeddings}")
    index_array = _as_integer_array("indices", indices, table_name)
    _check_count("indices", index_array.size, table_name)

    if index_array.ndim == 2:
        if offsets is not None:
            raise ValueError(
                f"offsets must be None with 2-D indices, where each row is a bag, not "
                f"{_type_name(offsets)} (table {table_name!r})"
            )
        num_bags, length = index_array.shape
        _check_count("rows of indices", num_bags, table_name)  # more than indices if L is 0
        row_pointers = np.arange(num_bags + 1, dtype=np.int64) * length
    elif index_array.ndim == 1:
        if offsets is None:
            raise ValueError(
                f"offsets must be given with 1-D indices, not None; 2-D indices (B, L) need none "
                f"(table {table_name!r})"
            )
        offset_array = _as_integer_array("offsets", offsets, table_name)
        _check_count("offsets", offset_array.size, table_name)
        row_pointers = _row_pointers(
            offset_array, index_array.size, include_last_offset, table_name
        )
    else:
        raise ValueError(
            f"indices must be 1-D with offsets or 2-D (B, L), not of shape {index_array.shape} "
            f"(table {table_name!r})"
        )

    _check_indices(index_array, num_embeddings, table_name)
    return LookupRequest(
        indices=np.ascontiguousarray(index_array).reshape(-1),
        offsets=row_pointers,
        num_bags=row_pointers.size - 1,
    )


def _check_features(mode: Any, per_sample_weights: Any, padding_idx: Any, table_name: str) -> None:
    if mode not in MODES:
        raise ValueError(
            f"mode must be 'sum', 'mean' or 'max', not {mode!r} (table {table_name!r})"
        )
    if mode != "sum":
        if per_sample_weights is not None:
            raise NotImplementedError(
                f"mode must be 'sum' with per_sample_weights, not {mode!r} (table {table_name!r})"
            )
        raise NotImplementedError(
            f"mode must be 'sum', the only supported one, not {mode!r} (table {table_name!r})"
        )
    if per_sample_weights is not None:
        raise NotImplementedError(
            f"per_sample_weights must be None, as weights are not supported, not "
            f"{_type_name(per_sample_weights)} (table {table_name!r})"
        )
    if padding_idx is not None:
        raise NotImplementedError(
            f"padding_idx must be None, as padding is not supported, not {padding_idx!r}; leave "
            f"the padding out of indices (table {table_name!r})"
        )


def _as_integer_array(argument: str, value: Any, table_name: str) -> IndexArray:
    """View `value` as a NumPy array; refuse all but dense int32 and int64."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        tensor: Any = value
        if tensor.layout != torch.strided or tensor.is_nested or tensor.is_meta:
            what = "nested" if tensor.is_nested else "meta" if tensor.is_meta else tensor.layout
            raise TypeError(
                f"{argument} must be a dense tensor with data, not a {what} tensor "
                f"(table {table_name!r})"
            )
        dtype = str(tensor.dtype).removeprefix("torch.")
        if dtype not in INDEX_DTYPES:
            _refuse_dtype(argument, dtype, table_name)
        return tensor.detach().cpu().numpy()
    kind = cast("type[object]", type(value))
    if not issubclass(kind, np.ndarray) or issubclass(kind, np.ma.MaskedArray):
        raise TypeError(
            f"{argument} must be a NumPy array or a torch tensor, not {_type_name(value)} "
            f"(table {table_name!r})"
        )
    array = np.asarray(value)
    if array.dtype not in (np.dtype(np.int32), np.dtype(np.int64)):
        _refuse_dtype(argument, str(array.dtype), table_name)
    return array


def _check_count(what: str, count: int, table_name: str) -> None:
    """Refuse more than the access unit can count; before anything reads or copies that many."""
    if count > _LARGEST_VALUE:
        raise ValueError(
            f"{what} must be at most {_LARGEST_VALUE}, the largest {VALUE_WIDTH_BITS}-bit value of "
            f"the access unit, not {count}; split the request (table {table_name!r})"
        )


def _refuse_dtype(argument: str, dtype: str, table_name: str) -> NoReturn:
    raise TypeError(
        f"{argument} must be of dtype int32 or int64, not {dtype}; nothing is cast "
        f"(table {table_name!r})"
    )


def _type_name(value: object) -> str:
    return type(value).__name__


def _row_pointers(
    offsets: IndexArray, num_indices: int, include_last_offset: bool, table_name: str
) -> NDArray[np.int64]:
    """Check 1-D offsets and append the end of the last bag where it's missing."""
    if offsets.ndim != 1:
        raise ValueError(
            f"offsets must be 1-D, not of shape {offsets.shape} (table {table_name!r})"
        )
    if offsets.size == 0:
        if num_indices:
            raise ValueError(
                f"offsets must have an entry for each bag, not be empty with {num_indices} indices "
                f"(table {table_name!r})"
            )
        return np.zeros(1, dtype=np.int64)
    wide = offsets.astype(np.int64)

    bad = (wide < 0) | (wide > num_indices)
    bad[0] = wide[0] != 0
    bad[1:] |= wide[1:] < wide[:-1]
    if bad.any():
        position = int(bad.argmax())
        value = int(wide[position])
        if position == 0:
            rule = "0"
        elif value < 0:
            rule = "at least 0"
        elif value > num_indices:
            rule = f"at most {num_indices}, the number of indices"
        else:
            rule = f"at least offsets[{position - 1}] = {int(wide[position - 1])}"
        raise ValueError(f"offsets[{position}] must be {rule}, not {value} (table {table_name!r})")
    return wide if include_last_offset else np.append(wide, np.int64(num_indices))


def _check_indices(indices: IndexArray, num_embeddings: int, table_name: str) -> None:
    """Refuse the first index outside the table; Python's integers, so no width can overflow."""
    rows = min(num_embeddings, _LARGEST_VALUE + 1)
    if indices.size == 0 or (int(indices.min()) >= 0 and int(indices.max()) < rows):
        return
    bad = (indices < 0) | (indices.astype(np.int64) >= rows)
    position = np.unravel_index(int(bad.argmax()), bad.shape)
    rule = f"[0, {rows}), the rows of table {table_name!r}"
    if rows < num_embeddings:
        rule += " that the access unit can name"
    raise IndexError(
        f"indices[{', '.join(str(p) for p in position)}] must be in {rule}, "
        f"not {int(indices[position])}"
    )
