from __future__ import annotations

import pytest

from ember_hw.bench.workloads.cases import cases, small_cases, unit_of


def test_cases_are_those_of_every_op_class() -> None:
    names = list(cases(quick=False))
    small = list(small_cases(quick=False))
    assert small[: len(names)] == names
    assert len(small[len(names) :]) == 8  # scores and values of attention
    families = [name.partition("/")[0] for name in names]
    assert {family: families.count(family) for family in families} == {
        "RM1": 3,
        "RM2": 3,
        "RM3": 3,
        "dlrmv2": 1,
        "MP": 4,
        "SpMM": 4,
        "KG": 2,
        "SpAttn": 4,
    }


def test_quick_cases_are_one_of_each_op_class() -> None:
    for makers in (cases(quick=True), small_cases(quick=True)):
        made = {name: make(0) for name, make in makers.items()}
        assert [case.name for case in made.values()] == list(made)
        families = [case.family for case in made.values()]
        assert families == ["DLRM", "MP", "SpMM", "KG", "SpAttn"]
        assert all(case.params["lookups"] == case.sizes.lookups for case in made.values())


@pytest.mark.parametrize("width_bits", [512, 128])
def test_unit_holds_the_hand_written_program_of_every_case(width_bits: int) -> None:
    config = unit_of(width_bits)
    for make in small_cases(quick=True).values():
        task = make(0).task
        assert task is not None
        assert task.config(config) == config
