"""Cases on simulated units: what one unit meets does not reach the others, and hangs are named."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from ember_hw.bench.fuzzing import hardware as module
from ember_hw.bench.fuzzing.campaign import Campaign
from ember_hw.bench.fuzzing.case import Case
from ember_hw.bench.fuzzing.compare import judge
from ember_hw.bench.fuzzing.configs import CLUSTERS
from ember_hw.bench.fuzzing.draw import random_draw
from ember_hw.bench.fuzzing.hardware import HangError, Hardware
from ember_hw.registers import NO_UNIT, FaultCode, State
from ember_hw.sim.model import Access, AccessKind

pytestmark = [pytest.mark.verilator, pytest.mark.timeout(900)]  # may build the model

CONFIG, UNITS = CLUSTERS["pair"]


@pytest.fixture(scope="module")
def hardware() -> Iterator[Hardware]:
    opened = Hardware(CONFIG, units=UNITS, optimise=False)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def cases() -> tuple[Case, ...]:
    """Return legal programs of several requests for both units."""
    for seed in range(200):
        draw = random_draw(CONFIG, seed, units=UNITS)
        if all(c.kind == "legal" and len(c.requests) > 2 and not c.lines for c in draw):
            return draw
    raise AssertionError("some draw must have several requests for each unit")


@pytest.mark.parametrize("faulty", range(UNITS))
def test_starts_that_a_unit_refuses_keep_no_other_from_its_own(
    hardware: Hardware, cases: tuple[Case, ...], faulty: int
) -> None:
    """The program may not start, so that the second start of its series is refused at once."""
    bad = cases[faulty].microcode.with_field("header", "version", 1)
    draw = tuple(
        replace(case, microcode=bad) if unit == faulty else case for unit, case in enumerate(cases)
    )
    for _ in range(2):
        outcomes = hardware.run_all(draw)
        assert outcomes[faulty].state is State.FAULTED
        assert outcomes[faulty].fault == (FaultCode.BAD_VERSION, NO_UNIT, 0, 0)
        assert outcomes[faulty].completed == 0
        assert outcomes[faulty].reads == []
        assert outcomes[1 - faulty].state is State.DONE
        for unit, outcome in outcomes.items():
            assert judge(draw[unit], outcome) is None


def test_a_unit_may_stay_at_rest(hardware: Hardware, cases: tuple[Case, ...]) -> None:
    outcomes = hardware.run_all((None, cases[1]), with_counters=True)
    assert outcomes.keys() == {1}
    assert judge(cases[1], outcomes[1]) is None
    assert outcomes[1].row_bytes is None


def test_an_outcome_of_one_unit_is_not_another_s(
    hardware: Hardware, cases: tuple[Case, ...]
) -> None:
    outcomes = hardware.run_all(cases)
    assert judge(cases[0], outcomes[1]) is not None
    assert judge(cases[0], replace(outcomes[0], reads=outcomes[1].reads)) is not None


def test_an_access_that_is_refused_is_named(
    hardware: Hardware, cases: tuple[Case, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    hole = Access(kind=AccessKind.WRITE, address=0x17FC, value=0)
    monkeypatch.setattr(hardware, "_accesses", lambda unit, case: [hole])
    with pytest.raises(HangError, match=r"^unit 1 refuses a write to 0x17fc$"):
        hardware.run_all((None, cases[1]))


def test_a_unit_that_does_not_come_to_rest_is_named(
    hardware: Hardware, cases: tuple[Case, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_CYCLES", 30)
    text = "config pair: CYCLE_LIMIT after 30 cycles in state RUNNING"
    with pytest.raises(HangError, match=f"^{re.escape(text)}$"):
        hardware.run_all((cases[0], None))
    hardware.restart()
    monkeypatch.setattr(module, "_MOST_POLLS", 3)
    monkeypatch.setattr(module, "read_state", lambda read, *, unit: State.DRAINING)
    with pytest.raises(HangError, match=r"^config pair: never at rest$"):
        hardware.run_all(cases)


def test_a_failure_in_a_cluster_is_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unit 1 is said to be wrong wherever it has a unit in pair mode; the other is left out."""
    campaign = Campaign(CONFIG, units=UNITS, optimise=False)
    seed = next(
        seed
        for seed in range(100)
        if random_draw(CONFIG, seed, units=UNITS)[1].microcode.get("unit0", "pair")
    )
    monkeypatch.setattr(
        "ember_hw.bench.fuzzing.campaign.judge",
        lambda case, outcome: "wrong" if case.microcode.get("unit0", "pair") else None,
    )
    monkeypatch.setattr("ember_hw.bench.fuzzing.campaign.judge_interpreter", lambda case: None)
    (failure,) = campaign.run([seed]).failures
    campaign.close()
    assert failure.seed == seed
    assert "unit 1: wrong" in failure.reason
    assert failure.before == ()
    assert failure.program.count("config pair") == 1
    assert "pair=1" in failure.program
