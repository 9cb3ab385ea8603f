"""What NumPy holds elements of the IR's types in: one table for compiler, interpreters and host.

NumPy has no bfloat16; that of ml_dtypes stands for it, which converts to and from float32 with one
rounding, to nearest even.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BFLOAT16",
    "ELEMENT_DTYPES",
    "FLOAT_NAMES",
    "element_name",
    "is_float",
    "round_to",
    "storable",
    "tensor_array",
    "tensor_of",
]

BFLOAT16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)

#: Dtype of elements in memory, by the name of their type; `index` is stored as an i64.
ELEMENT_DTYPES: dict[str, np.dtype[Any]] = {
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "f16": np.dtype(np.float16),
    "bf16": BFLOAT16,
    "index": np.dtype(np.int64),
    "i64": np.dtype(np.int64),
    "i32": np.dtype(np.int32),
    "i16": np.dtype(np.int16),
    "i8": np.dtype(np.int8),
    "i1": np.dtype(np.bool_),
}

#: Types of the rows of tables and of pooled rows, by the name that torch and NumPy have for them.
FLOAT_NAMES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is one of floats; NumPy's own test doesn't know bfloat16.

    Examples
    --------
    >>> is_float(BFLOAT16), is_float(np.dtype(np.int8))
    (True, False)
    """
    return dtype.kind == "f" or dtype == BFLOAT16


def element_name(dtype: np.dtype[Any]) -> str:
    """Return the type of an element of a table, by its dtype: f32, f16 or bf16.

    Raises
    ------
    KeyError
        It is another dtype.
    """
    return FLOAT_NAMES[dtype.name]


def round_to(values: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Round float64 to a narrower float once, to nearest even.

    Examples
    --------
    >>> above_the_middle = np.array([1 + 2.0**-8 + 2.0**-40])
    >>> [float(way[0]) for way in (round_to(above_the_middle, BFLOAT16),
    ...                            above_the_middle.astype(BFLOAT16))]
    [1.0078125, 1.0]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype != BFLOAT16:
            return values.astype(dtype)
        # ml_dtypes rounds to float32 on the way. Rounded to odd there, no middle is made up.
        near = values.astype(np.float32)
        bits = near.view(np.uint32)
        is_even = (bits & 1) == 0
        is_off = (near.astype(np.float64) != values) & np.isfinite(values) & is_even
        # Towards the value, which lies between two neighbours, the other of which is odd.
        step = np.where(np.abs(near.astype(np.float64)) < np.abs(values), 1, -1)
        return (
            np.where(is_off, bits + step.astype(np.uint32), bits)
            .astype(np.uint32)
            .view(np.float32)
            .astype(dtype)
        )


def storable(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array that .npy has a name for: bfloat16 as float32, which is exact.

    Examples
    --------
    >>> storable(np.ones(2, BFLOAT16)).dtype.name, storable(np.ones(2, np.float16)).dtype.name
    ('float32', 'float16')
    """
    return array.astype(np.float32) if array.dtype == BFLOAT16 else array


def tensor_array(tensor: Any) -> NDArray[Any]:
    """Return a torch tensor as an array, which shares its memory where it is on the CPU."""
    import torch

    if tensor.requires_grad:
        tensor = tensor.detach()
    if not tensor.is_cpu:
        tensor = tensor.cpu()
    if tensor.dtype is torch.bfloat16:  # NumPy has none
        return tensor.view(torch.int16).numpy().view(BFLOAT16)
    return tensor.numpy()


def tensor_of(array: NDArray[Any]) -> Any:
    """Return an array as a torch tensor, which shares its memory."""
    import torch

    if array.dtype == BFLOAT16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)  # pyright: ignore[reportUnknownMemberType]
    return torch.from_numpy(array)  # pyright: ignore[reportUnknownMemberType]
