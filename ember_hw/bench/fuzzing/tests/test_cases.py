"""Cases: reproducible, as legal as they say, and of every kind."""

from __future__ import annotations

import pytest

from ember_hw.bench.fuzzing.campaign import LONG_TOKENS
from ember_hw.bench.fuzzing.case import Case
from ember_hw.bench.fuzzing.compare import judge_interpreter
from ember_hw.bench.fuzzing.configs import CONFIGS
from ember_hw.bench.fuzzing.coverage import Coverage
from ember_hw.bench.fuzzing.faults import KINDS, random_case
from ember_hw.bench.fuzzing.generate import legal_case
from ember_hw.bench.fuzzing.values import ANY, Known, alignment, computed
from ember_hw.config import LINE_BYTES
from ember_hw.isa import AluOperation
from ember_hw.registers import REDUCE_FAULTS, FaultCode

#: The small configs are quick: most cases are theirs.
SEEDS = {"tiny": 120, "one": 120, "odd": 6, "ports": 6, "eight": 6, "wide": 6}


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return [
        random_case(CONFIGS[name], seed)
        for name, seeds in SEEDS.items()
        for seed in range(100, 100 + seeds)
    ]


@pytest.mark.parametrize("name", CONFIGS)
def test_a_seed_gives_one_case(name: str) -> None:
    first, second = (random_case(CONFIGS[name], 7) for _ in range(2))
    assert first.describe() == second.describe()
    assert [content.tobytes() for _, content in first.regions] == [
        content.tobytes() for _, content in second.regions
    ]
    assert first.describe() != random_case(CONFIGS[name], 8).describe()


@pytest.mark.parametrize("name", CONFIGS)
def test_legal_cases_are_legal_and_long(name: str) -> None:
    for seed in range(100, 106):
        whole = legal_case(CONFIGS[name], seed).whole  # a value that is not defined would raise
        assert whole.faults == []
        assert whole.leaf_tokens >= LONG_TOKENS
        assert len(whole.bundles) >= 1


def test_more_than_half_are_legal_and_all_kinds_are_drawn(cases: list[Case]) -> None:
    kinds = [case.kind for case in cases]
    assert kinds.count("legal") > len(kinds) / 2
    assert set(kinds) == set(KINDS)


def test_every_deterministic_fault_is_met(cases: list[Case]) -> None:
    met: set[FaultCode] = set()
    for case in cases:
        met |= {fault.code for fault in case.whole.faults}
    by_time = {FaultCode.NONE, FaultCode.ABORTED, FaultCode.EXECUTE_STALLED}
    assert met == set(FaultCode) - by_time - REDUCE_FAULTS


def test_regions_are_whole_lines_apart(cases: list[Case]) -> None:
    for case in cases:
        for base, content in case.regions:
            assert base % LINE_BYTES == len(content) % LINE_BYTES == 0
            assert base + len(content) <= 1 << case.config.address_width_bits


def test_the_interpreters_agree(cases: list[Case]) -> None:
    for case in cases:
        assert judge_interpreter(case) is None, case.describe()


def test_every_choice_of_the_microcode_is_drawn() -> None:
    config, coverage = CONFIGS["tiny"], Coverage()
    total = coverage.total(config)
    assert len(list(coverage.missing(config))) == total > 100
    for seed in range(60):
        coverage.note(legal_case(config, seed, is_long=False).microcode)
    assert list(coverage.missing(config)) == []


@pytest.mark.parametrize("operation", AluOperation)
def test_what_is_known_of_a_result_holds(operation: AluOperation) -> None:
    def apply(a: int, b: int) -> int:
        return {
            AluOperation.ADD: a + b,
            AluOperation.SUB: a - b,
            AluOperation.RSUB: b - a,
            AluOperation.MUL: a * b,
        }[operation]

    known = computed(operation, Known(-3, 5), Known(-4, 2))
    results = [apply(a, b) for a in range(-3, 6) for b in range(-4, 3)]
    assert (known.low, known.high) == (min(results), max(results))
    assert computed(operation, ANY, Known(2, 2)) == ANY
    aligned = computed(operation, Known(4, 12, align=4), Known(2, 6, align=2))
    assert apply(8, 6) % aligned.align == 0


def test_alignment() -> None:
    assert [alignment(value) for value in (0, 1, 6, -8, 1 << 20)] == [4096, 1, 2, 8, 4096]
