from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from ember_hw.bench.registry import Job
from ember_hw.bench.result import Row
from ember_hw.bench.simulated import Delivery
from ember_hw.bench.suites import ablation
from ember_hw.bench.tests.fakes import ASimulator, Silent
from ember_hw.bench.workloads.cases import unit_of
from ember_hw.bench.workloads.dlrm import recommender
from ember_hw.bench.workloads.formulas import traffic
from ember_hw.bench.workloads.generated import Traffic, generate
from ember_hw.bench.workloads.graphs import message_passing, spmm
from ember_hw.errors import CheckError

#: Cycles of each level on the stand-in: the third step gains nothing.
CYCLES = (4000, 1000, 500, 500)


class ALevel(ASimulator):
    """Takes as many cycles as the level in the workload's name says."""

    def __init__(self, config: Any, *, sink: str, **_: Any) -> None:
        super().__init__(config)
        self.sink = sink

    def run(self, workload: Any, **_: Any) -> Delivery:
        cycles = CYCLES[int(workload.name[-1])]
        facts = {"cycles": cycles, "row_beats": 9, "index_beats": 4, "bundles": 3}
        return Delivery(cycles, np.zeros(0, np.uint64), np.zeros(0, np.uint8), 64, facts)


@pytest.fixture(scope="module")
def rows() -> Mapping[tuple[str, str], Row]:
    """Of one small model, by workload and metric."""
    case = recommender("RM3", 0.0, seed=0, bags=1, tables=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ablation, "Simulator", ALevel)
        patch.setattr(ablation, "small_cases", lambda quick: {case.name: lambda seed: case})
        found = list(ablation.run(Job(watcher=Silent())))
    named = {(row.workload, row.metric): row for row in found}
    assert len(named) == len(found)
    return named


def test_traffic_stands_beside_the_closed_form(rows: Mapping[tuple[str, str], Row]) -> None:
    assert rows["RM3/uniform/512-bit", "tokens a lookup, level 0"].value == 32
    assert rows["RM3/uniform/512-bit", "entries a lookup, level 2"].value == 1 + 2
    assert rows["RM3/uniform/128-bit", "entries a lookup, level 2"].value == 1 + 8
    traffic = [row for (_, metric), row in rows.items() if "a lookup" in metric]
    assert len(traffic) == 2 * 4 * 2
    assert all((row.ratio, row.bar) == (1.0, 1.0) for row in traffic)


def test_each_level_is_held_against_the_one_before(rows: Mapping[tuple[str, str], Row]) -> None:
    for width, sink, bar, is_below in (
        (512, "core-like", 1.01, True),
        (512, "ideal", 1.0, False),
        (128, "core-like", 1.0, False),
    ):
        place = f"RM3/uniform/{width}-bit/{sink}"
        assert rows[place, "cycles, level 0"].bar is None
        assert rows[place, "cycles, level 1"].ratio == 4
        last = rows[place, "cycles, level 3"]
        assert (last.ratio, last.bar, last.is_below_bar) == (1.0, bar, is_below)
        assert rows[place, "row beats, level 1"].value == 9


def test_gains_stand_beside_published_ones_without_a_bar(
    rows: Mapping[tuple[str, str], Row],
) -> None:
    for group, published in (("DLRM", 5.13), ("RM3", 6.08)):
        row = rows[f"{group}/512-bit/ideal", "gain of level 1, geomean"]
        assert (row.value, row.reference, row.bar) == (4.0, published, None)


@pytest.mark.parametrize("tokens", [31, 33])
def test_traffic_that_differs_from_the_closed_form_misses_the_bar(tokens: int) -> None:
    case = recommender("RM3", 0.0, seed=0, bags=1, tables=1)
    generated = generate(case, 0, unit_of(512))
    found = Traffic(tokens * 20, 96 * 20, {})
    wanted = traffic(case, 0, 16, hardware=True)
    first, second = ablation.traffic_of_level(generated, found, wanted, 512)
    assert first.is_below_bar
    assert not second.is_below_bar


def test_what_the_passes_alone_give_is_counted_where_it_differs() -> None:
    case = spmm("karate club", seed=0, nodes=0, dim=16)
    levels = [generate(case, opt_level, unit_of(512)) for opt_level in (2, 3)]
    rows = {row.metric: row for row in ablation.traffic_rows(case, levels, 512)}
    assert len(rows) == 6
    assert rows["tokens a lookup, level 3"].value == 1
    alone = rows["tokens a lookup, level 3, passes alone"]
    assert alone.value == pytest.approx(1 + 34 / 156)
    assert rows["entries a lookup, level 3, passes alone"].value == 2
    assert all(row.ratio == 1.0 for row in rows.values())


def test_both_programs_of_a_level_count() -> None:
    case = message_passing("karate club", seed=0, nodes=0, dim=16)
    levels = [generate(case, opt_level, unit_of(512)) for opt_level in (1, 2)]
    gains = ablation.Gains()
    simulator: Any = ALevel(unit_of(512), sink="ideal")
    cycles = [
        row
        for row in ablation.cycle_rows(case, levels, simulator, gains)
        if row.metric.startswith("cycles")
    ]
    assert [row.value for row in cycles] == [2000, 500]
    assert [row.params["programs"] for row in cycles] == [2, 1]
    assert [row.value for row in gains.rows()] == [4.0]


def test_results_that_differ_are_refused() -> None:
    right = {"out": np.array([0.0], np.float32)}
    ablation.check_outputs("x", 2, right, right)
    expected = "result 'out' of 'x' at level 2 must be that of the lowest, and isn't"
    with pytest.raises(CheckError, match=f"^{re.escape(expected)}$"):
        ablation.check_outputs("x", 2, {"out": np.array([-0.0], np.float32)}, right)


def test_what_is_not_wanted_does_not_run() -> None:
    assert list(ablation.run(Job(watcher=Silent(), only="RM9/*"))) == []
