"""
The value model that all interpreters share.

| IR type | Python value |
| --- | --- |
| `index`, iN | `int`, signed; iN wraps to N bits, `index` doesn't wrap |
| `i1` | `bool` |
| `f16`, `f32`, `f64` | NumPy scalar of that dtype: no widening, no fused multiply-add |
| `vector<NxT>` | `np.ndarray` (N,), never written in place |
| `memref<..xT>` | `np.ndarray` of any strides, written in place; `index` elements are int64 |
| `!slc.stream<T>` | its head, a value of T |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    VectorType,
    i1,
)
from xdsl.ir import Attribute

from ember_hw.errors import UnsupportedError

__all__ = [
    "Array",
    "Wrap",
    "argument",
    "constant",
    "dtype_of",
    "element",
    "from_array",
    "lane_positions",
    "out_of_bounds",
    "poisoned",
    "wrap_to",
    "zero_lanes",
]

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Wrap: TypeAlias = Callable[[int], int]

_FLOATS: dict[type[Attribute], type[np.generic]] = {
    Float16Type: np.float16,
    Float32Type: np.float32,
    Float64Type: np.float64,
}
_INTEGERS: dict[int, type[np.generic]] = {
    1: np.bool_,
    8: np.int8,
    16: np.int16,
    32: np.int32,
    64: np.int64,
}


def dtype_of(type_: Attribute) -> np.dtype[Any]:
    """Dtype that holds one element of this type in a memref or a vector."""
    found: type[np.generic] | None = None
    if isinstance(type_, IndexType):
        found = np.int64
    elif isinstance(type_, IntegerType):
        found = _INTEGERS.get(type_.width.data)
    else:
        found = _FLOATS.get(type(type_))
    if found is None:
        raise UnsupportedError(
            "element type must be index, i1, i8, i16, i32, i64, f16, f32 or f64 to be "
            f"interpreted, not {type_}"
        )
    return np.dtype(found)


def wrap_to(type_: Attribute) -> Wrap:
    """Return the function that brings an integer into the signed range of an integer type."""
    if type_ == i1:
        return lambda value: bool(value & 1)
    if not isinstance(type_, IntegerType):
        return int
    half = 1 << (type_.width.data - 1)
    mask = 2 * half - 1
    return lambda value: ((value + half) & mask) - half


def from_array(type_: Attribute) -> Callable[[Any], Any]:
    """Return the function that makes an array's element a scalar value of this type."""
    if type_ == i1:
        return bool
    if isinstance(type_, IndexType | IntegerType):
        return int
    return dtype_of(type_).type


def constant(value: Attribute) -> Any:
    """Return the value of a constant's attribute: a scalar or a vector."""
    if isinstance(value, IntegerAttr):
        return wrap_to(value.type)(value.value.data)
    if isinstance(value, FloatAttr):
        return dtype_of(value.type).type(value.value.data)
    if isinstance(value, DenseIntOrFPElementsAttr) and isinstance(value.type, VectorType):
        dtype = dtype_of(value.type.element_type)
        return np.array(value.get_values()).astype(dtype).reshape(value.get_shape())
    raise UnsupportedError(
        f"constant must be an integer, a float or a dense vector to be interpreted, not {value}"
    )


def argument(position: int, type_: Attribute, value: Any) -> Any:
    """
    Check one argument of a function and return it as a value of this model.

    Raises
    ------
    TypeError
        If the kind or dtype isn't that of the type.
    ValueError
        If an array's shape doesn't fit the memref.
    """
    what = f"argument {position}"
    if isinstance(type_, MemRefType):
        dtype = dtype_of(type_.element_type)
        if not isinstance(value, np.ndarray) or value.dtype != dtype:
            found = value.dtype if isinstance(value, np.ndarray) else type(value).__name__
            raise TypeError(f"{what} must be an array of {dtype} for {type_}, not {found}")
        shape = type_.get_shape()
        fits = value.ndim == len(shape) and all(
            extent in (DYNAMIC_INDEX, found)
            for extent, found in zip(shape, value.shape, strict=True)
        )
        if not fits:
            raise ValueError(f"{what} must be of a shape that fits {type_}, not {value.shape}")
        return value
    if isinstance(type_, IndexType | IntegerType):
        if not isinstance(value, int | np.integer):
            raise TypeError(f"{what} must be an integer for {type_}, not {value!r}")
        return wrap_to(type_)(int(value))
    if not isinstance(value, float | np.floating):
        raise TypeError(f"{what} must be a float for {type_}, not {value!r}")
    return dtype_of(type_).type(value)


def out_of_bounds(what: str, position: Sequence[int], shape: Sequence[int]) -> IndexError:
    """Return the error of an access outside a memref."""
    return IndexError(
        f"position of {what} must be inside the memref's shape {tuple(shape)}, "
        f"not {tuple(int(index) for index in position)}"
    )


def element(array: Array, position: tuple[int, ...], what: str) -> tuple[int, ...]:
    """Return the position if it is inside the array; NumPy would let negative ones wrap."""
    for index, extent in zip(position, array.shape, strict=True):
        if not 0 <= index < extent:
            raise out_of_bounds(what, position, array.shape)
    return position


def lane_positions(
    array: Array, position: tuple[int, ...], mask: Array, what: str
) -> tuple[Array, Array]:
    """
    Row and columns that the active lanes of a contiguous vector access touch.

    Parameters
    ----------
    array : ndarray
        The memref.
    position : tuple of int
        Position of lane 0.
    mask : bool (VL,)
        Active lanes; the others touch nothing and may lie outside.
    what : str
        Op that accesses, for the error.

    Returns
    -------
    row : ndarray
        View of the last dimension.
    columns : int64 (active lanes,)
        Columns in it.
    """
    columns = position[-1] + np.nonzero(mask)[0]
    if not columns.size:
        return np.empty(0, array.dtype), columns
    element(array, (*position[:-1], int(columns[0])), what)
    element(array, (*position[:-1], int(columns[-1])), what)
    return array[position[:-1]], columns


def zero_lanes(vector: VectorType) -> Array:
    """Return a new vector of zeros."""
    return np.zeros(vector.get_shape(), dtype_of(vector.element_type))


def poisoned(shape: Sequence[int], type_: Attribute) -> Array:
    """Return memory that nothing has written yet: NaN, or the smallest integer."""
    dtype = dtype_of(type_)
    if dtype == np.bool_:
        return np.zeros(shape, dtype)
    fill = np.nan if dtype.kind == "f" else np.iinfo(dtype).min
    return np.full(shape, fill, dtype)
