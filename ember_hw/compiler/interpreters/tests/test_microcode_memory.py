"""Regions of bytes, by element and by beat."""

from __future__ import annotations

import numpy as np
import pytest

from ember_hw.compiler.interpreters.microcode_memory import Memory


def numbers(count: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.arange(count, dtype=np.uint8)


@pytest.mark.parametrize("size_log2", range(4))
@pytest.mark.parametrize("is_signed", [False, True])
def test_elements_are_little_endian_and_extended(size_log2: int, is_signed: bool) -> None:
    memory = Memory([(64, numbers(100)), (1024, numbers(64) + 160)], bus_bytes=64)
    size = 1 << size_log2
    addresses = np.array([64, 65, 163 - size + 1, 1024, 1024 + 64 - size], np.int64)
    found = memory.load(addresses, size_log2, is_signed)
    for address, value in zip(addresses, found, strict=True):
        first = address - 64 if address < 1024 else address - 1024 + 160
        data = bytes(range(first, first + size))
        assert value == int.from_bytes(data, "little", signed=is_signed or size >= 4)


def test_elements_outside_every_region_are_not_found() -> None:
    memory = Memory([(64, numbers(16)), (128, numbers(8))], bus_bytes=64)
    addresses = np.array([0, 63, 64, 79, 80, 128, 136], np.int64)
    assert memory.find(addresses, 1).tolist() == [-1, -1, 0, 0, -1, 1, -1]
    assert memory.find(addresses, 2).tolist() == [-1, -1, 0, -1, -1, 1, -1]
    assert memory.load(addresses, 0, False).tolist() == [0, 0, 0, 15, 0, 0, 0]
    assert Memory([], bus_bytes=64).find(addresses, 1).tolist() == [-1] * 7


def test_beats_are_cut_to_their_valid_bytes() -> None:
    memory = Memory([(64, numbers(40)), (128, numbers(16))], bus_bytes=16)
    beats = memory.load_beats(np.array([64, 96, 128, 80]), np.array([16, 8, 3, 16]))
    expected = np.zeros((4, 16), np.uint8)
    expected[0] = range(16)
    expected[1, :8] = range(32, 40)
    expected[2, :3] = range(3)
    expected[3] = range(16, 32)
    np.testing.assert_array_equal(beats, expected)


def test_beat_is_aligned() -> None:
    memory = Memory([(64, numbers(64))], bus_bytes=16)
    with pytest.raises(ValueError, match=r"address") as raised:
        memory.load_beats(np.array([64, 72]), np.array([16, 16]))
    assert str(raised.value) == "address of a beat must be a multiple of 16, not 0x48"


def test_region_is_a_flat_array_of_bytes() -> None:
    for content, found in (
        (np.zeros(4, np.int32), "int32 of shape (4,)"),
        (np.zeros((2, 2), np.uint8), "uint8 of shape (2, 2)"),
        (np.zeros(8, np.uint8)[::2], "uint8 of shape (4,)"),
    ):
        with pytest.raises(TypeError) as raised:
            Memory([(64, content)], bus_bytes=16)  # type: ignore[list-item]
        assert str(raised.value) == (
            f"region at 0x40 must be a contiguous uint8 array of one dimension, not {found}"
        )


def test_region_is_aligned() -> None:
    with pytest.raises(ValueError, match=r"base") as raised:
        Memory([(72, numbers(4))], bus_bytes=16)
    assert str(raised.value) == "region base must be a multiple of 16, not 0x48"


def test_regions_lie_apart() -> None:
    with pytest.raises(ValueError, match=r"overlap") as raised:
        Memory([(64, numbers(17)), (80, numbers(4))], bus_bytes=16)
    assert str(raised.value) == (
        "regions must not overlap: the one at 0x40 has 17 bytes, the next begins at 0x50"
    )
