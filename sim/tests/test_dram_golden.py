"""The DRAM model against the numbers of another simulator, kept in dram_golden.json."""

import pytest

from ember_hw.sim.dram import DRAM_PRESETS
from ember_hw.sim.dram_golden import CASES, GOLDEN, TRACES
from ember_hw.sim.memory_library import run_accesses
from ember_hw.sim.timing_check import check_commands

BANDWIDTH, LATENCY = 0.05, 0.10


def test_every_case_has_a_golden_number():
    assert [(row["preset"], row["trace"]) for row in GOLDEN["rows"]] == CASES


@pytest.mark.parametrize(
    "golden", GOLDEN["rows"], ids=lambda golden: f"{golden['preset']}: {golden['trace']}"
)
def test_bandwidth_and_latency_are_the_golden_ones(golden):
    dram = DRAM_PRESETS[golden["preset"]]
    trace = TRACES[golden["trace"]](dram)
    assert len(trace.addresses) == golden["accesses"]
    run = run_accesses(dram, trace.addresses, trace.clocks)
    assert run.clocks == pytest.approx(golden["clocks"], rel=BANDWIDTH)
    assert run.mean_latency_clocks == pytest.approx(golden["mean_latency_clocks"], rel=LATENCY)
    assert check_commands(dram, run.commands, end_clock=run.clocks) == []
