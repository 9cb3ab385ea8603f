"""Many random reads in Verilator, and proof that a broken limit would be seen."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import pytest

from ember_hw.boards.ddr3.chip import CHIPS
from ember_hw.boards.ddr3.exercise import Plan, exercise
from ember_hw.rtl.tests.harness import refuses

needs_litedram = pytest.mark.skipif(
    find_spec("litedram") is None, reason="the extra `ddr3` isn't installed"
)

CHIP = CHIPS["ecpix5"]
CLOCK_MHZ = 75.0
PORTS = 4
#: Reads and the host's writes, all in a few rows of each bank.
MIXED = Plan(requests=3_000, most_beats=4, host_accesses=0.2, region_beats=1 << 12, seed=4)


@needs_litedram
@pytest.mark.verilator
@pytest.mark.parametrize(
    "plan",
    [
        Plan(requests=5_000, seed=1),
        replace(MIXED, request_stall=0.2, response_stall=0.2),
        Plan(requests=500, most_beats=256, response_stall=0.3, region_beats=1 << 12, seed=2),
    ],
)
def test_nothing_wrong_in_random_accesses(plan: Plan):
    outcome = exercise(CHIP, CLOCK_MHZ, PORTS, plan)
    assert outcome.first == ""
    assert outcome.is_right
    assert outcome.beats >= plan.requests
    if plan.host_accesses:
        assert outcome.commands["WRITE"] > 20


@needs_litedram
@pytest.mark.verilator
@pytest.mark.parametrize(("beats", "least"), [(4, 0.85), (16, 0.9)])
def test_random_rows_reach_most_of_the_peak(beats: int, least: float):
    plan = Plan(requests=16_000 // beats, most_beats=beats, aligned=True)
    outcome = exercise(CHIP, CLOCK_MHZ, PORTS, plan)
    assert outcome.is_right
    assert outcome.share_of_peak > least
    assert outcome.commands["READ"] == outcome.beats == 16_000


@needs_litedram
@pytest.mark.verilator
@pytest.mark.parametrize(
    ("rules", "change"),
    [
        ("trcd", {"trcd_ns": 40.0}),
        ("trp", {"trp_ns": 40.0}),
        ("trrd", {"trrd_clocks": 8}),
        ("tfaw", {"tfaw_ns": 160.0}),
        ("twtr", {"twtr_clocks": 12}),
        # READ and WRITE may close rows themselves, as late as the chip must: then the next ACTIVATE
        # comes too soon.
        ("tras trp", {"tras_ns": 80.0}),
        ("twr trp", {"twr_ns": 80.0}),
        ("trtp trp", {"trtp_clocks": 16}),
        ("tccd", {"tccd_clocks": 6}),
        ("trfc", {"trfc_ns": 400.0}),
        ("trefi", {"trefi_ns": 700.0}),
    ],
)
def test_chip_that_is_slower_than_the_controller_thinks_is_noticed(rules, change):
    outcome = exercise(CHIP, CLOCK_MHZ, PORTS, MIXED, judge=replace(CHIP, **change))
    assert outcome.violations > 0
    assert outcome.first.partition(":")[0] in rules.split()


@needs_litedram
@pytest.mark.verilator
def test_chip_of_another_geometry_gives_wrong_data():
    judge = replace(CHIP, column_bits=9)
    outcome = exercise(CHIP, CLOCK_MHZ, PORTS, Plan(requests=100), judge=judge)
    assert outcome.wrong > 90
    assert outcome.first.startswith("beat at cycle ")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"host_accesses": 1.0}, "host_accesses must be from 0 to below 1, not 1.0"),
        ({"request_stall": -0.1}, "request_stall must be from 0 to below 1, not -0.1"),
        ({"most_beats": 257}, "most_beats must be from 1 to 256, not 257"),
        (
            {"most_beats": 16, "region_beats": 8},
            "region_beats must be 0 or at least most_beats (16), not 8",
        ),
    ],
)
def test_impossible_plan_is_refused(parameters, message):
    with refuses(message):
        Plan(requests=1, **parameters)
