"""Random row entries that read inside a table made for them."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from ember_hw.bench.fuzzing.space import Space
from ember_hw.bench.fuzzing.values import Known
from ember_hw.config import AcceleratorConfig
from ember_hw.isa import Source

_MOST_REGION_BYTES = 1 << 17
_OPERANDS = ("base", "pitch", "length", "rows", "offset")


class RowMaker:
    """Makes row entries.

    Parameters
    ----------
    config : AcceleratorConfig
    rng : random.Random
    space : Space
        Where their tables go.
    exports : list of Known or None
        Of the innermost unit.
    """

    def __init__(
        self,
        config: AcceleratorConfig,
        rng: random.Random,
        space: Space,
        exports: list[Known | None],
    ) -> None:
        self._config, self._rng, self._space, self._exports = config, rng, space, exports

    def make(self, events: int, depth: int) -> dict[str, int] | None:
        """Return a record, or None if no export can be an index.

        Parameters
        ----------
        events : int
            Its event mask.
        depth : int
            The innermost unit whose values are defined with all of them.
        """
        rng, bus_bytes = self._rng, self._config.bus_bytes
        index = self._pick(depth, lambda k: 0 <= k.low and k.high < 4000)
        if index is None:
            return None
        index_export, index_known = index
        record = {f"{name}_export": rng.randrange(len(self._exports)) for name in _OPERANDS}
        record |= {"offset_size": rng.randrange(4), "clip": rng.randrange(1 << 17)}  # for nothing
        record |= {"events": events, "index_export": index_export, "hint": rng.choice([0, 1, 2])}

        pitch_least = pitch_most = bus_bytes * rng.choice([1, 1, 2, 3, 4, 8, 17, 70])
        record["pitch"] = pitch_most
        usable = self._pick(depth, lambda k: k.align >= bus_bytes and 0 < k.low and k.high <= 512)
        if usable is not None and rng.random() < 0.4:
            record |= {"pitch_source": Source.SLOT, "pitch_export": usable[0]}
            pitch_least, pitch_most = usable[1].low, usable[1].high

        longest = pitch_least
        offset_most = 0
        if rng.random() < 0.25:
            longest, offset_most = self._part(record, depth, pitch_least)
        record["length"] = length = self._length(longest, is_part="offset_enable" in record)
        usable = self._pick(depth, lambda k: 0 < k.low and k.high <= pitch_least)
        if usable is not None and "offset_enable" not in record and rng.random() < 0.4:
            record |= {"length_source": Source.SLOT, "length_export": usable[0]}
            length = usable[1].high

        distance = 0
        usable = self._pick(depth, lambda k: 0 <= k.low and k.high < 64)
        if usable is not None and rng.random() < 0.4:
            record |= {"base_source": Source.SLOT, "base_export": usable[0]}
            distance = usable[1].high * 64
        record["rows"] = index_known.high + 1 + rng.choice([0, 0, 3])
        usable = self._pick(depth, lambda k: k.low > index_known.high)
        if usable is not None and rng.random() < 0.4:
            record |= {"rows_source": Source.SLOT, "rows_export": usable[0]}

        end = distance + index_known.high * pitch_most + offset_most + length
        if end > _MOST_REGION_BYTES:
            return None
        content = np.random.default_rng(rng.getrandbits(63)).integers(0, 256, end, np.uint8)
        record["base"] = self._space.place(content)
        record["region_bytes"] = end + rng.choice([0, 0, 0, 1, 64])
        return record

    def _part(self, record: dict[str, int], depth: int, pitch: int) -> tuple[int, int]:
        """Fetch a part of each row. Return the most bytes of one, and the greatest offset."""
        rng, bus_bytes = self._rng, self._config.bus_bytes
        size = rng.randrange(4)
        usable = self._pick(
            depth,
            lambda k: k.align << size >= bus_bytes and 0 <= k.low and k.high << size < pitch,
        )
        if usable is None:
            return pitch, 0
        most = usable[1].high << size
        record |= {"offset_enable": 1, "offset_export": usable[0], "offset_size": size}
        record["clip"] = rng.randrange(most + 1, pitch + 1)
        return pitch - most, most

    def _length(self, longest: int, *, is_part: bool) -> int:
        rng, bus_bytes = self._rng, self._config.bus_bytes
        if is_part:
            return max(1, rng.randrange(0, longest // bus_bytes + 1)) * bus_bytes
        lengths = [1, longest, rng.randrange(1, longest + 1), max(1, longest - 1)]
        return min(rng.choice(lengths), (1 << 16) - 1)

    def _pick(self, depth: int, fits: Callable[[Known], bool]) -> tuple[int, Known] | None:
        """Return a random export that is defined there and fits."""
        found = [
            (number, known)
            for number, known in enumerate(self._exports)
            if known is not None and known.level <= depth and fits(known)
        ]
        return self._rng.choice(found) if found else None
