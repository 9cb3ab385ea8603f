from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_hw.bench.registry import Job
from ember_hw.bench.simulated import Delivery
from ember_hw.bench.suites import latency
from ember_hw.bench.tests.fakes import ASimulator, Silent


@pytest.fixture(autouse=True)
def _simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "Simulator", ASimulator)


def test_one_lookup_is_held_against_three_reads_and_76_cycles() -> None:
    rows = list(latency.one_lookup(Job(watcher=Silent())))
    assert [row.reference for row in rows] == [166, 376, 676] * 2
    assert [row.value for row in rows] == [404] * 6
    assert [row.is_below_bar for row in rows] == [True, True, False] * 2
    assert [row.params["beyond_memory_cycles"] for row in rows[:3]] == [314, 104, -196]
    assert [row.params["bus_bytes"] for row in rows] == [64] * 3 + [16] * 3


def test_with_indices_from_the_input_queue_only_the_row_is_read() -> None:
    rows = list(latency.one_lookup_from_the_queue(Job(watcher=Silent())))
    assert [row.reference for row in rows] == [90, 160, 260] * 2
    assert all(row.bar == 1.0 for row in rows)


def test_slowest_table_of_the_query_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    cycles = iter([100, 150, *[90] * 6] * 2)

    def run(_: ASimulator, workload: Any, **__: Any) -> Delivery:
        assert workload.params["lookups"] == 4
        nothing = np.zeros(0, np.uint64)
        return Delivery(next(cycles), nothing, nothing.astype(np.uint8), 64, {"clock_mhz": 225.0})

    monkeypatch.setattr(ASimulator, "run", run)
    rows = list(latency.small_query(Job(watcher=Silent())))
    assert [row.value for row in rows] == [150 / 0.225, 90 / 0.225] * 2
    assert rows[0].reference == 648.4
    assert (rows[0].bar, rows[0].params["is_modelled"]) == (None, True)


def test_quick_run_needs_one_model() -> None:
    job = Job(watcher=Silent(), quick=True)
    parts = (latency.one_lookup, latency.one_lookup_from_the_queue, latency.small_query)
    rows = [row for part in parts for row in part(job)]
    assert len(rows) == 3
