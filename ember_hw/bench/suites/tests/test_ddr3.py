"""The suite measures rows that are right, and refuses to tell the speed of wrong ones."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.util import find_spec

import pytest

from ember_hw.bench.registry import Job
from ember_hw.bench.suites import ddr3
from ember_hw.bench.tests.fakes import Silent
from ember_hw.boards.ddr3 import exercise as exercise_module
from ember_hw.boards.ddr3.chip import CHIPS, Ddr3Chip
from ember_hw.errors import DeviceError

pytestmark = [
    pytest.mark.verilator,
    pytest.mark.skipif(find_spec("litedram") is None, reason="the extra `ddr3` isn't installed"),
]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ddr3, "QUICK_REQUESTS", 500)
    monkeypatch.setattr(ddr3, "_QUICK_READ_BYTES", 1 << 16)


def _rows(only: str) -> list[ddr3.Row]:
    return list(ddr3.run(Job(watcher=Silent(), quick=True, only=only)))


def test_accesses_and_rows_are_measured() -> None:
    (accesses,) = _rows("500 random reads*")
    assert (accesses.value, accesses.ratio, accesses.is_below_bar) == (500, 1.0, False)
    host_accesses = accesses.params["host_accesses"]
    assert isinstance(host_accesses, int)
    assert host_accesses > 5
    (rows,) = _rows("random rows of 64 B")
    assert rows.bar == 0.85
    assert 0.85 < rows.value < 1.0
    assert rows.params["commands"]["READ"] == (1 << 16) // 16
    assert rows.reference_name == "8 bytes a cycle, 600 MB/s"


def test_fault_of_the_controller_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = replace(CHIPS["ecpix5"], trcd_ns=40.0)

    def judged(
        chip: Ddr3Chip, clock_mhz: float, ports: int, plan: ddr3.Plan
    ) -> exercise_module.Outcome:
        return exercise_module.exercise(chip, clock_mhz, ports, plan, judge=slow)

    monkeypatch.setattr(ddr3, "exercise", judged)
    (accesses,) = _rows("500 random reads*")
    assert accesses.is_below_bar
    message = r"trcd: clock \d+: READ or WRITE too soon after ACTIVATE"
    assert re.fullmatch(message, str(accesses.params["first_fault"]))
    refusal = rf"^random rows of 64 B must come right from the DDR3, and don't: {message}$"
    with pytest.raises(DeviceError, match=refusal):
        _rows("random rows of 64 B")
