from __future__ import annotations

from cocotb_tests.coverage.points import Point
from cocotb_tests.coverage.report import Blocks, listing


def _blocks() -> Blocks:
    blocks = Blocks()
    hit = [Point("line", "unit0", "1 if"), Point("toggle", "", "irq")]
    waived = [Point("toggle", "", "size")]
    missed = [Point("line", "unit1", "2 else")]
    blocks.count(hit, waived, missed)
    return blocks


def test_blocks_of_a_kind_are_counted_together() -> None:
    assert str(_blocks().shares["unit*", "line"]) == " 50.00 %      1/2"
    assert str(_blocks().total("toggle")) == "100.00 %      1/1 (1)"
    assert _blocks().table().splitlines()[-1].split()[0] == "all"


def test_bar_that_is_not_met_is_told() -> None:
    assert _blocks().fails() == ["line coverage must be 100% or more, not 50.00%"]


def test_listing_shows_the_text_of_a_line_and_the_bits_of_a_signal() -> None:
    points = [
        Point("line", "unit", "2 else: if (rst)"),
        Point("toggle", "unit", "beat[3]"),
        Point("toggle", "unit", "beat[2]"),
    ]
    wanted = "line unit 2 else: if (rst)\ntoggle unit beat[2][3]\n"
    assert listing(points) == wanted
