from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

import ember_hw
from ember_hw.bench.registry import Job
from ember_hw.bench.suites import sim
from ember_hw.bench.tests.fakes import Silent
from ember_hw.errors import DeviceError

JOB = Job(watcher=Silent(), quick=True)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A suite of 96 lookups on the smallest unit."""
    monkeypatch.setattr(sim, "QUICK_LOOKUPS", 96)
    monkeypatch.setattr(sim, "TABLE_ROWS", 50)
    monkeypatch.setattr(sim, "_CONFIG", "tiny")
    quickly_built: Callable[..., object] = partial(ember_hw.open_device, optimise=False)
    monkeypatch.setattr(ember_hw, "open_device", quickly_built)


@pytest.mark.verilator
@pytest.mark.timeout(900)  # builds the model
@pytest.mark.usefixtures("small")
def test_rates_are_those_of_one_run() -> None:
    rows = {row.metric: row for row in sim.run(JOB)}
    run = rows["device.run"]
    assert run.workload == "96 lookups of 256 B"
    assert run.reference == pytest.approx(96e-5)
    assert rows["lookups a second"].value == pytest.approx(96 / run.value)
    assert rows["cycles a second"].value == pytest.approx(run.params["cycles"] / run.value)
    assert run.params["cycles"] > 96 * 32  # beats of 8 bytes


@pytest.mark.verilator
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("small")
def test_wrong_rows_end_the_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sim, "exact", lambda table, request: np.ones((3, 64), np.float32))
    message = "pooled rows of '96 lookups of 256 B' must be exact, and 3 aren't"
    with pytest.raises(DeviceError, match=f"^{re.escape(message)}$"):
        list(sim.run(JOB))


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system pins no process")
def test_one_core_is_used_only_meanwhile() -> None:
    before = os.sched_getaffinity(0)
    with sim.one_core() as is_one_core:
        assert is_one_core
        assert len(os.sched_getaffinity(0)) == 1
    assert os.sched_getaffinity(0) == before
