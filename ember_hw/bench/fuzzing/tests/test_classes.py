"""Random calls of every op class at every level; `ember-hw bench fuzz --only classes` has more."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from ember_hw.bench.fuzzing import classes
from ember_hw.bench.fuzzing.classes import (
    KINDS,
    MODELS,
    ClassAccount,
    Draw,
    RealCase,
    attempt,
    attempt_real,
    draws,
    run_classes,
)
from ember_hw.bench.fuzzing.every_level import Comparison, EveryLevel
from ember_hw.bench.workloads import graphs

#: Random calls of each class here.
CALLS = {
    "embedding_bag": 6,
    "embedding": 4,
    "spmm": 5,
    "aggregation": 4,
    "fusedmm": 4,
    "block_attention": 1,
    "scores": 5,
}
DRAWN = [draw for kind in KINDS for draw in draws(kind, CALLS[kind], 0)]


@pytest.fixture(scope="module")
def levels() -> Iterator[EveryLevel]:
    with EveryLevel(rtl=False) as opened:
        yield opened


@pytest.fixture(scope="module")
def levels_and_unit() -> Iterator[EveryLevel]:
    with EveryLevel(rtl=True) as opened:
        yield opened


def test_every_class_is_drawn() -> None:
    assert CALLS.keys() == set(KINDS)


@pytest.mark.parametrize(
    "draw", [d for kind in KINDS for d in draws(kind, CALLS[kind], 0)], ids=str
)
def test_every_level_gives_the_same_bits(levels: EveryLevel, draw: Draw) -> None:
    found = attempt(draw, levels)
    assert found.failures == []
    assert not found.refused
    assert found.answers["interpreter with C"] == 4 * draw.calls


@pytest.mark.verilator
@pytest.mark.timeout(900)  # builds the model
@pytest.mark.parametrize(
    "model",
    ["bag_max_padding", "embedding", "spmm", "fused_sigmoid", "block_attention", "transe_1",
     "complex"],
)  # fmt: skip
def test_simulated_unit_gives_the_same_bits(levels_and_unit: EveryLevel, model: str) -> None:
    found = attempt(Draw(model, 3, 6, 2), levels_and_unit)
    assert found.failures == []
    assert found.answers["verilator"] == 8


@pytest.mark.parametrize("model", ["spmm", "scatter_amax", "fused_sigmoid"])
def test_graph_of_networkx_gives_the_same_bits(levels: EveryLevel, model: str) -> None:
    cases = classes.graph_cases("karate club", graphs.GRAPHS["karate club"](0, 0))
    (case,) = (case for case in cases if case.model == model)
    assert attempt_real(case, levels, 0).failures == []


@pytest.mark.parametrize("kind", KINDS)
def test_draws_have_every_model_and_are_the_same_again(kind: str) -> None:
    drawn = list(draws(kind, 100, 3))
    assert sum(draw.calls for draw in drawn) == 100
    assert {draw.model for draw in drawn} == {n for n, c in MODELS.items() if c.kind == kind}
    assert drawn == list(draws(kind, 100, 3))
    assert drawn != list(draws(kind, 100, 4))


def test_an_account_counts_errors_and_failures() -> None:
    account = ClassAccount("spmm")
    account.count("one", 5, partial(Comparison, refused=Tally({"why": 1})))
    account.count("two", 3, partial(Comparison, failures=["call 0: wrong"]))
    account.count("three", 2, partial(Comparison, nothing=1))  # pyright: ignore[reportCallIssue]
    assert (account.calls, account.agreeing) == (10, 5)
    assert account.comparison.failures == [
        "two: call 0: wrong",
        "three: TypeError: Comparison.__init__() got an unexpected keyword argument 'nothing'",
    ]
    assert account.comparison.refused == {"why": 1}


def test_classes_and_data_sets_have_an_account_each(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing: Any = None

    def agrees(*arguments: object) -> Comparison:
        return Comparison()

    monkeypatch.setattr(classes, "attempt", agrees)
    monkeypatch.setattr(classes, "attempt_real", agrees)
    real = [RealCase(data, "spmm", 3, 1, lambda random, most: ()) for data in ("a", "a", "b")]
    told: list[str] = []
    accounts = list(
        run_classes(
            nothing, seed=0, calls=7, real=real, on_call=lambda account: told.append(account.name)
        )
    )
    assert {a.name: a.calls for a in accounts} == {**dict.fromkeys(KINDS, 7), "a": 2, "b": 1}
    assert all(account.agreeing == account.calls for account in accounts)
    assert {*told} == {*KINDS, "a", "b"}
