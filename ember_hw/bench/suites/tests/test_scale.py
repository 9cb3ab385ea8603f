from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_hw.bench.cluster import ClusterDelivery
from ember_hw.bench.registry import Job
from ember_hw.bench.simulated import Delivery
from ember_hw.bench.suites import scale
from ember_hw.bench.tests.fakes import ASimulator, Silent


@pytest.fixture(autouse=True)
def _smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "Simulator", ASimulator)
    monkeypatch.setattr(scale, "Cluster", ACluster)
    monkeypatch.setattr(scale, "REQUESTS", 4)
    monkeypatch.setattr(scale, "UNIT_LOOKUPS", 16)
    monkeypatch.setattr(scale, "UNIT_BAGS", 2)


class ACluster(ASimulator):
    """Half a row beat a cycle of each unit; the first channel answers half of all beats."""

    def run(self, launches: Any, rows: Any, name: str) -> ClusterDelivery:
        assert len(rows) == 8
        facts = {"row_beats": 100, "index_beats": 10, "stalls": {"memory": 60, "front": 30}}
        delivery = Delivery(
            200, np.arange(100).astype(np.uint64) * 2, np.full(100, 16, np.uint8), 16, facts
        )
        units = len(launches)
        channels = np.array([7, *[1] * 7]) * 50 * units // 7
        return ClusterDelivery([delivery] * units, channels)


def test_queued_requests_have_a_bar_against_the_long_run() -> None:
    queued, awaited = scale.requests(Job(watcher=Silent()))
    assert (queued.bar, awaited.bar) == (0.9, None)
    # The stand-in takes 400 cycles and 4 more a lookup of one request.
    assert queued.value == pytest.approx(4 * 64 / (400 + 4 * 64))
    assert awaited.value == pytest.approx(4 * 64 / (4 * (400 + 4 * 64)))
    assert queued.reference == pytest.approx(4 * 64 / (400 + 4 * 4 * 64))


def test_units_with_channels_of_their_own_are_held_against_one_alone() -> None:
    (row,) = scale.private_channels(Job(watcher=Silent()))
    assert row.ratio == pytest.approx(8, rel=0.01)
    assert row.bar == 7.8


def test_cycles_of_units_that_share_channels_add_up() -> None:
    rows = list(scale.shared_channels(Job(watcher=Silent(), only="*Zipf*")))
    rate, *losses = rows
    assert rate.reference == pytest.approx(2.0)
    shares = {row.metric: row.value for row in losses}
    assert shares == {
        "cycles: row beats": 0.5,
        "cycles: index lines": pytest.approx(0.05),
        "cycles: memory": pytest.approx(0.3),
        "cycles: front": pytest.approx(0.15),
    }


def test_clusters_are_not_quick() -> None:
    rows = list(scale.run(Job(watcher=Silent(), quick=True)))
    assert [row.workload.rpartition(", ")[2] for row in rows] == ["queued", "each awaited"]
