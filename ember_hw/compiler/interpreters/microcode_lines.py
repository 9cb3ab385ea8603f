"""The input queue of the microcode interpreter: lines that the host feeds to a stream."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.interpreters.microcode_memory import Memory
from ember_hw.config import LINE_BYTES

__all__ = ["LineQueue", "Loaded"]


@dataclass
class Loaded:
    """What the input queue brought: a value for each load, and whether its line was missing."""

    values: NDArray[np.int64]
    missing: NDArray[np.bool_]


class LineQueue:
    """The lines that the input queue brings to one stream."""

    def __init__(self, lines: NDArray[np.uint8]) -> None:
        self.lines = len(lines)
        flat = np.ascontiguousarray(lines).reshape(-1)
        self.memory = Memory([(0, flat)], bus_bytes=LINE_BYTES)
        self.request = self.line = self.taken = 0

    def load(
        self,
        elements: NDArray[np.int64],
        requests: NDArray[np.int64],
        size_log2: int,
        is_signed: bool,
    ) -> Loaded:
        """Load elements in order; requests count from 1."""
        if not len(elements):
            return Loaded(np.zeros(0, np.int64), np.zeros(0, np.bool_))
        offsets = elements << size_log2
        line = offsets // LINE_BYTES
        changes = np.empty(len(line), np.bool_)
        changes[0] = line[0] != self.line or requests[0] != self.request
        changes[1:] = (line[1:] != line[:-1]) | (requests[1:] != requests[:-1])
        taken = self.taken + np.cumsum(changes)
        self.request, self.line = int(requests[-1]), int(line[-1])
        self.taken = int(taken[-1])
        addresses = (taken - 1) * LINE_BYTES + offsets % LINE_BYTES
        return Loaded(self.memory.load(addresses, size_log2, is_signed), taken > self.lines)
