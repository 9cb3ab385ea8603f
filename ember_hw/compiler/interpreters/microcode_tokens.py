"""What moves between the stages of the microcode interpreter, and the first fault of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ember_hw.errors import DeviceError
from ember_hw.registers import FaultCode, fault_error

# FAULT_ADDRESS is 64 bits.
_ADDRESS_MASK = (1 << 64) - 1


@dataclass
class Tokens:
    """Tokens of one level: events, whether this level iterates, exported values."""

    events: NDArray[np.uint32]
    iterates: NDArray[np.bool_]
    values: list[NDArray[np.int32]]

    def first(self, count: int) -> Tokens:
        """Return the first tokens."""
        return Tokens(
            self.events[:count], self.iterates[:count], [value[:count] for value in self.values]
        )


class FirstFault:
    """Keeps the fault of the earliest token; of one token, the one that was noted first."""

    def __init__(self, tokens: int) -> None:
        self.token = tokens
        self.error: DeviceError | None = None

    def note(
        self,
        code: FaultCode,
        unit: int,
        stream: int,
        is_bad: NDArray[np.bool_],
        tokens: NDArray[np.intp],
        addresses: NDArray[np.int64],
    ) -> None:
        """Note the first of the bad ones; `tokens` ascend."""
        if not is_bad.any():
            return
        first = int(np.argmax(is_bad))
        if tokens[first] < self.token:
            self.token = int(tokens[first])
            self.error = fault_error(code, unit, stream, int(addresses[first]) & _ADDRESS_MASK)
