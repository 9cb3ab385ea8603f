"""Boards are found by their files."""

from __future__ import annotations

import pytest

from ember_hw.boards.bitstream.target import board, board_names
from ember_hw.boards.bitstream.tests.blinker import TARGET
from ember_hw.config import AcceleratorConfig


def test_every_board_file_defines_its_target():
    assert "ulx3s" in board_names()
    for name in board_names():
        assert board(name).name == name


def test_unknown_board_is_refused():
    names = ", ".join(board_names())
    with pytest.raises(ValueError, match=rf"^board must be one of {names}, not 'arty'$"):
        board("arty")


def test_description_tells_config_clock_and_memory():
    config = AcceleratorConfig.preset("small")
    description = board("ulx3s").describe(config, "block", 0x1234)
    assert (description.board, description.gateware_id) == ("ulx3s", 0x1234)
    assert description.config == config
    assert description.clock_hz == 50_000_000
    assert (description.memory_base, description.memory_bytes) == (1 << 20, 1 << 18)
    assert description.memory == "block RAM"


def test_memory_must_be_one_of_the_board():
    with pytest.raises(ValueError, match=r"^memory of blinker must be one of none, not 'sdram'$"):
        TARGET.describe(TARGET.config, "sdram", 0)
