"""Memory as the access unit sees it: regions of bytes, read by element or by beat."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ELEMENT_DTYPES = {
    (0, False): "<u1",
    (0, True): "<i1",
    (1, False): "<u2",
    (1, True): "<i2",
    (2, False): "<i4",
    (2, True): "<i4",
    (3, False): "<i8",
    (3, True): "<i8",
}


class Memory:
    """Regions of bytes at fixed addresses; nothing lies between them.

    Parameters
    ----------
    regions : sequence of (int, uint8 array)
        Base address and content of each region; never copied.
    bus_bytes : int
        Width of a beat; bases are multiples of it.

    Raises
    ------
    ValueError
        A base is not a multiple of `bus_bytes`, or two regions overlap.
    TypeError
        A region is not a contiguous uint8 array of one dimension.
    """

    def __init__(self, regions: Sequence[tuple[int, NDArray[np.uint8]]], *, bus_bytes: int) -> None:
        self.bus_bytes = bus_bytes
        ordered = sorted(regions, key=lambda region: region[0])
        for base, content in ordered:
            if content.dtype != np.uint8 or content.ndim != 1 or not content.flags.c_contiguous:
                raise TypeError(
                    f"region at {base:#x} must be a contiguous uint8 array of one dimension, "
                    f"not {content.dtype} of shape {content.shape}"
                )
            if base % bus_bytes:
                raise ValueError(f"region base must be a multiple of {bus_bytes}, not {base:#x}")
        for (base, content), (following, _) in itertools.pairwise(ordered):
            if base + len(content) > following:
                raise ValueError(
                    f"regions must not overlap: the one at {base:#x} has {len(content)} bytes, "
                    f"the next begins at {following:#x}"
                )
        self._contents = [content for _, content in ordered]
        self._starts = [base for base, _ in ordered]
        self._bases = np.array([base for base, _ in ordered], np.int64)
        self._limits = self._bases + np.array([len(content) for _, content in ordered], np.int64)

    def find(
        self, addresses: NDArray[np.int64], sizes: NDArray[np.int64] | int
    ) -> NDArray[np.intp]:
        """Return the number of the region that holds `sizes` bytes at each address, else -1."""
        if not self._contents:
            return np.full(addresses.shape, -1, np.intp)
        region = np.searchsorted(self._bases, addresses, side="right") - 1
        is_inside = (region >= 0) & (addresses + sizes <= self._limits[region])
        return np.where(is_inside, region, -1)

    def window(self, base: int, num_bytes: int) -> NDArray[np.uint8] | None:
        """Return so many bytes from an address on, None unless one region holds them all."""
        number = bisect_right(self._starts, base) - 1
        if number < 0:
            return None
        offset = base - self._starts[number]
        content = self._contents[number]
        return content[offset : offset + num_bytes] if offset + num_bytes <= len(content) else None

    def elements(
        self, base: int, count: int, size_log2: int, is_signed: bool
    ) -> NDArray[Any] | None:
        """Return so many elements from an address on, None unless one region holds them all.

        Parameters
        ----------
        base : int
            Byte address.
        count : int
            Elements.
        size_log2, is_signed
            As for `load`.
        """
        content = self.window(base, count << size_log2)
        return None if content is None else content.view(_ELEMENT_DTYPES[size_log2, is_signed])

    def load(
        self, addresses: NDArray[np.int64], size_log2: int, is_signed: bool
    ) -> NDArray[np.int64]:
        """Return the little-endian elements at the addresses, extended to int64.

        Parameters
        ----------
        addresses : int64 (N,)
            Byte addresses; 0 is returned for those outside every region.
        size_log2 : int
            Log2 of an element's bytes, 0 to 3.
        is_signed : bool
            Whether elements of 1 and 2 bytes are sign-extended; longer ones always are.
        """
        size = 1 << size_log2
        dtype = np.dtype(_ELEMENT_DTYPES[size_log2, is_signed])
        values = np.zeros(addresses.shape, np.int64)
        for number, selected in _by_region(self.find(addresses, size)):
            content = self._contents[number]
            offsets = addresses[selected] - self._bases[number]
            if np.any(offsets & (size - 1)):
                spread = content[offsets[:, None] + np.arange(size)]
                values[selected] = spread.view(dtype)[:, 0]
            else:
                whole = content[: len(content) >> size_log2 << size_log2].view(dtype)
                values[selected] = whole[offsets >> size_log2]
        return values

    def load_beats(
        self, addresses: NDArray[np.int64], valid_bytes: NDArray[np.int64]
    ) -> NDArray[np.uint8]:
        """Return the beat at each address; bytes that are not valid are 0.

        Parameters
        ----------
        addresses : int64 (N,)
            Multiples of `bus_bytes`, each within a region.
        valid_bytes : int64 (N,)
            Bytes from the start of each beat that are asked for, 1 to `bus_bytes`.

        Returns
        -------
        uint8 (N, bus_bytes)
            The beats.

        Raises
        ------
        ValueError
            An address is not aligned: a table's address or pitch that the program computes is not.
        """
        bus_bytes = self.bus_bytes
        if not len(addresses):
            return np.zeros((0, bus_bytes), np.uint8)
        past = addresses % bus_bytes
        if past.any():
            unaligned = int(addresses[past.nonzero()[0][0]])
            raise ValueError(
                f"address of a beat must be a multiple of {bus_bytes}, not {unaligned:#x}"
            )
        beats = self._whole_beats(addresses)
        if beats is None:
            beats = self._gathered_beats(addresses, valid_bytes)
        partial = (valid_bytes < bus_bytes).nonzero()[0]
        if len(partial):
            beats[partial] *= np.arange(bus_bytes) < valid_bytes[partial, None]
        return beats

    def _whole_beats(self, addresses: NDArray[np.int64]) -> NDArray[np.uint8] | None:
        """Return the beat at each address, None unless one region holds them and all between."""
        first = int(np.minimum.reduce(addresses))
        last = int(np.maximum.reduce(addresses))
        content = self.window(first, last + self.bus_bytes - first)
        if content is None:
            return None
        return content.reshape(-1, self.bus_bytes)[(addresses - first) // self.bus_bytes]

    def _gathered_beats(
        self, addresses: NDArray[np.int64], valid_bytes: NDArray[np.int64]
    ) -> NDArray[np.uint8]:
        """Return the beat at each address, region by region."""
        bus_bytes = self.bus_bytes
        beats = np.zeros((len(addresses), bus_bytes), np.uint8)
        for number, selected in _by_region(self.find(addresses, valid_bytes)):
            content = self._contents[number]
            whole = content[: len(content) // bus_bytes * bus_bytes].reshape(-1, bus_bytes)
            position = (addresses[selected] - self._bases[number]) // bus_bytes
            is_tail = position == len(whole)
            if is_tail.any():
                # The region ends within its last beat.
                part = np.zeros((len(position), bus_bytes), np.uint8)
                part[is_tail, : len(content) % bus_bytes] = content[len(whole) * bus_bytes :]
                part[~is_tail] = whole[position[~is_tail]]
                beats[selected] = part
            elif isinstance(selected, slice):
                np.take(whole, position, axis=0, out=beats, mode="clip")
            else:
                beats[selected] = whole[position]
        return beats


def _by_region(region: NDArray[np.intp]) -> list[tuple[int, Any]]:
    """Return each region that occurs and what selects its members: a slice if it is alone."""
    if not len(region):
        return []
    if np.all(region == region[0]):
        return [(int(region[0]), slice(None))] if region[0] >= 0 else []
    return [(int(n), np.flatnonzero(region == n)) for n in np.unique(region) if n >= 0]
