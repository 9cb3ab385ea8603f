"""The queues' stream of bytes, as it comes over a board's link, taken apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ember_hw.boards.links.frame import BEAT_LAST, Beat
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import LinkError
from ember_hw.host.execution import Chunk, unpack_bundles


class BeatParser:
    """Puts bytes together to beats; the cut between two pieces may fall anywhere.

    Parameters
    ----------
    config : AcceleratorConfig
        Of the access unit.

    Attributes
    ----------
    beats : int
        Whole beats so far.
    """

    def __init__(self, config: AcceleratorConfig) -> None:
        self._config = config
        self._rest = b""
        self.beats = 0

    @property
    def is_between_beats(self) -> bool:
        """Whether no beat has come in part."""
        return not self._rest

    def feed(self, content: bytes) -> Chunk:
        """Return the beats that the bytes complete.

        Raises
        ------
        LinkError
            A beat is of no kind that there is.
        """
        content = self._rest + content
        bundles, rows, last = bytearray(), bytearray(), bytearray()
        at = 0
        while at < len(content):
            kind = content[at] & ~BEAT_LAST
            if kind == Beat.BUNDLE:
                size, goes = self._config.bundle_bytes, bundles
            elif kind in (Beat.ROW, Beat.RESULT):
                size, goes = self._config.bus_bytes, rows
            else:
                raise LinkError(f"a beat of the queues must be one of {list(Beat)}, not {kind}")
            if at + 1 + size > len(content):
                break
            goes += content[at + 1 : at + 1 + size]
            if goes is rows:
                last.append(bool(content[at] & BEAT_LAST))
            at += 1 + size
            self.beats += 1
        self._rest = content[at:]
        events, scalars = unpack_bundles(_beats(bundles, self._config.bundle_bytes), self._config)
        return Chunk(
            events, scalars, _beats(rows, self._config.bus_bytes), np.frombuffer(last, np.bool_)
        )


def _beats(content: bytearray, size: int) -> NDArray[np.uint8]:
    return np.frombuffer(content, np.uint8).reshape(-1, size)
