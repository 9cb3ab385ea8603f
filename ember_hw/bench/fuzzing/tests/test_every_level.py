# pyright: basic
"""What differs anywhere is told, with opt level and call."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ember_hw.bench.fuzzing import every_level
from ember_hw.bench.fuzzing.every_level import Comparison, EveryLevel
from ember_hw.compiler.frontend import import_module
from ember_hw.errors import AssemblyError, CheckError
from ember_hw.host.bindings import embedding_bag

CALLS = [
    (torch.tensor([1, 2, 2]), torch.tensor([0, 2])),
    (torch.tensor([], dtype=torch.int64), torch.tensor([0])),
]


@pytest.fixture(scope="module")
def levels():
    with EveryLevel(rtl=False) as opened:
        yield opened


@pytest.fixture(scope="module")
def bag():
    torch.manual_seed(0)
    return import_module(torch.nn.EmbeddingBag(5, 3, mode="sum"), CALLS[0])


def test_answers_are_counted(levels, bag):
    before = str(bag.module)
    found = levels.compare(bag.module, bag.spec, CALLS, opt_levels=(0, 3))
    assert found.failures == []
    assert not found.refused
    passes = found.answers.pop("IR after a pass")
    assert passes > 20
    assert found.answers == {
        "scf": 2,
        "access program": 4,
        "microcode": 4,
        "interpreter with C": 4,
        "interpreter with NumPy": 4,
    }
    assert str(bag.module) == before


def test_long_calls_are_run_at_the_end_of_each_level(levels, bag):
    found = levels.compare(bag.module, bag.spec, CALLS[:1], long_calls=CALLS[1:], opt_levels=(3,))
    assert found.failures == []
    short = levels.compare(bag.module, bag.spec, CALLS[:1], opt_levels=(3,)).answers
    assert found.answers - short == {
        **dict.fromkeys(["scf", "slc", "slcvec", "dlc", "access program", "microcode"], 1),
        "interpreter with C": 1,
        "interpreter with NumPy": 1,
    }


def test_wrong_level_of_a_long_call_is_told(levels, bag, monkeypatch):
    def fails(check, name, module):
        if name == "slcvec":
            raise CheckError("out must be right")

    monkeypatch.setattr(every_level.LevelCheck, "check", fails)
    found = levels.compare(bag.module, bag.spec, CALLS[:1], long_calls=CALLS[1:], opt_levels=(1,))
    assert found.failures == ["opt_level 1, call 1: out must be right"]


def test_wrong_reference_is_told(levels, bag, monkeypatch):
    right = embedding_bag.reference
    monkeypatch.setattr(embedding_bag, "reference", lambda *given: right(*given) + 1)
    assert levels.compare(bag.module, bag.spec, CALLS).failures == [
        f"call {call}: scf must give the bits of the exact reference, not others" for call in (0, 1)
    ]


def test_wrong_device_is_told(levels, bag, monkeypatch):
    class Wrong:
        def run(self, program, inputs):
            return np.float32(-0.0) * device.run(program, inputs)

    device = levels.devices["interpreter with C"]
    monkeypatch.setitem(levels.devices, "interpreter with C", Wrong())
    found = levels.compare(bag.module, bag.spec, CALLS, opt_levels=(2,))
    assert found.failures == [
        f"opt_level 2, call {call}: interpreter with C must give the bits of the exact reference, "
        "not others"
        for call in (0, 1)
    ]


@pytest.mark.parametrize("stage", ["check", "check_au", "check_microcode"])
def test_wrong_level_is_told(levels, bag, monkeypatch, stage):
    def fails(check, *given):
        if len(check.arguments["idx"]) == 0:
            raise CheckError("out must be right")

    monkeypatch.setattr(every_level.LevelCheck, stage, fails)
    found = levels.compare(bag.module, bag.spec, CALLS, opt_levels=(1,))
    assert found.failures == ["opt_level 1, call 1: out must be right"]


def test_level_without_a_program_is_told(levels, bag, monkeypatch):
    def refuses(*given, **options):
        raise AssemblyError("one unit more")

    monkeypatch.setattr(every_level, "build", refuses)
    found = levels.compare(bag.module, bag.spec, CALLS, opt_levels=(1, 2))
    assert found.refused == {f"opt_level {level}: one unit more": 1 for level in (1, 2)}


def test_comparisons_add_up():
    found = Comparison(failures=["a"])
    found.answers["scf"] = 1
    other = Comparison(failures=["b"])
    other.answers["scf"] = 2
    other.refused["why"] = 1
    found.add(other)
    assert (found.failures, found.answers, found.refused) == (["a", "b"], {"scf": 3}, {"why": 1})
