from __future__ import annotations

import random
import re

import pytest

from ember_hw.boards.links.frame import (
    ARGUMENT_BYTES,
    ARGUMENTS,
    ESCAPE,
    FLAG,
    HEADER,
    MAX_DATA_BYTES,
    Frame,
    FrameDecoder,
    encode,
    pack,
    unpack,
)


def random_frame(rng: random.Random) -> Frame:
    length = rng.choice((0, 1, 8, 40, ARGUMENT_BYTES + MAX_DATA_BYTES))
    alphabet = rng.choice((range(256), (FLAG, ESCAPE, 0x20, 0x5D, 0x5E)))
    header = [rng.choice((FLAG, ESCAPE, rng.randrange(256))) for _ in range(4)]
    return Frame(*header, payload=bytes(rng.choices(alphabet, k=length)))


def test_frames_come_back_however_the_bytes_are_cut() -> None:
    rng = random.Random(1)
    frames = [random_frame(rng) for _ in range(200)]
    content = b"".join(encode(frame) for frame in frames)
    decoder, found, at = FrameDecoder(), [], 0
    while at < len(content):
        size = rng.randrange(1, 200)
        found += decoder.feed(content[at : at + size])
        at += size
    assert found == frames
    assert (decoder.good, decoder.bad) == (200, 0)


def test_one_flag_between_two_frames_is_enough() -> None:
    frames = [Frame(1, 2, 3), Frame(1, 2, 4)]
    content = encode(frames[0])[:-1] + encode(frames[1])
    assert FrameDecoder().feed(content) == frames


def test_the_frame_after_garbage_is_found() -> None:
    rng = random.Random(2)
    for _ in range(300):
        decoder = FrameDecoder()
        garbage = rng.randbytes(rng.randrange(1, 700))
        assert decoder.feed(garbage) == []
        frame = random_frame(rng)
        assert decoder.feed(encode(frame)) == [frame]


@pytest.mark.parametrize("fault", ["change", "drop", "double", "cut"])
def test_a_faulty_frame_is_never_taken_for_another(fault: str) -> None:
    rng = random.Random(fault)
    for _ in range(500):
        frame = random_frame(rng)
        content = bytearray(encode(frame))
        at = rng.randrange(len(content))
        if fault == "change":
            content[at] ^= 1 << rng.randrange(8)
        elif fault == "drop":
            del content[at]
        elif fault == "double":
            content.insert(at, content[at])
        else:
            del content[at:]
        assert FrameDecoder().feed(bytes(content)) in ([], [frame])


def test_fields_are_little_endian_and_in_order() -> None:
    packed = pack(ARGUMENTS, {"address": 0x0102030405, "count": 0x060708})
    assert packed == bytes([5, 4, 3, 2, 1, 8, 7, 6])
    assert unpack(ARGUMENTS, packed) == {"address": 0x0102030405, "count": 0x060708}


def test_a_field_that_does_not_fit_is_refused() -> None:
    message = "sequence must fit in 1 bytes, not 256"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        encode(Frame(0, 0, 256))
    values = dict.fromkeys([name for name, _, _ in HEADER], 0) | {"length": -1}
    message = "length must fit in 2 bytes, not -1"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        pack(HEADER, values)


def test_a_payload_that_is_too_long_is_refused() -> None:
    message = "payload must be at most 520 bytes, not 521"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        encode(Frame(0, 0, 0, payload=bytes(521)))
