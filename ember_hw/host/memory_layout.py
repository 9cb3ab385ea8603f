"""Where tables, indices and offsets lie in the device's memory, and what a launch calls them.

Regions follow each other from 1 MiB on, each on a multiple of 4096 bytes and filled up to whole
index lines and bus beats. A table is passed by pointer where it has that form; otherwise it is
copied once, its rows padded to the bus width.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.config import LINE_BYTES, AcceleratorConfig
from ember_hw.errors import ProgramError

BASE_ADDRESS = 1 << 20
REGION_ALIGNMENT_BYTES = 4096


@dataclass(frozen=True)
class Region:
    """One array in the device's memory.

    Attributes
    ----------
    symbol : str
        Argument it holds.
    base : int
        Byte address.
    data : uint8 (P,)
        Its bytes, padded to whole index lines and bus beats; shares memory with what it was made of
        where no copy was needed.
    num_bytes : int
        Bytes that count; P or fewer.
    rows, pitch : int
        Rows, and the distance of two in elements (1 for one dimension).
    """

    symbol: str
    base: int
    data: NDArray[np.uint8]
    num_bytes: int
    rows: int
    pitch: int

    def environment(self) -> dict[str, int]:
        """Return the symbols that a launch reads."""
        return {
            self.symbol: self.base,
            f"{self.symbol}.bytes": self.num_bytes,
            f"{self.symbol}.elements": self.rows * self.pitch,
            f"{self.symbol}.rows": self.rows,
            f"{self.symbol}.pitch": self.pitch,
        }


class MemoryLayout:
    """Places arrays one after the other.

    Parameters
    ----------
    config : AcceleratorConfig
        Gives bus width and address range.
    first_address : int
        Where the first region may start.

    Examples
    --------
    >>> layout = MemoryLayout(AcceleratorConfig())
    >>> layout.place_vector("indices", np.arange(3)).environment()["indices.bytes"]
    24
    """

    def __init__(self, config: AcceleratorConfig, first_address: int = BASE_ADDRESS) -> None:
        self.config = config
        self.next_address = first_address
        # Index streams read whole lines, at level 0 those of the table too.
        self._unit_bytes = max(LINE_BYTES, config.bus_bytes)

    def place_vector(self, symbol: str, array: NDArray[Any]) -> Region:
        """Place one dimension, as a copy padded to whole lines.

        Raises
        ------
        ProgramError
            The array ends beyond the config's addresses.
        """
        data = np.zeros(_round_up(array.nbytes, self._unit_bytes), np.uint8)
        data[: array.nbytes] = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
        return self._place(symbol, data, array.nbytes, array.shape[0], 1)

    def place_table(self, symbol: str, table: NDArray[Any], *, by_copy: bool = False) -> Region:
        """Place rows, by pointer if they need no padding, else as a padded copy.

        Parameters
        ----------
        symbol : str
            Argument it is.
        table : (R, .., D)
            Any strides; all dimensions but the last count rows.
        by_copy : bool
            Copy them also if they need no padding.

        Raises
        ------
        ProgramError
            The table ends beyond the config's addresses.
        """
        *outer, columns = table.shape
        rows = math.prod(outer)
        pitch_bytes = _round_up(columns * table.itemsize, self.config.bus_bytes)
        pitch = pitch_bytes // table.itemsize
        num_bytes = rows * pitch_bytes
        padded_bytes = _round_up(num_bytes, self._unit_bytes)
        is_padded = pitch != columns or num_bytes != padded_bytes
        if not by_copy and not is_padded and table.flags.c_contiguous:
            data = table.reshape(rows, columns).view(np.uint8).reshape(-1)
        else:
            data = np.zeros(padded_bytes, np.uint8)
            data[:num_bytes].view(table.dtype).reshape(*outer, pitch)[..., :columns] = table
        return self._place(symbol, data, num_bytes, rows, pitch)

    def place(self, symbol: str, array: NDArray[Any], *, by_copy: bool = False) -> Region:
        """Place an array: one dimension as `place_vector` does, several as `place_table` does."""
        if array.ndim == 1:
            return self.place_vector(symbol, array)
        return self.place_table(symbol, array, by_copy=by_copy)

    def reserve(self, symbol: str, num_bytes: int) -> Region:
        """Place room that the device writes; what it holds before is unspecified.

        Raises
        ------
        ProgramError
            It ends beyond the config's addresses.
        """
        data = np.empty(_round_up(num_bytes, self._unit_bytes), np.uint8)
        return self._place(symbol, data, num_bytes, num_bytes, 1)

    def _place(
        self, symbol: str, data: NDArray[np.uint8], num_bytes: int, rows: int, pitch: int
    ) -> Region:
        base = _round_up(self.next_address, REGION_ALIGNMENT_BYTES)
        end = base + data.size
        if end > 1 << self.config.address_width_bits:
            limit = 1 << self.config.address_width_bits
            raise ProgramError(
                f"end of {symbol!r} must be at most address {limit:#x} "
                f"(address_width_bits {self.config.address_width_bits} of config "
                f"{self.config.name!r}), not {end:#x}"
            )
        self.next_address = base + max(data.size, 1)  # empty regions have distinct addresses too
        return Region(symbol, base, data, num_bytes, rows, pitch)


class ResidentArray:
    """An array that stays in the device's memory from run to run, and is never stale.

    Parameters
    ----------
    layout : MemoryLayout
        Places it.
    symbol : str
        Argument it is.
    array : (R,) or (R, .., D)
        The host's array. Passed by pointer where it can be; else `refresh` keeps the copy true.
    by_copy : bool
        Copy it in any case, so that another array can take its place.
    turned : int
        Elements at the end of each row that come first in the device's memory; it is copied then.
    """

    def __init__(
        self,
        layout: MemoryLayout,
        symbol: str,
        array: NDArray[Any],
        *,
        by_copy: bool = False,
        turned: int = 0,
    ) -> None:
        self.array = array
        self.region = layout.place(symbol, array, by_copy=by_copy or bool(turned))
        self._turned = turned
        self._copy: NDArray[Any] | None = None
        if not np.may_share_memory(self.region.data, array):
            pitch = self.region.pitch if array.ndim > 1 else array.shape[0]
            elements = self.region.data[: self.region.num_bytes].view(array.dtype)
            self._copy = elements.reshape(*array.shape[:-1], pitch)[..., : array.shape[-1]]
        if turned:
            self.refresh()

    @property
    def is_copy(self) -> bool:
        """Whether the device reads a padded copy."""
        return self._copy is not None

    def take(self, array: NDArray[Any]) -> None:
        """Hold another array of the same shape and dtype in the place of the one before."""
        assert self._copy is not None, "nothing that is passed by pointer is exchanged"
        self.array = array
        self.refresh()

    def refresh(self, rows: NDArray[Any] | None = None) -> None:
        """Bring what a run will read up to date, in case the array was changed.

        Costs as much as the smaller of the run's rows and the array, and nothing without a copy.

        Parameters
        ----------
        rows : int (N,), optional
            Numbers of the rows that the run reads; they may repeat. None for all.
        """
        if self._copy is None:
            return
        where = rows if rows is not None and rows.size < self.array.shape[0] else ...
        if self._turned:
            self._copy[where] = np.roll(self.array[where], self._turned, axis=-1)
        else:
            self._copy[where] = self.array[where]


def stack_environment(symbol: str, members: Sequence[Region], itemsize: int = 4) -> dict[str, int]:
    """Return the symbols that a launch reads of a stack: one memory from its first region on.

    Parameters
    ----------
    symbol : str
        Argument that it is, a vector.
    members : sequence of Region
        The tables in it, one or more.
    itemsize : int
        Bytes of an element.
    """
    base = min(region.base for region in members)
    num_bytes = max(region.base + region.num_bytes for region in members) - base
    elements = num_bytes // itemsize
    return {
        symbol: base,
        f"{symbol}.bytes": num_bytes,
        f"{symbol}.elements": elements,
        f"{symbol}.rows": elements,
        f"{symbol}.pitch": 1,
    }


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
