from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable

import pytest

from ember_hw.bench.fuzzing.campaign import Account, Failure
from ember_hw.bench.fuzzing.configs import CONFIGS
from ember_hw.bench.fuzzing.nests import NestAccount, NestFailure
from ember_hw.bench.registry import Job
from ember_hw.bench.suites import fuzz
from ember_hw.bench.tests.fakes import Silent
from ember_hw.config import AcceleratorConfig


class ACampaign:
    """Runs nothing: every case is legal and long, and the seed 1,000,003 fails."""

    def __init__(self, config: AcceleratorConfig, **options: object) -> None:
        self.account = Account()

    def run(self, seeds: Iterable[int], on_case: Callable[[], None] = lambda: None) -> Account:
        for seed in seeds:
            self.account.cases += 1
            self.account.long_legal += 1
            self.account.kinds["legal"] += 1
            if seed == fuzz.SEEDS_A_JOB + 3:
                self.account.failures.append(Failure(seed, "a row is wrong", (), "unit0: .."))
            on_case()
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


@pytest.fixture(autouse=True)
def campaign(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "Campaign", ACampaign)
    monkeypatch.setattr(fuzz, "run_nests", some_nests)
    monkeypatch.setattr(fuzz, "NEST_SECONDS", 0.01)


def test_every_program_counts() -> None:
    *ends, long, drawn, _, _ = fuzz.run(Job(watcher=Silent()))
    assert [row.workload for row in ends] == [*fuzz.CASES]
    assert sum(row.reference or 0 for row in ends) == 10_000
    assert all(row.ratio == 1 and not row.is_below_bar for row in ends)
    assert long.ratio == 2
    assert drawn.is_below_bar  # nothing but an abort was met, no choice drawn
    assert "EXECUTE_STALLED" in drawn.params["missing"]
    assert "slave error" in drawn.params["missing"]
    assert "ABORTED" not in drawn.params["missing"]
    assert drawn.params["faults"] == {"ABORTED": 2 * len(fuzz.CASES)}


def test_a_failure_misses_the_bar_and_tells_its_seed() -> None:
    ends, _, drawn = fuzz.run(Job(watcher=Silent(), seed=1, only="tiny"))
    assert ends.is_below_bar
    assert ends.value == fuzz.CASES["tiny"] - 1
    assert ends.params["first_seed"] == fuzz.SEEDS_A_JOB
    assert ends.params["failures"] == [
        {"seed": 1_000_003, "reason": "a row is wrong", "before": [], "program": "unit0: .."}
    ]
    assert not drawn.is_below_bar  # of one config, a run need not meet all


def test_quick_runs_a_part() -> None:
    *ends, _, _, nests, _ = fuzz.run(Job(watcher=Silent(), quick=True))
    assert {row.workload: row.value for row in ends} == fuzz.QUICK_CASES
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


def test_nothing_is_wanted() -> None:
    assert list(fuzz.run(Job(watcher=Silent(), only="none"))) == []


def test_replay_tells_what_is_wrong() -> None:
    assert fuzz.replay("tiny", 5) == "nothing is wrong"
    assert fuzz.replay("tiny", fuzz.SEEDS_A_JOB + 3) == "a row is wrong\nunit0: .."


def test_quick_configs_are_configs() -> None:
    assert fuzz.CASES.keys() == CONFIGS.keys() >= fuzz.QUICK_CASES.keys()
