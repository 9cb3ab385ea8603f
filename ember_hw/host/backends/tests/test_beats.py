from __future__ import annotations

import random
import re

import numpy as np
import pytest

from ember_hw.boards.links.frame import BEAT_LAST, Beat
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import LinkError
from ember_hw.host.backends.beats import BeatParser
from ember_hw.host.execution import Chunk

CONFIG = AcceleratorConfig.preset("tiny")


def test_beats_come_back_however_the_bytes_are_cut() -> None:
    rng = random.Random(1)
    content = bytearray()
    rows: list[list[int]] = []
    last: list[bool] = []
    events: list[int] = []
    scalars: list[list[int]] = []
    for _ in range(100):
        if rng.random() < 0.4:
            events.append(rng.randrange(1 << CONFIG.events))
            scalars.append([rng.randrange(1 << 32) for _ in range(CONFIG.bundle_scalars)])
            bits = events[-1]
            for number, scalar in enumerate(scalars[-1]):
                bits |= scalar << CONFIG.events + 32 * number
            content.append(Beat.BUNDLE)
            content += bits.to_bytes(CONFIG.bundle_bytes, "little")
        else:
            rows.append(list(rng.randbytes(CONFIG.bus_bytes)))
            last.append(rng.random() < 0.5)
            content.append(rng.choice((Beat.ROW, Beat.RESULT)) | BEAT_LAST * last[-1])
            content += bytes(rows[-1])
    parser = BeatParser(CONFIG)
    chunks: list[Chunk] = []
    at = 0
    while at < len(content):
        size = rng.randrange(1, 40)
        chunks.append(parser.feed(bytes(content[at : at + size])))
        at += size
    assert parser.is_between_beats
    assert parser.beats == 100
    assert np.concatenate([chunk.events for chunk in chunks]).tolist() == events
    assert np.concatenate([chunk.scalars for chunk in chunks]).tolist() == scalars
    assert np.concatenate([chunk.row_beats for chunk in chunks]).tolist() == rows
    assert np.concatenate([chunk.row_last for chunk in chunks]).tolist() == last


def test_a_beat_in_part_is_kept() -> None:
    parser = BeatParser(CONFIG)
    assert parser.feed(bytes([Beat.ROW, 1, 2])).row_last.size == 0
    assert not parser.is_between_beats


def test_a_beat_of_no_kind_is_refused() -> None:
    message = f"a beat of the queues must be one of {list(Beat)}, not 3"
    with pytest.raises(LinkError, match=f"^{re.escape(message)}$"):
        BeatParser(CONFIG).feed(b"\x03")
