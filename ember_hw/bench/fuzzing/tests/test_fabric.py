# pyright: basic
"""Random calls in the fabric; `ember-hw bench fuzz --only fabric` has more, and real data sets."""

from __future__ import annotations

from collections import Counter as Tally
from dataclasses import replace

import pytest

from ember_hw.bench.fuzzing import every_level, fabric, query_key
from ember_hw.bench.fuzzing.fabric import DTYPES, Fabric, Pooled, attempt, parts, run_part

#: A call of each class and dtype.
DRAWN = list(parts(0, 1, real=False))


@pytest.fixture(scope="module")
def on_interpreter():
    with Fabric(rtl=False) as opened:
        yield opened


def test_every_class_and_dtype_is_drawn_as_often_as_said():
    wanted = {f"{kind}, {dtype}": 30 for kind, dtypes in DTYPES.items() for dtype in dtypes}
    wanted |= {f"query_key, {dtype}": 30 for dtype in query_key.DTYPES}
    drawn = Tally()
    for part in parts(5, 30, real=False):
        drawn[fabric.name_of(part)] += part.calls
    assert drawn == wanted


def test_real_data_comes_in_every_dtype_of_its_classes():
    real = [part for part in parts(0, 0, real=True) if part.data]
    assert {part.dtype for part in real if part.data == "MovieLens-100K"} == {
        "float32", "float16", "bfloat16", "int8"
    }  # fmt: skip
    assert {part.data for part in real} >= {"MovieLens-100K", "karate club"}


@pytest.mark.parametrize("part", DRAWN, ids=str)
def test_a_call_in_the_fabric_is_exact(on_interpreter, part):
    found = attempt(part, on_interpreter)
    assert found.failures == []
    assert found.answers["interpreter"] == 2 * part.calls


@pytest.mark.parametrize("part", DRAWN[::3], ids=str)
def test_results_in_memory_are_the_same(part):
    account = run_part(replace(part, results="memory"), rtl=False)
    assert account.agreeing == part.calls, account.comparison.failures


def test_results_go_to_memory_where_asked():
    assert {part.results for part in parts(0, 1, real=True, results="memory")} == {"memory"}
    with Fabric(rtl=False, results="memory") as opened:
        assert opened._config.results == "memory"


def test_other_bits_are_a_failure(on_interpreter, monkeypatch):
    monkeypatch.setattr(every_level, "bit_equal", lambda one, other: False)
    found = attempt(Pooled("bag_sum", "float32", 3, 1), on_interpreter)
    assert len(found.failures) == 2
    assert found.failures[0] == (
        "opt_level 2, call 0: interpreter must give the bits of the exact reference, not others"
    )


def test_what_the_fabric_does_not_run_is_a_failure(monkeypatch):
    monkeypatch.setitem(fabric.CONFIGS, "stream", fabric.CONFIG.with_changes(reduce_dot=0))
    account = run_part(Pooled("transe_1", "float32", 3, 1), rtl=False)
    assert (account.calls, account.agreeing) == (1, 0)
    (failure,) = account.comparison.failures
    assert "UnsupportedError: execute code of nest" in failure


def test_attention_that_runs_elsewhere_is_a_failure(on_interpreter, monkeypatch):
    monkeypatch.setattr(fabric, "_PLACES", {"block_attention": ("fabric", "fabric")})
    found = attempt(Pooled("block_attention", "float32", 3, 1), on_interpreter)
    assert found.failures == [
        f"opt_level {opt_level}: nests must run in ('fabric', 'fabric'), not "
        "(('block_attention_0', 'fabric', 'sum across'), ('block_attention_1', 'host', 'case 2 "
        "has 2 loops, and the unit does what one does'))"
        for opt_level in (2, 3)
    ]


@pytest.mark.verilator
@pytest.mark.timeout(900)  # builds the model
@pytest.mark.parametrize(
    "part",
    [
        Pooled("bag_weighted", "float16", 5, 3),
        Pooled("bag_mean_padding", "bfloat16", 17, 4),
        Pooled("embedding", "bfloat16", 3, 5),
        Pooled("spmm", "float32", 1100, 6),
        Pooled("bag_weighted", "int8", 17, 7),
        Pooled("transe_2", "float32", 5, 8),
        Pooled("block_attention", "float32", 5, 10),
        Pooled("query_key", "bfloat16", 7, 11),
        Pooled("fused_sigmoid", "float32", 64, 12),
    ],
    ids=str,
)
def test_a_call_on_the_simulated_unit_is_exact(part):
    with Fabric(rtl=True) as opened:
        found = attempt(part, opened)
    assert found.failures == []
    assert found.answers["verilator"] == 2
