from __future__ import annotations

import pytest

from ember_hw.bench.registry import Job
from ember_hw.bench.suites import scale
from ember_hw.bench.tests.fakes import ASimulator, Silent


def test_requests_pay_the_fill_that_the_long_run_pays_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scale, "Simulator", ASimulator)
    (row,) = scale.run(Job(watcher=Silent()))
    assert row.value == pytest.approx(64 / (400 + 4 * 64))
    assert row.reference == pytest.approx(16_384 / (400 + 4 * 16_384))
