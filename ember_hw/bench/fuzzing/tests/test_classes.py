"""Random calls of every op class at every level; `ember-hw bench fuzz --only classes` has more."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest

from ember_hw.bench.fuzzing import classes
from ember_hw.bench.fuzzing.classes import (
    KINDS,
    MODELS,
    REAL_DATA,
    ClassAccount,
    Draw,
    Real,
    attempt,
    attempt_real,
    draws,
    parts,
    real_case,
    run_part,
)
from ember_hw.bench.fuzzing.every_level import INTERPRETERS, Comparison, EveryLevel
from ember_hw.bench.workloads import triples
from ember_hw.demo import movielens

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
    found = attempt_real(Real("karate club", model, 0), levels)
    assert found.failures == []
    # The whole graph at the end of each level, a part of it after each pass.
    assert found.answers["slc"] == found.answers["dlc"] == 4
    assert found.answers["slcvec"] == 3
    assert found.answers["microcode"] == 8


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


def test_parts_are_all_calls() -> None:
    drawn = list(parts(3, 7, real=False))
    assert drawn == [draw for kind in KINDS for draw in draws(kind, 7, 3)]
    real = [(data, model) for data, models in REAL_DATA.items() for model in models]
    every = list(parts(3, 7, real=True))
    assert every == [*(Real(*pair, 3) for pair in real), *drawn]
    assert {MODELS[model].kind for _, model in real} == {*KINDS} - {"block_attention"}


def test_a_part_counts_for_its_class_or_data_set(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []

    def agrees(part: object, levels: EveryLevel) -> Comparison:
        told.append((part, set(levels.devices)))
        return Comparison()

    monkeypatch.setattr(classes, "attempt", agrees)
    monkeypatch.setattr(classes, "attempt_real", agrees)
    draw, real = Draw("spmm", 3, 0, 4), Real("UMLS", "distmult", 1)
    accounts = [run_part(part, rtl=False) for part in (draw, real)]
    assert [(a.name, a.calls, a.agreeing) for a in accounts] == [("spmm", 4, 4), ("UMLS", 1, 1)]
    assert told == [(part, set(INTERPRETERS)) for part in (draw, real)]
    accounts[0].add(accounts[1])
    assert (accounts[0].calls, accounts[0].agreeing) == (5, 5)


@pytest.mark.parametrize("model", ["spmm", "index_add"])
def test_all_edges_of_a_graph_are_given(model: str) -> None:
    case = real_case("les miserables", model)
    whole, part = (case.inputs(np.random.default_rng(0), most) for most in (1000, 100))
    assert (case.rows, len(whole[1]), len(part[1])) == (77, 508, 100)


def test_all_triples_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    known = triples.parse_triples("b\tis\ta\nc\thas\tb\n")
    monkeypatch.setattr(triples, "load", {"UMLS": known}.__getitem__)
    case = real_case("UMLS", "transe_1")
    assert (case.rows, case.relations) == (3, 2)
    whole, part = (case.inputs(np.random.default_rng(0), most) for most in (1000, 1))
    assert [column.tolist() for column in whole] == [[1, 2], [1, 0], [0, 1]]
    assert [column.tolist() for column in part] == [[1], [1], [0]]


@pytest.mark.parametrize(
    ("model", "shapes", "part_shapes"),
    [
        ("bag_sum", [(30,), (4,)], [(15,), (2,)]),
        ("bag_weighted", [(30,), (4,), (30,)], [(15,), (2,), (15,)]),
        ("embedding", [(10, 3)], [(10, 2)]),
    ],
)
def test_all_histories_are_given(
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    shapes: list[tuple[int, ...]],
    part_shapes: list[tuple[int, ...]],
) -> None:
    histories = movielens.Bags(np.arange(30), np.array([0, 10, 15, 25]))
    monkeypatch.setattr(movielens, "load", lambda: histories)
    case = real_case("MovieLens-100K", model)
    for most, expected in ((1000, shapes), (20, part_shapes)):
        given = case.inputs(np.random.default_rng(0), most)
        assert [array.shape for array in given] == expected
