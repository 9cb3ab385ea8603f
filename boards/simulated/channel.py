"""Channels into a simulated board, in memory: time is the board's own, so runs repeat exactly."""

from __future__ import annotations

import random

from ember_hw.boards.host.channel import Channel
from ember_hw.boards.simulated.model import BoardModel
from ember_hw.errors import LinkError

#: Kinds of faults that a byte may have.
FAULTS = ("changed", "dropped", "doubled", "cut")


class SimulatedChannel:
    """A board's model; its clock goes on only while the host reads.

    Parameters
    ----------
    model : BoardModel
        Stays the caller's.
    """

    name = "simulated board"

    def __init__(self, model: BoardModel) -> None:
        self._model = model
        self._waiting = bytearray()

    def write(self, content: bytes) -> None:
        """Send bytes; they go on the wire as the model runs."""
        self._waiting += content

    def read(self, seconds: float) -> bytes:
        """Simulate until a frame ends, or for a time."""
        cycles = max(1, int(seconds * self._model.description.clock_hz))
        got, taken = self._model.run(cycles, bytes(self._waiting), to_flag=True)
        del self._waiting[:taken]
        return got

    def now(self) -> float:
        """Return the simulated time."""
        return self._model.cycles / self._model.description.clock_hz

    def close(self) -> None:
        """Do nothing: the model stays the caller's."""


class FaultyChannel:
    """Another channel with faults, both ways.

    Parameters
    ----------
    inner : Channel
        Carries what is left.
    chance : float
        That a byte is hit; or, with `by_frame`, that one byte of a write is.
    seed : int
        Of the faults.
    by_frame : bool
        See `chance`.

    Attributes
    ----------
    faults : dict of str to int
        How many of each kind there were.
    calls_left : int or None
        Reads and writes after which the channel breaks, as a cable that is pulled does; None for
        never.
    """

    def __init__(self, inner: Channel, *, chance: float, seed: int, by_frame: bool = False) -> None:
        self.name = inner.name
        self._inner = inner
        self._chance = chance
        self._by_frame = by_frame
        self._random = random.Random(seed)
        self.faults = dict.fromkeys(FAULTS, 0)
        self.calls_left: int | None = None

    def write(self, content: bytes) -> None:
        """Send bytes, some of them wrong."""
        self._check()
        self._inner.write(self._damage(content))

    def read(self, seconds: float) -> bytes:
        """Return what has come, some of it wrong."""
        self._check()
        return self._damage(self._inner.read(seconds))

    def now(self) -> float:
        """Return the other channel's time."""
        return self._inner.now()

    def close(self) -> None:
        """Close the other channel."""
        self._inner.close()

    def _check(self) -> None:
        if self.calls_left is None:
            return
        if self.calls_left == 0:
            raise LinkError(f"port {self.name} must stay connected, and was pulled")
        self.calls_left -= 1

    def _damage(self, content: bytes) -> bytes:
        if self._by_frame:
            hit = bool(content) and self._random.random() < self._chance
            positions = [self._random.randrange(len(content))] if hit else []
        else:
            positions = [i for i in range(len(content)) if self._random.random() < self._chance]
        damaged = bytearray(content)
        for at in reversed(positions):
            kind = self._random.choice(FAULTS)
            self.faults[kind] += 1
            if kind == "changed":
                damaged[at] ^= self._random.randrange(1, 256)
            elif kind == "dropped":
                del damaged[at]
            elif kind == "doubled":
                damaged.insert(at, damaged[at])
            else:
                del damaged[at:]
        return bytes(damaged)
