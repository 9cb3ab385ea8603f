"""Payloads of the streams of the SDRAM controller."""

from __future__ import annotations

from amaranth.lib import data

from ember_hw.boards.sdram.chip import BURST_WORDS, SdramChip
from ember_hw.boards.sdram.pins import WORD_BYTES

BEAT_BITS = BURST_WORDS * WORD_BYTES * 8

#: Width of a request's length, which is its beats less one: that of AXI4.
LENGTH_BITS = 8


def page_beat_bits(chip: SdramChip) -> int:
    """Return the width of a beat's number within its row."""
    return (chip.page_beats - 1).bit_length()


def request_layout(chip: SdramChip, tag_bits: int) -> data.StructLayout:
    """Return a request: number of its first beat, beats less one, read or write, tag of a read."""
    return data.StructLayout(
        {
            "beat": chip.beat_address_bits,
            "length": LENGTH_BITS,
            "write": 1,
            "tag": tag_bits,
        }
    )


def segment_layout(chip: SdramChip, tag_bits: int) -> data.StructLayout:
    """Return the part of a request that lies in one row; `last`: the request's last part."""
    return data.StructLayout(
        {
            "bank": chip.bank_bits,
            "beat": page_beat_bits(chip),
            "length": page_beat_bits(chip),
            "write": 1,
            "tag": tag_bits,
            "last": 1,
        }
    )


def written_beat_layout() -> data.StructLayout:
    """Return a beat to write, and which of its bytes are."""
    return data.StructLayout({"data": BEAT_BITS, "bytes": BEAT_BITS // 8})


def read_beat_layout(tag_bits: int) -> data.StructLayout:
    """Return a beat that was read; `last` is that of its request."""
    return data.StructLayout({"data": BEAT_BITS, "tag": tag_bits, "last": 1})
