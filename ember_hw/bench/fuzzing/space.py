"""Memory of a case: regions at random places with nothing between them."""

from __future__ import annotations

import random

import numpy as np
from numpy.typing import NDArray

from ember_hw.config import LINE_BYTES, AcceleratorConfig

_GAPS_BYTES = (64, 64, 192, 4096, 4096 + 64, 1 << 20)


class Space:
    """Gives out addresses.

    Parameters
    ----------
    config : AcceleratorConfig
    rng : random.Random
    """

    def __init__(self, config: AcceleratorConfig, rng: random.Random) -> None:
        self._rng = rng
        self._limit = 1 << config.address_width_bits
        middle = 1 << rng.randrange(14, config.address_width_bits)
        self._next = rng.randrange(middle // 2, middle) // LINE_BYTES * LINE_BYTES
        self.regions: list[tuple[int, NDArray[np.uint8]]] = []

    def place(self, content: NDArray[np.uint8]) -> int:
        """Return the address at which a new region holds these bytes."""
        padded = np.zeros(-(-len(content) // LINE_BYTES) * LINE_BYTES, np.uint8)
        padded[: len(content)] = content
        base = self._next + self._rng.choice(_GAPS_BYTES)
        if base + len(padded) > self._limit:
            base = 64 + self._rng.randrange(1 << 13) * LINE_BYTES  # low, below all others
        self._next = base + len(padded)
        self.regions.append((base, padded))
        return base
