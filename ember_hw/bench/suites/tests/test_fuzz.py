from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator

import pytest

from ember_hw.bench.fuzzing import fabric
from ember_hw.bench.fuzzing.campaign import Account, Failure
from ember_hw.bench.fuzzing.classes import ClassAccount, Draw, Real
from ember_hw.bench.fuzzing.configs import CLUSTERS, CONFIGS
from ember_hw.bench.fuzzing.fabric import Pooled
from ember_hw.bench.fuzzing.nests import NestAccount, NestFailure
from ember_hw.bench.registry import Job
from ember_hw.bench.suites import fuzz
from ember_hw.bench.tests.fakes import Silent
from ember_hw.config import AcceleratorConfig


class ACampaign:
    """Runs nothing: every case is legal and long, and the seed 1,000,003 fails."""

    def __init__(self, config: AcceleratorConfig, *, units: int, optimise: bool) -> None:
        self.account = Account()
        self.units = units

    def run(self, seeds: Iterable[int]) -> Account:
        for seed in seeds:
            self.account.cases += self.units
            self.account.long_legal += self.units
            self.account.cycles += 10
            self.account.kinds["legal"] += self.units
            if seed == fuzz.SEEDS_A_JOB + 3:
                self.account.failures.append(Failure(seed, "a row is wrong", (), "unit0: .."))
        self.account.faults = Tally({"ABORTED": 2})
        return self.account

    def close(self) -> None:
        pass


def some_nests(
    seeds: Iterable[int], on_nest: Callable[[NestAccount], None] = lambda account: None
) -> NestAccount:
    """Compile nothing: of ten nests one is wrong and one is refused."""
    account = NestAccount()
    for seed in seeds:
        account.nests += 1
        account.compiled += seed % 10 > 1
        if seed % 10 == 0:
            account.failures.append(NestFailure(seed, seed % 4, "out is wrong"))
        elif seed % 10 == 1:
            account.refused["a reason"] += 1
        on_nest(account)
    return account


def some_parts(seed: int, calls: int, *, real: bool) -> Iterator[Draw | Real]:
    yield from [Real("UMLS", "distmult", seed)] if real else []
    yield Draw("spmm", 1, seed, 2)
    yield Draw("spmm", 1, seed + 1, calls - 2)


def no_pooled(seed: int, calls: int, *, real: bool, results: str = "stream") -> Iterator[Pooled]:
    yield Pooled("spmm", "float32", 3, seed, calls, results=results)


def no_pooled_part(part: Pooled, *, rtl: bool) -> ClassAccount:
    return ClassAccount(fabric.name_of(part), part.calls, part.calls - rtl)


def some_part(part: Draw | Real, *, rtl: bool) -> ClassAccount:
    """Compare nothing: one of the first calls of SpMM is wrong, those on real data agree."""
    if isinstance(part, Real):
        return ClassAccount(part.data, 1, 1)
    wrong = part.calls == 2
    account = ClassAccount("spmm", part.calls, part.calls - wrong)
    if wrong:
        account.comparison.failures.append(f"seed {part.seed}, with a unit: {rtl}")
    return account


@pytest.fixture(autouse=True)
def campaign(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "Campaign", ACampaign)
    monkeypatch.setattr(fuzz, "PROCESSES", 1)
    monkeypatch.setattr(fuzz, "run_nests", some_nests)
    monkeypatch.setattr(fuzz, "NEST_SECONDS", 0.01)
    monkeypatch.setattr(fuzz.classes, "parts", some_parts)
    monkeypatch.setattr(fuzz.classes, "run_part", some_part)
    monkeypatch.setattr(fuzz.fabric, "parts", no_pooled)
    monkeypatch.setattr(fuzz.fabric, "run_part", no_pooled_part)


