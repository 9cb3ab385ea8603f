from __future__ import annotations

import re

import numpy as np
import pytest

from ember_hw.bench.registry import Job
from ember_hw.bench.suites import gates
from ember_hw.bench.tests.fakes import Silent

JOB = Job(watcher=Silent(), quick=True)


@pytest.mark.verilator
@pytest.mark.timeout(900)  # builds the model
@pytest.mark.parametrize("is_right", [True, False], ids=["right", "wrong"])
def test_netlist_is_held_against_the_rtl(monkeypatch: pytest.MonkeyPatch, is_right: bool) -> None:
    """The RTL takes the netlist's place, and RTL whose rows never have their lowest bit."""

    def netlist(verilog: str, progress: object) -> str:
        if is_right:
            return verilog
        wrong, count = re.subn(
            r"(assign m_axis_row_tdata = )(.*);", r"\g<1>\g<2> & ~32'h1;", verilog
        )
        assert count == 1
        return wrong

    monkeypatch.setattr(gates, "gate_level_verilog", netlist)
    (row,) = gates.run(JOB)
    assert row.workload == "weighted"
    assert (row.value, row.reference) == (int(is_right), 1)
    wrong = ["opt_level 3, seed 1: row_beats, pooled rows"]
    assert row.params["failures"] == ([] if is_right else wrong)


def test_nothing_is_wanted() -> None:
    assert list(gates.run(Job(watcher=Silent(), only="none"))) == []


def test_differences_are_named() -> None:
    words, beats = np.zeros(0, np.uint32), np.zeros((0, 8), np.uint8)
    some = gates.Beats(words, words, beats, np.zeros(0, np.bool_), np.zeros(0, np.uint64), 7)
    assert some.differing(some) == []
    assert some.differing(some._replace(cycles=8, events=np.ones(1, np.uint32))) == [
        "events",
        "cycles",
    ]
