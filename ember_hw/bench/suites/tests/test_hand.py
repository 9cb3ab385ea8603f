from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_hw.bench.programs.task import Task
from ember_hw.bench.registry import Job
from ember_hw.bench.simulated import Delivery, Simulator
from ember_hw.bench.suites import hand
from ember_hw.bench.tests.fakes import ASimulator, Silent
from ember_hw.bench.workloads.cases import cases
from ember_hw.bench.workloads.graphs import spmm
from ember_hw.config import PRESETS
from ember_hw.sim.options import IdealMemory


class APair(ASimulator):
    """Takes 1,000 cycles for a hand-written program and 1,024 for a generated one."""

    def __init__(self, config: Any, *, sink: str, **_: Any) -> None:
        super().__init__(config)
        self.sink = sink

    def run(self, workload: Any, **_: Any) -> Delivery:
        cycles = 1000 if isinstance(workload, Task) else 1024
        beats = {"ideal": 990, "core-like": 100}[self.sink]
        facts = {"row_beats": beats, "index_beats": 4, "bundles": 3}
        return Delivery(cycles, np.zeros(0, np.uint64), np.zeros(0, np.uint8), 64, facts)


@pytest.fixture
def _pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hand, "Simulator", APair)


@pytest.mark.usefixtures("_pairs")
def test_generated_cycles_stand_beside_hand_written_ones() -> None:
    rows = list(hand.run(Job(watcher=Silent(), quick=True, only="SpMM*")))
    assert [row.workload for row in rows] == [
        "SpMM/karate club/ideal",
        "SpMM/karate club/core-like",
        "geomean/ideal",
        "geomean/core-like",
    ]
    assert (rows[0].value, rows[0].reference, rows[0].bar) == (1024, 1000, 0.98)
    assert rows[0].is_below_bar  # 1000 / 1024 is 0.977
    assert rows[0].params["memory_port_busy"] == pytest.approx(994 / 1024)
    mean = rows[-1]
    assert (mean.ratio, mean.bar) == (pytest.approx(1000 / 1024), 1.0)
    assert mean.params["worst"] == pytest.approx(1000 / 1024)


@pytest.mark.usefixtures("_pairs")
def test_workloads_that_are_not_bound_by_memory_are_counted_on_the_slow_sink() -> None:
    *_, row = hand.run(Job(watcher=Silent(), quick=True))
    assert (row.metric, row.value, row.bar) == ("workloads not bound by memory", 5, 1.0)
    assert not row.is_below_bar


def test_geomean_is_that_of_the_ratios() -> None:
    place = hand.Place("ideal", "ideal", "hbm2-pc")
    row = hand.mean_row(place, {"left": 0.5, "right": 8.0})
    assert row.value == pytest.approx(2.0)
    assert row.bar is None
    assert row.params["workloads"] == 2
    assert row.params["published_geomean"] == 0.981


@pytest.mark.usefixtures("_pairs")
def test_recommender_models_run_on_a_dram_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = cases(quick=True)
    few = {name: quick[name] for name in ("RM3/uniform", "SpMM/karate club")}
    monkeypatch.setattr(hand, "cases", lambda quick: few)
    names = [row.workload for row in hand.run(Job(watcher=Silent(), only="*/ideal*"))]
    assert names == [
        "RM3/uniform/ideal",
        "RM3/uniform/ideal/hbm2-pc",
        "SpMM/karate club/ideal",
        "geomean/ideal",
        "geomean/ideal/hbm2-pc",
    ]


@pytest.mark.usefixtures("_pairs")
def test_what_is_not_wanted_does_not_run() -> None:
    assert list(hand.run(Job(watcher=Silent(), only="RM9/*"))) == []


@pytest.mark.verilator
@pytest.mark.timeout(900)  # builds the model
def test_both_programs_run_on_the_unit() -> None:
    case = spmm("karate club", seed=1, nodes=0, dim=16)
    memory = IdealMemory(latency_cycles=20)
    place = hand.Place("here", "core-like", memory)
    with Simulator(PRESETS["tiny"], memory=memory, sink="core-like", optimise=False) as simulator:
        row, share = hand.measure(case, place, simulator)
    assert row.workload == "SpMM/karate club/here"
    assert row.ratio is not None
    assert row.ratio >= 0.98
    assert 0 < share < 1
