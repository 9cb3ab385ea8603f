"""Values of many tokens by name, and what ends a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.host.execution.numpy_operations import Values

__all__ = ["Failure", "Frame"]


class Failure(Exception):
    """A check failed: of the first of the tokens that ran together."""

    def __init__(self, time: int, check: int, value: int, limit: int) -> None:
        super().__init__(check)
        self.time, self.check, self.value, self.limit = time, check, value, limit


class Frame:
    """Values of M tokens, computed or taken from outside when they are first asked for.

    Parameters
    ----------
    times : int64 (M,)
        Of the tokens, ascending.
    outside : callable
        Returns a name's value.
    """

    def __init__(self, times: NDArray[np.int64], outside: Callable[[str], Values]) -> None:
        self.times = times
        self._outside = outside
        self._values: dict[str, Values] = {}

    def __getitem__(self, name: str) -> Values:
        if name not in self._values:
            self._values[name] = self._outside(name)
        return self._values[name]

    def __setitem__(self, name: str, value: Values) -> None:
        self._values[name] = value

    def each(self, value: Values) -> NDArray[Any]:
        """Return a value with an element for each token."""
        return np.broadcast_to(value, self.times.shape)

    def subset(self, index: NDArray[Any]) -> Frame:
        """Return a frame of some of the tokens."""

        def take(name: str) -> Values:
            value = self[name]
            return value[index] if np.ndim(value) else value

        return Frame(self.times[index], take)

    def lanes(self) -> Frame:
        """Return a frame in which each token has a line of values."""

        def take(name: str) -> Values:
            value = self[name]
            return value[:, None] if np.ndim(value) else value

        return Frame(self.times, take)
