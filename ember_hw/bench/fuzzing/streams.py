"""Random memory streams whose elements are where the stream reads, and are fit for their use."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ember_hw.bench.fuzzing.space import Space
from ember_hw.bench.fuzzing.values import ANY, LEAST, MOST, Known
from ember_hw.config import LINE_BYTES, AcceleratorConfig

#: Elements of a region, at most.
MOST_ELEMENTS = 6000
#: Rows of a table, at most: indices are below.
MOST_ROWS = 60
_TRIES = 20
_DTYPES = {1: ("<u1", "<i1"), 2: ("<u2", "<i2"), 4: ("<i4", "<i4"), 8: ("<i8", "<i8")}


@dataclass(frozen=True)
class Reach:
    """What a unit's streams can see.

    Attributes
    ----------
    induction : Known
        The induction value.
    step : int
        Its step, by which a stream in pair mode looks ahead.
    inherited : list of Known or None
        None: not defined.
    """

    induction: Known
    step: int
    inherited: list[Known | None]


class StreamMaker:
    """Makes memory streams.

    Parameters
    ----------
    config : AcceleratorConfig
    rng : random.Random
    space : Space
        Where their regions go.
    """

    def __init__(self, config: AcceleratorConfig, rng: random.Random, space: Space) -> None:
        self._config, self._rng, self._space = config, rng, space
        self._bytes = np.random.default_rng(rng.getrandbits(63))
        self._pairs = 0

    def make(self, reach: Reach, *, gap: int | None = None) -> tuple[dict[str, int], list[Known]]:
        """Return a record and what is known of its values.

        Parameters
        ----------
        reach : Reach
        gap : int, optional
            The stream is read in pair mode, and one element is beyond the one before by at most
            this. Two values are returned then, the lower one first.
        """
        rng = self._rng
        for attempt in range(_TRIES):
            record, low, high = {}, 0, 0  # always the same element, where nothing else fits
            if attempt < _TRIES // 2:
                record, low, high = self._elements(reach, is_pair=gap is not None)
            slack = rng.choice([0, 0, 0, 1, 5])
            first = rng.choice([0, 0, 1, 9]) - low
            if not LEAST <= first <= MOST or high - low > MOST_ELEMENTS:
                continue
            size_log2 = rng.choice([2, 2, 3, 3, 1, 0] if gap is None else [2, 2, 3, 1])
            far = 0
            if rng.random() < 0.1:
                far = min(rng.randrange(1 << rng.randrange(1, 32)), MOST - first)
            first += far
            least = low + first
            count = high + first + 1 + slack
            start = least // LINE_BYTES * LINE_BYTES  # the first element that is in memory
            if (least - start) + high - low > 2 * MOST_ELEMENTS or count >= 1 << 32:
                continue
            values, known = self._content(count - start, size_log2, gap)
            is_signed = rng.random() < 0.5 or any(k.low < 0 for k in known)
            content = values.astype(_DTYPES[1 << size_log2][is_signed]).view(np.uint8)
            base = self._space.place(content) - (start << size_log2)
            if base < 0:
                self._space.regions.pop()
                continue
            record |= {
                "enable": 1,
                "size": size_log2,
                "signed": int(is_signed),
                "base": base,
                "elements": count,
                "first": first,
                "hint": rng.choice([0, 0, 1, 2]),
            }
            return record, known
        raise AssertionError("a stream of one element must be possible")

    def _elements(self, reach: Reach, *, is_pair: bool) -> tuple[dict[str, int], int, int]:
        """Return which elements are read: fields, least and greatest number before `first`."""
        rng = self._rng
        low = high = 0
        record: dict[str, int] = {}
        induction = reach.induction
        ahead = reach.step if is_pair else 0
        if induction.high + ahead <= MOST and induction.span + ahead < MOST_ELEMENTS:
            if is_pair or rng.random() < 0.85:
                record["induction"] = 1
                low, high = induction.low, induction.high + ahead
        if rng.random() < 0.35:
            export = rng.randrange(len(reach.inherited))
            outer = reach.inherited[export]
            if outer is not None:
                most = MOST_ELEMENTS // 2 // max(1, outer.span)
                pitch = rng.choice([0, 1, 2, 3, 7, rng.randrange(1 << 17), (1 << 17) - 1])
                pitch = min(pitch, most)
                record |= {"outer_enable": 1, "outer_export": export, "outer_pitch": pitch}
                low, high = low + outer.low * pitch, high + outer.high * pitch
        elif rng.random() < 0.5:  # fields that are not looked at
            export = rng.randrange(len(reach.inherited))
            record |= {"outer_export": export, "outer_pitch": rng.randrange(1 << 17)}
        return record, low, high

    def _content(
        self, count: int, size_log2: int, gap: int | None
    ) -> tuple[NDArray[np.int64], list[Known]]:
        """Return the region's elements and what is known of them."""
        rng = self._rng
        bits = min(32, 8 << size_log2)
        most = (1 << (bits - 1)) - 1
        if gap is not None:
            steps = self._bytes.integers(0, gap + 1, count)
            if rng.random() < 0.3:
                steps[self._bytes.random(count) < 0.4] = 0
            start = rng.choice([0, 0, 3, -9])
            values = start + np.cumsum(steps)
            values = np.minimum(values, most)
            self._pairs += 1
            low, high = int(values[0]), int(values[-1])
            lower = Known(low, high, pair=self._pairs, gap=gap)
            return values, [lower, replace(lower, is_upper=True)]
        kind = rng.choice(["index", "index", "small", "small", "bytes", "lines", "wild"])
        if kind == "wild":
            values = self._bytes.integers(-most - 1, most + 1, count)
            return values, [ANY if bits == 32 else Known(-most - 1, (1 << bits) - 1)]
        low, high, align = {
            "index": (0, rng.randrange(1, MOST_ROWS), 1),
            "small": (rng.choice([0, 0, 1, -2]), rng.randrange(2, 8), 1),
            "bytes": (1, rng.choice([1, 2, 4]), 64),
            "lines": (0, rng.randrange(1, 12), 1),
        }[kind]
        if high * align > most:
            low, high, align = 0, 1, 1
        values = self._bytes.integers(low, high + 1, count) * align
        return values, [Known(low * align, high * align, align=align)]
