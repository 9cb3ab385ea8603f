from __future__ import annotations

import random
import re

import pytest
from amaranth.hdl import Const

from ember_hw import isa
from ember_hw.config import AcceleratorConfig
from ember_hw.rtl import axi
from ember_hw.rtl.faults import FaultSignature
from ember_hw.rtl.join import LinePort
from ember_hw.rtl.layouts import (
    beat_tag_bits,
    index_tags,
    length_bits,
    line_address_bits,
    line_port_bits,
    port_of,
    record_layout,
    request_tag_bits,
    row_tags,
    tag_bits,
)
from ember_hw.rtl.tests.harness import CONFIG, unpack


@pytest.mark.parametrize("path", isa.layouts(CONFIG))
def test_records_are_laid_out_as_the_encoder_writes_them(path: str):
    dice = random.Random(path)
    layout = isa.layouts(CONFIG)[path]
    values = {
        f.name: int(dice.choice(list(f.choices))) if f.choices else dice.randint(f.least, f.most)
        for f in layout.fields
    }
    words = isa.Microcode(CONFIG, {path: values}).encode()
    words = words[layout.first_word : layout.first_word + layout.words]
    bits = sum(word << 32 * i for i, word in enumerate(words))
    assert unpack(record_layout(path, CONFIG), bits) == values
    assert record_layout(path, CONFIG).size == layout.width_bits


@pytest.mark.parametrize("path", isa.layouts(CONFIG))
def test_records_of_one_kind_are_alike(path: str):
    """One layout stands for all units, streams and row entries."""
    kind = re.sub(r"\d", "0", path)
    assert record_layout(path, CONFIG) == record_layout(kind, CONFIG)


LINES_GO_ROUND = {"memory_ports": 4, "index_port_bits": 0}


@pytest.mark.parametrize(
    ("changes", "rows", "lines", "tag", "beat"),
    [
        ({}, 4, 4, 2, 2),
        ({"outstanding_reads": 2}, 2, 4, 2, 2),
        ({"outstanding_reads": 5}, 8, 4, 3, 3),
        ({"outstanding_reads": 512}, 16, 4, 4, 4),
        ({"traversal_units": 4, "streams_per_unit": 8}, 4, 32, 5, 5),
        ({"traversal_units": 1, "streams_per_unit": 1, "outstanding_reads": 2}, 2, 2, 1, 1),
        (LINES_GO_ROUND, 4, 16, 4, 6),
        (LINES_GO_ROUND | {"index_port_bits": 128}, 4, 4, 2, 4),
    ],
)
def test_tags_hold_what_is_in_flight(changes: dict, rows: int, lines: int, tag: int, beat: int):
    config = CONFIG.with_changes(**changes)
    assert (row_tags(config), index_tags(config)) == (rows, lines)
    assert (request_tag_bits(config), tag_bits(config)) == (tag, tag + 1)
    assert beat_tag_bits(config) == beat
    assert line_address_bits(config) == config.address_width_bits - 6


@pytest.mark.parametrize(
    ("bits", "beats", "index_bits", "expected"),
    [(64, 8, 0, 3), (64, 2, 0, 3), (128, 256, 0, 8), (512, 1, 0, 1), (512, 1, 64, 3)],
)
def test_lengths_hold_the_longest_burst_and_a_line(
    bits: int, beats: int, index_bits: int, expected: int
):
    config = AcceleratorConfig(
        data_width_bits=bits, max_burst_beats=beats, index_port_bits=index_bits
    )
    assert length_bits(config) == expected
    assert line_port_bits(config) == (index_bits or bits)


@pytest.mark.parametrize(("ports", "interleave"), [(1, 64), (2, 64), (4, 4096), (8, 1 << 28)])
def test_ports_take_turns_with_addresses(ports: int, interleave: int):
    config = AcceleratorConfig(memory_ports=ports, port_interleave_bytes=interleave)
    for address in (0, interleave - 1, interleave, 5 * interleave, 13 * interleave - 1):
        port = port_of(Const(address, config.address_width_bits), config)
        assert Const.cast(port).value == address // interleave % ports


@pytest.mark.parametrize("signature", [axi.ReadSignature, FaultSignature, LinePort])
def test_signatures_are_equal_where_their_configs_are(signature):
    other = CONFIG.with_changes(data_width_bits=128)
    assert signature(CONFIG) == signature(CONFIG)
    assert signature(CONFIG) != signature(other)
    assert signature(CONFIG) != axi.LiteSignature()
