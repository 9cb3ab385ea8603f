"""The suite counts legal accesses and refuses to tell the speed of wrong rows."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from ember_hw.bench.registry import Job
from ember_hw.bench.suites import sdram
from ember_hw.bench.tests.fakes import Silent
from ember_hw.boards.sdram import exercise as exercise_module
from ember_hw.boards.sdram.chip import CHIPS
from ember_hw.errors import DeviceError

pytestmark = pytest.mark.verilator


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdram, "QUICK_ACCESSES", 500)
    monkeypatch.setattr(sdram, "_QUICK_READ_BYTES", 1 << 15)


def _rows(only: str) -> list[sdram.Row]:
    return list(sdram.run(Job(watcher=Silent(), quick=True, only=only)))


def test_accesses_and_rows_are_measured() -> None:
    (accesses,) = _rows("500 random accesses")
    assert (accesses.value, accesses.ratio, accesses.is_below_bar) == (500, 1.0, False)
    (rows,) = _rows("random rows of 256 B")
    assert rows.bar == 0.80
    assert 0.9 < rows.value < 1.0
    assert rows.params["commands"]["READ"] == (1 << 15) // 16


def test_fault_of_the_controller_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = replace(CHIPS["ulx3s"], trcd_ns=50.0)

    def judged(chip: object, clock_mhz: float, plan: sdram.Plan) -> sdram.Outcome:
        return exercise_module.exercise(CHIPS["ulx3s"], clock_mhz, plan, judge=slow)

    monkeypatch.setattr(sdram, "exercise", judged)
    (accesses,) = _rows("500 random accesses")
    assert accesses.is_below_bar
    first = accesses.params["first_fault"]
    assert re.fullmatch(r"trcd: clock \d+: (READ|WRITE) must come 5 clocks after, not 2", first)
    message = r"random rows of 64 B must come right from the SDRAM, and don't: trcd: clock \d+: "
    with pytest.raises(DeviceError, match=f"^{message}READ must come 5 clocks after, not 2$"):
        _rows("random rows of 64 B")
