from __future__ import annotations

from ember_hw.boards.ddr3.chip import CHIPS


def test_limits_are_whole_clocks_that_are_long_enough():
    clocks = CHIPS["ecpix5"].clocks(150.0)
    assert clocks == {
        "trcd": 3,
        "trp": 3,
        "tras": 6,
        "trrd": 4,
        "tfaw": 6,
        "twr": 3,
        "twtr": 4,
        "trtp": 4,
        "tccd": 4,
        "trfc": 39,
        "trefi": 1171,
        "tzqcs": 64,
    }
    assert CHIPS["ecpix5"].clocks(400.0)["trfc"] == 104


def test_geometry_is_that_of_four_gigabits():
    chip = CHIPS["ecpix5"]
    assert (chip.banks, chip.page_beat_bits, chip.beat_address_bits) == (8, 7, 25)
    assert chip.size_bytes == 512 << 20
