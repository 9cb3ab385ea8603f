"""What cocotbext-axi lacks: stalls that a seed makes, and memory that can't be read at places."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import cocotb
from cocotbext.axi import MemoryRegion


class Stalls:
    """A pause generator: stalls of 1 to 8 cycles, so that queues fill and drain.

    Parameters
    ----------
    name : str
        Of the channel; with the seed it makes the sequence.
    share : float
        Share of cycles that are stalled, 0 to 1.
    """

    def __init__(self, name: str, share: float) -> None:
        self._random = random.Random(f"{cocotb.RANDOM_SEED} {name}")
        self._share = share

    def __iter__(self) -> Iterator[bool]:
        while True:
            stalled = self._random.random() < self._share
            for _ in range(self._random.choice((1, 1, 2, 3, 8))):
                yield stalled


class FaultyRegion(MemoryRegion):
    """Memory that can't be read at some addresses: cocotbext-axi answers SLVERR.

    Parameters
    ----------
    bad : sequence of int
        Offsets of the beats that fail.
    """

    def __init__(self, content: bytearray, bad: Sequence[int]) -> None:
        super().__init__(len(content), mem=content)
        self._bad = frozenset(bad)

    async def _read(self, address: int, length: int, **kwargs: Any) -> Any:
        if address in self._bad:
            raise ValueError(f"offset {address:#x} can't be read")
        return await super()._read(address, length, **kwargs)