def test_every_program_counts() -> None:
    *ends, long, drawn, _, _, _, _, _, _ = fuzz.run(Job(watcher=Silent()))
    assert [row.workload for row in ends] == [*fuzz.DRAWS]
    assert sum(row.reference or 0 for row in ends) == 10_000
    assert all(row.ratio == 1 and not row.is_below_bar for row in ends)
    assert long.ratio == 2
    assert drawn.is_below_bar  # nothing but an abort was met, no choice drawn
    assert "EXECUTE_STALLED" in drawn.params["missing"]
    assert "slave error" in drawn.params["missing"]
    assert "ABORTED" not in drawn.params["missing"]
    parts = sum(-(-draws // fuzz.DRAWS_A_PART) for draws in fuzz.DRAWS.values())
    assert drawn.params["faults"] == {"ABORTED": 2 * parts}
    assert ends[0].params["cycles"] == 10 * fuzz.DRAWS["tiny"]


def test_a_failure_misses_the_bar_and_tells_its_seed() -> None:
    ends, _, drawn = fuzz.run(Job(watcher=Silent(), seed=1, only="tiny"))
    assert ends.is_below_bar
    assert ends.value == fuzz.DRAWS["tiny"] - 1
    assert ends.params["first_seed"] == fuzz.SEEDS_A_JOB
    assert ends.params["failures"] == [
        {"seed": 1_000_003, "reason": "a row is wrong", "before": [], "program": "unit0: .."}
    ]
    assert not drawn.is_below_bar  # of one config, a run need not meet all


def test_quick_runs_a_part() -> None:
    *ends, _, _, nests, _, _, _, _ = fuzz.run(Job(watcher=Silent(), quick=True))
    programs = {name: draws * fuzz.TARGETS[name][1] for name, draws in fuzz.QUICK_DRAWS.items()}
    assert {row.workload: row.value for row in ends} == programs
    assert max(fuzz.TARGETS[row.workload][1] for row in ends) > 1
    assert nests.reference == fuzz.QUICK_NESTS


def test_nests_that_are_wrong_or_refused_too_often_miss_the_bar() -> None:
    agree, compiled = fuzz.run(Job(watcher=Silent(), seed=1, quick=True, only=fuzz.NESTS))
    assert agree.is_below_bar
    assert agree.value == 0.9 * fuzz.QUICK_NESTS
    assert agree.params["refused"] == {"a reason": fuzz.QUICK_NESTS // 10}
    assert agree.params["failures"][0] == {
        "seed": 1_000_000, "opt_level": 0, "reason": "out is wrong",
    }  # fmt: skip
    assert not compiled.is_below_bar
    assert compiled.ratio == 1


def test_nests_run_until_their_time_is_over() -> None:
    agree, _ = fuzz.run(Job(watcher=Silent(), only=fuzz.NESTS))
    assert agree.params["first_seed"] == 0
    assert (agree.reference or 0) > 10


def test_classes_have_a_row_each() -> None:
    real, wrong = fuzz.run(Job(watcher=Silent(), seed=2, only=fuzz.CLASSES))
    assert wrong.metric == "calls of spmm with the same bits everywhere"
    assert (wrong.value, wrong.reference) == (fuzz.CLASS_CALLS - 1, fuzz.CLASS_CALLS)
    assert wrong.is_below_bar
    assert wrong.params["failures"] == ["seed 2, with a unit: True"]
    assert real.metric == "calls of UMLS with the same bits everywhere"
    assert real.ratio == 1


def test_quick_classes_need_neither_a_unit_nor_data() -> None:
    (row,) = fuzz.run(Job(watcher=Silent(), quick=True, only=fuzz.CLASSES))
    assert row.reference == fuzz.QUICK_CLASS_CALLS
    assert row.params["failures"] == ["seed 0, with a unit: False"]


def test_calls_in_the_fabric_have_a_row_of_each_dtype() -> None:
    for workload in (fuzz.FABRIC, fuzz.TO_MEMORY):
        (row,) = fuzz.run(Job(watcher=Silent(), only=workload))
        assert row.workload == workload
        assert row.metric == "calls of spmm, float32 with the same bits everywhere"
        assert (row.value, row.reference) == (fuzz.CLASS_CALLS - 1, fuzz.CLASS_CALLS)
        assert row.is_below_bar


def test_nothing_is_wanted() -> None:
    assert list(fuzz.run(Job(watcher=Silent(), only="none"))) == []


def test_replay_tells_what_is_wrong() -> None:
    assert fuzz.replay("tiny", 5) == "nothing is wrong"
    assert fuzz.replay("tiny", fuzz.SEEDS_A_JOB + 3) == "a row is wrong\nunit0: .."


def test_quick_targets_are_targets() -> None:
    assert fuzz.DRAWS.keys() == fuzz.TARGETS.keys() >= fuzz.QUICK_DRAWS.keys()
    assert fuzz.TARGETS.keys() == {*CONFIGS, *CLUSTERS}


@pytest.mark.verilator
@pytest.mark.timeout(900)  # may build the model
def test_no_part_runs_twice_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """In processes of their own, in which nothing is replaced: two parts of a few draws."""
    monkeypatch.setattr(fuzz, "PROCESSES", 2)
    parts = [fuzz.Part("tiny", 0, 2), fuzz.Part("tiny", 2, 3)]
    accounts = dict(fuzz._accounts(parts, Job(watcher=Silent())))
    assert {part: account.cases for part, account in accounts.items()} == {
        part: part.draws for part in parts
    }


def test_what_fails_in_a_process_ends_the_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "PROCESSES", 2)
    with pytest.raises(KeyError, match="nowhere"):
        list(fuzz._accounts([fuzz.Part("nowhere", 0, 1)], Job(watcher=Silent())))
