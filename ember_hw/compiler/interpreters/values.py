"""
The value model that all interpreters share.

| IR type | Python value |
| --- | --- |
| `index`, iN | `int`, signed; iN wraps to N bits, `index` doesn't wrap |
| `i1` | `bool` |
| `f16`, `bf16`, `f32`, `f64` | NumPy scalar of that dtype: no widening, no fused multiply-add |
| `!ember.quantized<F>` | record of code, scale and bias |
| `vector<NxT>` | `np.ndarray` (N,), never written in place |
| `memref<..xT>` | `np.ndarray` of any strides, written in place; `index` elements are int64 |
| `!slc.stream<T>` | its head, a value of T |
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    VectorType,
    i1,
)
from xdsl.dialects.llvm import LLVMArrayType, LLVMStructType
from xdsl.ir import Attribute, SSAValue

from ember_hw.compiler.dialects.quantized import QuantizedType
from ember_hw.compiler.dialects.stream_types import head_type
from ember_hw.compiler.element_dtypes import ELEMENT_DTYPES, is_float
from ember_hw.errors import UnsupportedError

__all__ = [
    "Array",
    "Wrap",
    "argument",
    "array_of",
    "as_memref",
    "as_vector",
    "constant",
    "dtype_of",
    "element",
    "from_array",
    "integer_width",
    "is_integer",
    "lane_positions",
    "memref_type",
    "out_of_bounds",
    "poisoned",
    "vector_type",
    "wrap_to",
    "zero_lanes",
]

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Wrap: TypeAlias = Callable[[int], int]


def as_vector(type_: Attribute) -> VectorType[Attribute] | None:
    """Return the type if it is a vector type."""
    return cast("VectorType[Attribute]", type_) if isinstance(type_, VectorType) else None


def as_memref(type_: Attribute) -> MemRefType[Attribute] | None:
    """Return the type if it is a memref type."""
    return cast("MemRefType[Attribute]", type_) if isinstance(type_, MemRefType) else None


def vector_type(value: SSAValue) -> VectorType[Attribute]:
    """Return the vector type of a value, or of the heads of a stream."""
    vector = as_vector(head_type(value.type))
    assert vector is not None, f"verified op with a {value.type} for a vector"
    return vector


def memref_type(value: SSAValue) -> MemRefType[Attribute]:
    """Return the memref type of a value, or of the heads of a stream."""
    memref = as_memref(head_type(value.type))
    assert memref is not None, f"verified op with a {value.type} for a memref"
    return memref


def integer_width(type_: Attribute) -> int | None:
    """Return the width of an iN type, None for every other type."""
    return cast("IntegerType[int]", type_).bitwidth if isinstance(type_, IntegerType) else None


def is_integer(type_: Attribute) -> bool:
    """Whether values of the type are Python integers."""
    return isinstance(type_, IndexType) or integer_width(type_) is not None


def dtype_of(type_: Attribute) -> np.dtype[Any]:
    """Return the dtype that holds one element of this type in a memref or a vector."""
    if isinstance(type_, QuantizedType):
        return type_.format.records
    found = ELEMENT_DTYPES.get(str(type_))
    if found is None:
        raise UnsupportedError(
            "element type must be index, i1, i8, i16, i32, i64, f16, bf16, f32 or f64 to be "
            f"interpreted, not {type_}"
        )
    return found


def wrap_to(type_: Attribute) -> Wrap:
    """Return the function that brings an integer into the signed range of an integer type."""
    width = integer_width(type_)
    if width is None:
        return int
    if width == 1:
        return lambda value: bool(value & 1)
    half = 1 << (width - 1)
    mask = 2 * half - 1
    return lambda value: ((value + half) & mask) - half


def from_array(type_: Attribute) -> Callable[[Any], Any]:
    """Return the function that makes an array's element a scalar value of this type."""
    if type_ == i1:
        return bool
    if isinstance(type_, QuantizedType):
        return lambda record: record
    return int if is_integer(type_) else dtype_of(type_).type


def constant(value: Attribute) -> Any:
    """Return the value of a constant's attribute: a scalar or a vector."""
    match value:
        case IntegerAttr():
            return wrap_to(value.type)(value.value.data)
        case FloatAttr():
            return dtype_of(value.type).type(value.value.data)
        case DenseIntOrFPElementsAttr() if isinstance(value.type, VectorType):
            dense = cast("DenseIntOrFPElementsAttr[IndexType]", value)
            dtype = dtype_of(dense.get_element_type())
            return np.array(dense.get_values()).astype(dtype).reshape(dense.get_shape())
        case _:
            raise UnsupportedError(
                "constant must be an integer, a float or a dense vector to be interpreted, "
                f"not {value}"
            )


def array_of(what: str, type_: MemRefType[Attribute], value: object) -> Array:
    """Return the value if it is an array of the memref's elements; TypeError otherwise."""
    dtype = dtype_of(type_.element_type)
    array = cast(Array, value) if isinstance(value, np.ndarray) else None
    if array is None or array.dtype != dtype:
        found = array.dtype if array is not None else type(cast(object, value)).__name__
        raise TypeError(f"{what} must be an array of {dtype} for {type_}, not {found}")
    return array


def argument(position: int, type_: Attribute, value: object) -> Any:
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
    memref = as_memref(type_)
    if memref is not None:
        array, shape = array_of(what, memref, value), memref.get_shape()
        fits = array.ndim == len(shape) and all(
            extent in (DYNAMIC_INDEX, found)
            for extent, found in zip(shape, array.shape, strict=True)
        )
        if not fits:
            raise ValueError(f"{what} must be of a shape that fits {type_}, not {array.shape}")
        return array
    if isinstance(type_, LLVMStructType | LLVMArrayType):
        members: Sequence[Attribute] = (
            type_.types.data
            if isinstance(type_, LLVMStructType)
            else [type_.type] * type_.size.data
        )
        values = cast("Sequence[object]", value)
        if not isinstance(value, tuple | list) or len(values) != len(members):
            raise TypeError(f"{what} must be {len(members)} values for {type_}, not {value!r}")
        return tuple(
            argument(position, member, inner) for member, inner in zip(members, values, strict=True)
        )
    if is_integer(type_):
        if not isinstance(value, SupportsIndex):
            raise TypeError(f"{what} must be an integer for {type_}, not {value!r}")
        return wrap_to(type_)(operator.index(value))
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


def zero_lanes(vector: VectorType[Attribute]) -> Array:
    """Return a new vector of zeros."""
    return np.zeros(vector.get_shape(), dtype_of(vector.element_type))


def poisoned(shape: Sequence[int], type_: Attribute) -> Array:
    """Return memory that nothing has written yet: NaN, or the smallest integer."""
    dtype = dtype_of(type_)
    if dtype == np.bool_:
        return np.zeros(shape, dtype)
    fill = np.nan if is_float(dtype) else np.iinfo(dtype).min
    return np.full(shape, fill, dtype)
