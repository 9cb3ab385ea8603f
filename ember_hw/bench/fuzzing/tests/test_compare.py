"""The judgement: right outcomes pass, and each wrong one is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from ember_hw.bench.fuzzing.case import Case, Environment
from ember_hw.bench.fuzzing.compare import judge
from ember_hw.bench.fuzzing.configs import CONFIGS
from ember_hw.bench.fuzzing.faults import random_case
from ember_hw.bench.fuzzing.generate import legal_case
from ember_hw.bench.fuzzing.outcome import Outcome
from ember_hw.bench.fuzzing.tests.outcomes import right_outcome
from ember_hw.registers import NO_UNIT, Counter, FaultCode, State, counters

CONFIG = CONFIGS["tiny"]


def case_with_rows() -> Case:
    for seed in range(100):
        case = legal_case(CONFIG, seed)
        scalar = case.whole
        if len(scalar.rows) > 5 and len(scalar.lines_read) > 5 and len(case.requests) == 1:
            return case
    raise AssertionError("some case must have rows")


CASE = case_with_rows()


@pytest.mark.parametrize("name", CONFIGS)
def test_right_outcomes_pass(name: str) -> None:
    for seed in range(6):
        case = random_case(CONFIGS[name], seed)
        if not case.environment.is_interrupted:
            assert judge(case, right_outcome(case)) is None


def damage_scalar(outcome: Outcome) -> None:
    events, scalars = outcome.bundles[2]
    outcome.bundles[2] = (events, (scalars[0] ^ 1, *(value ^ 1 for value in scalars[1:])))


def damage_events(outcome: Outcome) -> None:
    outcome.bundles[2] = (outcome.bundles[2][0] ^ 1, outcome.bundles[2][1])


def damage_row(outcome: Outcome) -> None:
    outcome.rows[3] = bytes([outcome.rows[3][0] ^ 1]) + outcome.rows[3][1:]


def lengthen_row(outcome: Outcome) -> None:
    outcome.rows[3] += bytes(CONFIG.bus_bytes)


def read_twice(outcome: Outcome) -> None:
    outcome.reads.append(outcome.reads[0])


def skip_read(outcome: Outcome) -> None:
    outcome.reads.pop()


def lose_bundle(outcome: Outcome) -> None:
    outcome.bundles.pop()


def lose_row(outcome: Outcome) -> None:
    outcome.rows.pop()


def keep_too_much(outcome: Outcome) -> None:
    outcome.row_bytes = 1 + (outcome.row_bytes or 0)


def end_twice(outcome: Outcome) -> None:
    outcome.completed = 2


def come_to_rest_idle(outcome: Outcome) -> None:
    outcome.state = State.IDLE


def fault(outcome: Outcome) -> None:
    outcome.state, outcome.fault = State.FAULTED, (FaultCode.ABORTED, NO_UNIT, 0, 0)


def miscount(outcome: Outcome) -> None:
    outcome.counters = [0] * counters(CONFIG)


@pytest.mark.parametrize(
    ("harm", "text"),
    [
        (damage_events, "bundle 2: events"),
        (damage_row, "row 3 of"),
        (lengthen_row, "row 3: "),
        (read_twice, "words too many from"),
        (skip_read, "missing from"),
        (lose_bundle, " bundles, not "),
        (lose_row, " rows and 0 bytes, not "),
        (keep_too_much, " bytes of rows, not "),
        (end_twice, "2 requests ended, not 1"),
        (come_to_rest_idle, "it came to rest as IDLE"),
        (fault, "it must fault with one of [], not ABORTED of 255, 0 at 0x0"),
        (miscount, "counter BUNDLES is 0, not "),
    ],
)
def test_a_wrong_outcome_is_named(harm: Callable[[Outcome], None], text: str) -> None:
    outcome = right_outcome(CASE)
    harm(outcome)
    found = judge(CASE, outcome)
    assert found is not None
    assert text in found


def test_a_defined_scalar_is_compared() -> None:
    reasons: list[str | None] = []
    for seed in range(20):
        case = legal_case(CONFIG, seed)
        outcome = right_outcome(case)
        if len(outcome.bundles) > 2:
            damage_scalar(outcome)
            reasons.append(judge(case, outcome))
    assert any(reason and "bundle 2: scalar" in reason for reason in reasons)


def test_a_fault_must_be_reported() -> None:
    outcome = right_outcome(CASE)
    spoiled = replace(CASE, microcode=CASE.microcode.with_field("unit0", "step", 0))
    found = judge(spoiled, outcome)
    assert found is not None
    assert found.startswith("it ended, but must fault: ")


def test_reads_stay_in_regions_after_a_fault() -> None:
    spoiled = replace(CASE, microcode=CASE.microcode.with_field("unit0", "step", 0))
    outcome = right_outcome(spoiled)
    assert judge(spoiled, outcome) is None
    outcome.reads = [(0, 64)]
    assert judge(spoiled, outcome) == "read of 64 bytes at 0x0 outside every region"


def test_an_abort_or_a_stall_is_right_where_one_may_come() -> None:
    stall = Outcome(state=State.FAULTED, fault=(FaultCode.EXECUTE_STALLED, NO_UNIT, 0, 0))
    abort = Outcome(state=State.FAULTED, fault=(FaultCode.ABORTED, NO_UNIT, 0, 0))
    may_stall = replace(CASE, environment=Environment(may_stall=True))
    aborted = replace(CASE, environment=Environment(abort_after_polls=3))
    assert judge(may_stall, stall) is None
    assert judge(aborted, abort) is None
    assert judge(CASE, stall) is not None
    assert judge(aborted, stall) is not None


def test_counters_are_compared_where_read() -> None:
    outcome = right_outcome(CASE)
    outcome.counters = [0] * counters(CONFIG)
    outcome.counters[Counter.BUNDLES] = len(CASE.whole.bundles)
    found = judge(CASE, outcome)
    assert found is not None
    assert found.startswith("counter ROWS is 0, not ")
