from __future__ import annotations

import re
from pathlib import Path

import pytest

from ember_hw.host.report_plots import (
    COLOURS,
    draw_png,
    draw_svg,
    footnote,
    headline,
    pictures,
)
from ember_hw.host.tests.profiles import a_profile, a_queue, a_timed_report
from ember_hw.host.tests.test_report import untimed_report


def test_run_that_was_simulated_has_all_pictures() -> None:
    assert list(pictures(a_timed_report())) == ["cycles", "roofline", "occupancy", "reuse"]


def test_picture_needs_its_numbers() -> None:
    assert "reuse" not in pictures(a_timed_report(a_profile(reuse=None)))
    assert list(pictures(a_timed_report(profiler=None))) == ["cycles", "roofline"]
    assert pictures(untimed_report()) == {}


def test_png_holds_all_pictures(tmp_path: Path) -> None:
    path = tmp_path / "run.png"
    draw_png(a_timed_report(), path)
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG")
    width, height = int.from_bytes(content[16:20]), int.from_bytes(content[20:24])
    assert (width, height) == (1650, 1298)
    assert len(content) > 50_000


def test_run_without_a_clock_can_t_be_drawn(tmp_path: Path) -> None:
    message = "a picture must be of a run with a clock, not of backend 'interpreter'"
    with pytest.raises(ValueError, match=f"^{message}$"):
        draw_png(untimed_report(), tmp_path / "run.png")


def test_svg_has_only_colours_that_a_page_can_replace_and_is_always_the_same() -> None:
    report = a_timed_report(
        a_profile(occupancy={**a_profile().occupancy, "tokens": a_queue(128, 5)})
    )
    for name in ("roofline", "occupancy"):
        svg = draw_svg(report, name)
        assert svg.startswith("<svg")
        assert set(re.findall(r"#[0-9a-f]{6}", svg)) <= set(COLOURS.values())
        assert svg == draw_svg(report, name)


def test_headline_and_footnote_name_what_numbers_depend_on() -> None:
    report = a_timed_report(memory="ddr4 (modelled: 19.2 GB/s, unit 300 MHz; map row16; clocks 4)")
    assert headline(report) == "bag: 2,000 lookups, 10,000 cycles, 80.0% of the memory port"
    assert footnote(report) == (
        "simulated, not measured on silicon  ·  memory: ddr4 (modelled: 19.2 GB/s, unit 300 MHz)"
        "  ·  execute side: ideal  ·  config default (512 bits)  ·  100 MHz (stated)  ·  seed 7"
    )
    assert headline(untimed_report()) == "bag: 2 lookups, no clock"
