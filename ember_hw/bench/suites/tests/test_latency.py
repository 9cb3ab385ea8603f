from __future__ import annotations

import pytest

from ember_hw.bench.registry import Job
from ember_hw.bench.suites import latency
from ember_hw.bench.tests.fakes import ASimulator, Silent


def test_one_lookup_is_held_against_three_reads_and_76_cycles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(latency, "Simulator", ASimulator)
    rows = list(latency.one_lookup(Job(watcher=Silent())))
    assert [row.reference for row in rows] == [166, 376, 676]
    assert [row.value for row in rows] == [404] * 3
    assert [row.is_below_bar for row in rows] == [True, True, False]
    assert [row.params["beyond_memory_cycles"] for row in rows] == [314, 104, -196]
