"""Checks of the arrays that a user passes, as every binding makes them before any device access.

Nothing is cast and nothing wraps around: each value is compared in 64 bits as it was given.
"""

from __future__ import annotations

import sys
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.element_dtypes import tensor_array
from ember_hw.config import VALUE_WIDTH_BITS

INDEX_DTYPES = ("int32", "int64")
_INDEX_DTYPES = (np.dtype(np.int64), np.dtype(np.int32))
_UNSIGNED: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.int32): np.dtype(np.uint32),
    np.dtype(np.int64): np.dtype(np.uint64),
}
_FLOAT32 = np.dtype(np.float32)

#: Largest position or index that the access unit's signed values hold.
LARGEST_VALUE = (1 << (VALUE_WIDTH_BITS - 1)) - 1

IndexArray = NDArray[np.int32 | np.int64]


def integer_array(argument: str, value: Any, table_name: str) -> IndexArray:
    """View a value as a NumPy array of int32 or int64.

    Parameters
    ----------
    argument : str
        How messages call it.
    value : NumPy array or torch tensor
        Dense, with data.
    table_name : str
        The table that it looks up in, for messages.

    Raises
    ------
    TypeError
        It is something else.
    """
    array = _dense_array(argument, value, table_name)
    if array.dtype not in _INDEX_DTYPES:
        _refuse_dtype(argument, " or ".join(INDEX_DTYPES), str(array.dtype), table_name)
    return array


def float_array(
    argument: str,
    value: Any,
    table_name: str,
    *,
    shape: tuple[int | None, ...],
    dtype: np.dtype[Any] = _FLOAT32,
) -> NDArray[Any]:
    """View a value as a NumPy array of a dtype of floats and of a shape.

    Parameters
    ----------
    argument, value, table_name
        As for `integer_array`.
    shape : tuple of int or None
        None for a size that may be any.
    dtype : dtype
        float32, or another one.

    Raises
    ------
    TypeError
        It is no dense array of this dtype.
    ValueError
        Its shape is another.
    """
    array = _dense_array(argument, value, table_name)
    if array.dtype != dtype:
        _refuse_dtype(argument, dtype.name, str(array.dtype), table_name)
    fits = array.ndim == len(shape) and all(
        wanted in (None, found) for wanted, found in zip(shape, array.shape, strict=True)
    )
    if not fits:
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        wanted += "," if len(shape) == 1 else ""
        raise ValueError(
            f"{argument} must be of shape ({wanted}), not {array.shape} (table {table_name!r})"
        )
    return array


def _dense_array(argument: str, value: Any, table_name: str) -> NDArray[Any]:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        tensor: Any = value
        if tensor.layout != torch.strided or tensor.is_nested or tensor.is_meta:
            what = "nested" if tensor.is_nested else "meta" if tensor.is_meta else tensor.layout
            raise TypeError(
                f"{argument} must be a dense tensor with data, not a {what} tensor "
                f"(table {table_name!r})"
            )
        return tensor_array(tensor)
    kind = cast("type[object]", type(value))
    if not issubclass(kind, np.ndarray) or issubclass(kind, np.ma.MaskedArray):
        raise TypeError(
            f"{argument} must be a NumPy array or a torch tensor, not {type(value).__name__} "
            f"(table {table_name!r})"
        )
    return np.asarray(value)


def _refuse_dtype(argument: str, wanted: str, dtype: str, table_name: str) -> NoReturn:
    raise TypeError(
        f"{argument} must be of dtype {wanted}, not {dtype}; nothing is cast (table {table_name!r})"
    )


def check_count(what: str, count: int, table_name: str) -> None:
    """Refuse more than the access unit can count; before anything reads or copies that many.

    Raises
    ------
    ValueError
        There are more.
    """
    if count > LARGEST_VALUE:
        raise ValueError(
            f"{what} must be at most {LARGEST_VALUE}, the largest {VALUE_WIDTH_BITS}-bit value of "
            f"the access unit, not {count}; split the request (table {table_name!r})"
        )


def check_rows(argument: str, indices: IndexArray, num_embeddings: int, table_name: str) -> None:
    """Refuse the first index outside the table; Python's integers, so no width can overflow.

    Raises
    ------
    IndexError
        An index is outside, or is a row that the access unit can't name.
    """
    rows = min(num_embeddings, LARGEST_VALUE + 1)
    # As unsigned numbers, negative ones lie beyond all rows.
    unsigned = indices.view(_UNSIGNED[indices.dtype])
    if not indices.size or np.maximum.reduce(unsigned, axis=None) < rows:
        return
    bad = (indices < 0) | (indices.astype(np.int64) >= rows)
    position = np.unravel_index(int(bad.argmax()), bad.shape)
    rule = f"[0, {rows}), the rows of table {table_name!r}"
    if rows < num_embeddings:
        rule += " that the access unit can name"
    raise IndexError(
        f"{argument}[{', '.join(str(p) for p in position)}] must be in {rule}, "
        f"not {int(indices[position])}"
    )


def row_pointers(
    argument: str,
    offsets: IndexArray,
    count: int,
    table_name: str,
    *,
    items: str,
    ends_with_last: bool,
) -> NDArray[np.int64]:
    """Check where groups of items begin, and append the end of the last one where it's missing.

    Parameters
    ----------
    argument : str
        How messages call the offsets.
    offsets : int32 or int64 (B,) or (B + 1,)
        Where each group begins, followed by the end of the last one if `ends_with_last`.
    count : int
        Items.
    table_name : str
        For messages.
    items : str
        How messages call the items.
    ends_with_last : bool
        See `offsets`.

    Returns
    -------
    int64 (B + 1,)

    Raises
    ------
    ValueError
        They aren't 1-D, don't start at 0, decrease, or go beyond the items.
    """
    if offsets.ndim != 1:
        raise ValueError(
            f"{argument} must be 1-D, not of shape {offsets.shape} (table {table_name!r})"
        )
    if offsets.size == 0:
        if count:
            raise ValueError(
                f"{argument} must have an entry for each bag, not be empty with {count} {items} "
                f"(table {table_name!r})"
            )
        return np.zeros(1, dtype=np.int64)
    number = offsets.size + (not ends_with_last)
    wide = np.empty(number, np.int64)
    wide[: offsets.size] = offsets
    if not ends_with_last:
        wide[-1] = count
    # From 0 on, never decreasing, up to the number of items: none is negative or beyond them.
    if wide[0] or wide[-1] > count or np.count_nonzero(wide[1:] < wide[:-1]):
        wide = wide[: offsets.size]
        bad = (wide < 0) | (wide > count)
        bad[0] = wide[0] != 0
        bad[1:] |= wide[1:] < wide[:-1]
        position = int(bad.argmax())
        value = int(wide[position])
        if position == 0:
            rule = "0"
        elif value < 0:
            rule = "at least 0"
        elif value > count:
            rule = f"at most {count}, the number of {items}"
        else:
            rule = f"at least {argument}[{position - 1}] = {int(wide[position - 1])}"
        raise ValueError(
            f"{argument}[{position}] must be {rule}, not {value} (table {table_name!r})"
        )
    return wide
