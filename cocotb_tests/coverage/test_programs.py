from __future__ import annotations

from itertools import islice

from cocotb_tests.configs import CONFIGS
from cocotb_tests.coverage.directed import directed
from cocotb_tests.coverage.functional import Functional
from cocotb_tests.coverage.programs import case_table, op_classes, random_programs
from ember_hw.bench.fuzzing.outcome import Outcome
from ember_hw.registers import NO_UNIT, FaultCode

_TINY = CONFIGS["tiny"]


def test_programs_of_the_case_table_are_those_of_each_opt_level() -> None:
    names = [name for name, _ in islice(case_table(_TINY), 8)]
    first, second = (name.split("/")[0] for name in names[::4])
    assert first != second
    assert names == [f"{lookup}/O{level}" for lookup in (first, second) for level in range(4)]


def test_programs_of_op_classes_fit_the_config() -> None:
    cases = dict(op_classes(_TINY))
    assert {"embedding_bag", "embedding_bag_queue", "gather"} <= cases.keys()
    assert "tables_of_shapes" not in cases
    assert cases["embedding_bag_queue"].lines
    assert len(cases["embedding_bag_requests"].requests) == 6


def test_directed_programs_fault_where_they_are_to() -> None:
    cases = dict(directed(_TINY))
    assert not cases["nest 0"].whole.faults
    (wide,) = cases["nest 0, unit 2, stream 1, wide"].whole.faults[:1]
    assert (wide.code, wide.unit, wide.stream) == (FaultCode.VALUE_TOO_WIDE, 2, 1)
    (late,) = cases["nest 0, unit 0, stream 0, SLVERR"].whole.faults[:1]
    assert (late.code, late.unit, late.stream) == (FaultCode.READ_SLAVE_ERROR, 0, 0)
    (row,) = cases["nest 0, row SLVERR"].whole.faults[:1]
    assert (row.code, row.unit) == (FaultCode.READ_SLAVE_ERROR, NO_UNIT)
    lengths = {len(row) for row in cases["rows of all lengths"].whole.rows}
    assert lengths == {65535, 43690, 21845, 1}


def test_random_programs_are_as_many_as_asked_for() -> None:
    assert [name for name, _ in random_programs(_TINY, 2)] == ["seed 0", "seed 1"]


def test_what_programs_use_is_no_longer_missing() -> None:
    functional = Functional(_TINY)
    total = functional.total()
    assert len(list(functional.missing())) == total
    _, case = next(case_table(_TINY))
    outcome = Outcome(fault=(int(FaultCode.ABORTED), 0, 0, 0), bundles=[(1 << 8, ())])
    functional.note(case, outcome)
    missing = set(functional.missing())
    assert "fault ABORTED" not in missing
    assert "event bit 8 in a bundle" not in missing
    assert "event bit 0 in a bundle" in missing
    assert len(missing) < total - 2
