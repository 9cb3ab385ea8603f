"""Limits of chips, in nanoseconds and in clocks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ember_hw.boards.sdram.chip import CHIPS, SdramClocks
from ember_hw.rtl.tests.harness import refuses

CHIP = CHIPS["ulx3s"]


@pytest.mark.parametrize(
    ("clock_mhz", "clocks"),
    [
        (
            100.0,
            SdramClocks(
                cl=2, trcd=2, trp=2, tras=5, trc=7, trrd=2, twr=2, trfc=7, trefi=781, tmrd=2,
                power_up=20_000, tras_most=10_000,
            ),
        ),
        (
            133.0,
            SdramClocks(
                cl=3, trcd=3, trp=3, tras=6, trc=9, trrd=2, twr=3, trfc=9, trefi=1039, tmrd=2,
                power_up=26_600, tras_most=13_300,
            ),
        ),
    ],
)  # fmt: skip
def test_limits_are_whole_clocks_on_the_safe_side(clock_mhz, clocks):
    assert CHIP.clocks(clock_mhz) == clocks


def test_geometry():
    assert (CHIP.banks, CHIP.page_beats, CHIP.beat_bytes) == (4, 64, 16)
    assert CHIP.size_bytes == 32 << 20 == CHIP.beat_bytes << CHIP.beat_address_bits


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"row_bits": 14}, "row_bits must be 11 to 13, not 14"),
        ({"bank_bits": 0}, "bank_bits must be 1 to 2, not 0"),
        ({"column_bits": 7}, "column_bits must be 8 to 10, not 7"),
    ],
)
def test_impossible_geometry_is_refused(change, message):
    with refuses(message):
        replace(CHIP, **change)


@pytest.mark.parametrize("clock_mhz", [0, 133.5])
def test_clock_that_the_chip_cannot_take_is_refused(clock_mhz):
    with refuses(f"clock of ulx3s must be at most 133 MHz, not {clock_mhz!r}"):
        CHIP.clocks(clock_mhz)


def test_slow_clock_leaves_no_time_between_refreshes():
    with refuses(
        "trefi must be more than 24 clocks, not 7: little but refreshes would happen; "
        "use a faster clock"
    ):
        CHIP.clocks(1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cl": 1}, "cl must be 2 or 3 clocks, not 1"),
        ({"trcd": 0}, "trcd must be at least 1 clock, not 0"),
        ({"tmrd": 2.0}, "tmrd must be at least 1 clock, not 2.0"),
    ],
)
def test_impossible_clocks_are_refused(change, message):
    with refuses(message):
        replace(CHIP.clocks(100.0), **change)
