from __future__ import annotations

import re
from typing import Any

import pytest

from ember_hw.bench.registry import Job
from ember_hw.bench.suites import compile as suite
from ember_hw.bench.tests.fakes import Silent
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError


def test_many_tables_are_held_against_few(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(tables: int, config: AcceleratorConfig, _seed: int) -> tuple[float, Any]:
        return tables / 13, {"config": config.name}

    monkeypatch.setattr(suite, "measure", measured)
    rows = list(suite.run(Job(watcher=Silent())))
    assert [(row.value, row.reference) for row in rows] == [(2, 5), (1000 / 13, 120)] * 2
    assert [row.params["config"] for row in rows] == ["tables"] * 2 + ["default"] * 2
    assert not any(row.is_below_bar for row in rows)
    assert len(list(suite.run(Job(watcher=Silent(), quick=True)))) == 2
    assert len(list(suite.run(Job(watcher=Silent(), only="26 tables, one program")))) == 1


@pytest.mark.parametrize(("preset", "programs"), [("tables", 1), ("default", 3)])
def test_few_tables_are_compiled(preset: str, programs: int) -> None:
    seconds, params = suite.measure(3, AcceleratorConfig.preset(preset), 0)
    assert seconds > 0
    assert params == {"tables": 3, "config": preset, "programs": programs, "opt_level": 3}


def test_tables_that_run_elsewhere_are_an_error() -> None:
    small = AcceleratorConfig.preset("tiny").with_changes(traversal_units=1)
    text = "rows of 2 tables must be torch's, and aren't"
    with pytest.raises(DeviceError, match=f"^{re.escape(text)}$"):
        suite.measure(2, small, 0)
