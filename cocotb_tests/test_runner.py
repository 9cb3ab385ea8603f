"""How a failing simulation is reported: never as a success, always with the reason."""

from __future__ import annotations

import re

import pytest

from cocotb_tests import runner
from cocotb_tests.configs import CONFIGS
from cocotb_tests.runner import Outcome, SimulationFailed, names_of, simulate

pytestmark = [pytest.mark.cocotb, pytest.mark.slow]

TINY = CONFIGS["tiny"]


@pytest.fixture(scope="module")
def failing() -> Outcome:
    names = [name for name in names_of("tb_failing") if name != "test_that_ends_the_simulation"]
    return simulate("tb_failing", TINY, names)


def test_test_that_passes_is_no_failure(failing: Outcome) -> None:
    failing.check("test_that_passes")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("test_that_asserts", "an interrupt before any program"),
        ("test_that_hangs", "SimTimeoutError"),
        ("test_whose_monitor_objects", "the bench must answer reads only, not ID 0"),
    ],
)
def test_failure_is_raised_with_its_reason(failing: Outcome, name: str, reason: str) -> None:
    with pytest.raises(SimulationFailed, match=f"(?s)^{name}: .*{reason}.*the whole log: ") as e:
        failing.check(name)
    assert "tb_failing.py" in str(e.value) or name != "test_that_asserts"


def test_test_that_did_not_run_is_a_failure() -> None:
    name = "test_that_ends_the_simulation"
    outcome = simulate("tb_failing", TINY, [name])
    message = f"{name} must have run, but the simulation ended before it; the end of {outcome.log}:"
    with pytest.raises(SimulationFailed, match=f"^{re.escape(message)}"):
        outcome.check(name)


def test_verilog_that_does_not_compile_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "cached_verilog", lambda config: "module access_unit (input clk)\n")
    with pytest.raises(SimulationFailed, match=r"(?s)^the model must compile: .*syntax error"):
        runner.build(TINY)


def test_tests_of_a_bench_are_named_by_their_parameters() -> None:
    assert "test_abort/cycles=20" in names_of("tb_faults")
    assert "test_lookup/case=empty_first" in names_of("tb_access_unit")
