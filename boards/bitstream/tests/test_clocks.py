"""Divisions of the PLL, and what cannot be made."""

from __future__ import annotations

import pytest

from ember_hw.boards.bitstream.clocks import divisions
from ember_hw.rtl.tests.harness import refuses


@pytest.mark.parametrize(
    ("input_mhz", "output_mhz", "expected"),
    [
        (25.0, {"sync": 50.0, "sdram": 100.0}, (2, {"sync": 16, "sdram": 8})),
        (25.0, {"sync": 75.0, "sdram": 100.0}, (3, {"sync": 8, "sdram": 6})),
        (100.0, {"sync": 100.0}, (1, {"sync": 8})),
    ],
)
def test_oscillator_is_the_fastest_that_all_clocks_divide(input_mhz, output_mhz, expected):
    assert divisions(input_mhz, output_mhz) == expected


@pytest.mark.parametrize("output_mhz", [{"sync": 60.0}, {"sync": 50.0, "sdram": 77.0}])
def test_clocks_that_no_division_makes_are_refused(output_mhz):
    wanted = ", ".join(f"{name} {mhz:g} MHz" for name, mhz in output_mhz.items())
    with refuses(
        "clocks must be such that a PLL can make them of 25 MHz (the first a multiple of it, all "
        f"of them parts of one of 400 to 800 MHz), not {wanted}"
    ):
        divisions(25.0, output_mhz)


@pytest.mark.parametrize("count", [0, 5])
def test_pll_has_four_outputs(count):
    with refuses(f"clocks of a PLL must be 1 to 4, not {count}"):
        divisions(25.0, {f"clock{i}": 50.0 for i in range(count)})
