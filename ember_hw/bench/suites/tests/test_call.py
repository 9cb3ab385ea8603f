from __future__ import annotations

import time

import pytest
import torch

from ember_hw.bench.registry import Job
from ember_hw.bench.suites import call
from ember_hw.bench.tests.fakes import Silent


def test_call_is_measured_beside_torch_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call, "QUICK_CALLS", 5)
    threads = torch.get_num_threads()
    (row,) = call.run(Job(watcher=Silent(), quick=True, only="*default"))
    assert (row.workload, row.metric, row.unit) == ("1 lookup, config default", "call", "us")
    assert 0 < row.params["torch_us"] < row.value
    assert row.params["processor_us"] > 0
    assert row.ratio == pytest.approx(call.MOST_MICROSECONDS / row.value)
    assert torch.get_num_threads() == threads


def test_median_is_that_of_the_calls() -> None:
    waits = iter([0.02, 0.0, 0.0])
    assert call.median_microseconds(lambda: time.sleep(next(waits)), 3) < 10_000
