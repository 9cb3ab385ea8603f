from __future__ import annotations

import random

import pytest

from ember_hw import isa
from ember_hw.config import AcceleratorConfig
from ember_hw.rtl import axi
from ember_hw.rtl.control import FaultSignature
from ember_hw.rtl.join import LinePort
from ember_hw.rtl.layouts import beat_count_bits, line_address_bits, record_layout, tag_bits
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


@pytest.mark.parametrize(
    ("changes", "tag", "beats"),
    [({}, 3, 4), ({"outstanding_reads": 5}, 4, 4), ({"outstanding_reads": 2}, 3, 4)],
)
def test_tags_hold_every_burst_and_every_stream(changes: dict, tag: int, beats: int):
    config = CONFIG.with_changes(**changes)
    assert tag_bits(config) == tag
    assert beat_count_bits(config) == beats
    assert line_address_bits(config) == config.address_width_bits - 6


def test_a_burst_of_256_beats_can_be_counted():
    config = AcceleratorConfig(data_width_bits=128, max_burst_beats=256)
    assert beat_count_bits(config) == 9


@pytest.mark.parametrize("signature", [axi.ReadSignature, FaultSignature, LinePort])
def test_signatures_are_equal_where_their_configs_are(signature):
    other = CONFIG.with_changes(data_width_bits=128)
    assert signature(CONFIG) == signature(CONFIG)
    assert signature(CONFIG) != signature(other)
    assert signature(CONFIG) != axi.LiteSignature()
