"""Where arrays may lie in the simulated address space."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numpy.typing import NDArray

from .build import ModelShape


def check_region(
    array: NDArray[Any],
    base: int,
    shape: ModelShape,
    others: Iterable[tuple[int, NDArray[Any]]],
    *,
    is_writable: bool = False,
) -> None:
    """Refuse an array that can't be mapped.

    Parameters
    ----------
    array : any dtype and shape
        What is to be mapped.
    base : int
        Byte address.
    shape : ModelShape
        Gives the width of bus and address.
    others : iterable of (int, array)
        What is mapped, with its base.
    is_writable : bool
        Whether it is to be written.

    Raises
    ------
    ValueError
        The array isn't contiguous or must be written and can't, or the region is misplaced or
        overlaps another.
    """
    if not array.flags.c_contiguous:
        raise ValueError("a mapped array must be C-contiguous, not strided; copy it first")
    if is_writable and not array.flags.writeable:
        raise ValueError("a mapped array must be writeable to be written, and isn't")
    if base % shape.bus_bytes:
        raise ValueError(
            f"base must be a multiple of the bus's {shape.bus_bytes} bytes, not {base:#x}"
        )
    if base < 0 or base + array.nbytes > 1 << shape.address_bits:
        raise ValueError(
            f"a region must lie below 2**{shape.address_bits}, "
            f"not at {base:#x} with {array.nbytes} bytes"
        )
    for other_base, other in others:
        if base < other_base + other.nbytes and other_base < base + array.nbytes:
            raise ValueError(
                f"regions must not overlap, but {base:#x} + {array.nbytes} "
                f"meets {other_base:#x} + {other.nbytes}"
            )
