"""Many random accesses in Verilator, and proof that a broken limit would be seen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ember_hw.boards.sdram.chip import CHIPS
from ember_hw.boards.sdram.exercise import Plan, exercise
from ember_hw.boards.sdram.pins import Command
from ember_hw.rtl.tests.harness import refuses

pytestmark = pytest.mark.verilator

CHIP = CHIPS["ulx3s"]
CLOCK_MHZ = 100.0


@pytest.mark.parametrize(
    "plan",
    [
        Plan(requests=20_000, writes=0.3, seed=1),
        Plan(
            requests=2_000,
            most_beats=256,
            writes=0.4,
            partial_writes=0.3,
            request_stall=0.3,
            response_stall=0.2,
            data_stall=0.3,
            region_beats=1 << 12,
            seed=2,
        ),
    ],
)
def test_nothing_wrong_in_random_accesses(plan):
    outcome = exercise(CHIP, CLOCK_MHZ, plan)
    assert outcome.first == ""
    assert (outcome.wrong, outcome.violations, outcome.is_hung) == (0, 0, False)
    assert outcome.beats + outcome.beats_written >= plan.requests


def test_random_rows_reach_most_of_the_peak():
    outcome = exercise(CHIP, CLOCK_MHZ, Plan(requests=1_000, most_beats=16, aligned=True))
    assert outcome.first == ""
    assert outcome.read_share_of_peak > 0.95
    assert outcome.commands[Command.READ] == outcome.beats == 16_000


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("trcd", {"trcd_ns": 30.0}),
        ("trp", {"trp_ns": 30.0}),
        ("tras", {"tras_ns": 110.0}),
        ("trc", {"trc_ns": 150.0}),
        ("trrd", {"trrd_ns": 40.0}),
        ("twr", {"twr_ns": 30.0}),
        ("trfc", {"trfc_ns": 90.0}),
        ("trefi", {"refresh_ms": 60.0}),
        ("tmrd", {"tmrd_clocks": 8}),
        ("power-up", {"power_up_ns": 201_000.0}),
        ("tras_most", {"tras_most_ns": 1_000.0}),
    ],
)
def test_chip_that_is_slower_than_the_controller_thinks_is_noticed(rule, change):
    plan = Plan(requests=3_000, writes=0.3, region_beats=1 << 10)
    judge = replace(CHIP, **change)
    outcome = exercise(CHIP, CLOCK_MHZ, plan, judge=judge)
    assert outcome.violations > 0
    assert outcome.first.startswith(f"{rule}: ")


def test_chip_with_another_latency_gives_wrong_data():
    outcome = exercise(CHIP, CLOCK_MHZ, Plan(requests=100), judge=replace(CHIP, cl2_mhz=99.0))
    assert outcome.wrong == 100
    assert outcome.first == "beat 1 at clock 20080 is wrong"
    assert outcome.violations == 1  # the mode register


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"writes": 1.0}, "writes must be from 0 to below 1, not 1.0"),
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
