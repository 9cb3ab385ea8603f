from __future__ import annotations

from cocotb_tests.configs import CONFIGS
from cocotb_tests.coverage.functional import Functional
from cocotb_tests.coverage.programs import case_table, op_classes, random_programs
from ember_hw.bench.fuzzing.hardware import Outcome
from ember_hw.registers import FaultCode

_TINY = CONFIGS["tiny"]


def test_programs_of_the_case_table_are_those_of_each_opt_level() -> None:
    names = {name for name, _ in case_table(_TINY)}
    assert {f"empty_first/O{level}" for level in range(4)} <= names


def test_programs_of_op_classes_fit_the_config() -> None:
    cases = dict(op_classes(_TINY))
    assert {"embedding_bag", "embedding_bag_queue", "gather"} <= cases.keys()
    assert "tables_of_shapes" not in cases
    assert cases["embedding_bag_queue"].lines
    assert len(cases["embedding_bag_requests"].requests) == 6


def test_random_programs_are_as_many_as_asked_for() -> None:
    assert [name for name, _ in random_programs(_TINY, 2)] == ["seed 0", "seed 1"]


def test_what_programs_use_is_no_longer_missing() -> None:
    functional = Functional(_TINY)
    total = functional.total()
    assert len(list(functional.missing())) == total
    case = dict(case_table(_TINY))["empty_first/O3"]
    outcome = Outcome(fault=(int(FaultCode.ABORTED), 0, 0, 0), bundles=[(1 << 8, ())])
    functional.note(case, outcome)
    missing = set(functional.missing())
    assert "fault ABORTED" not in missing
    assert "event bit 8 in a bundle" not in missing
    assert "event bit 0 in a bundle" in missing
    assert len(missing) < total - 2
