from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ember_hw.bench import suites
from ember_hw.bench.registry import Job, Suite, all_suites, suite_of
from ember_hw.bench.result import Row
from ember_hw.bench.tests.fakes import Silent


@pytest.fixture
def echo(monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A suite of two workloads."""

    def run(job: Job) -> Iterator[Row]:
        for name in ("left", "right"):
            if job.wants(name):
                yield Row(workload=name, metric="seed", value=job.seed, unit="1")

    module: Any = ModuleType(f"{suites.__name__}.echo")
    module.run = run
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return Suite("echo", "Says what it is told.")


def test_every_suite_has_a_summary_that_is_a_sentence() -> None:
    found = all_suites()
    assert {"area", "gather", "latency", "scale", "sim"} <= found.keys()
    for suite in found.values():
        assert suite.summary.endswith(".")


def test_a_file_is_a_suite(tmp_path: Path) -> None:
    (tmp_path / "dram.py").write_text('"""Rows of a DRAM.\n\nMore of it."""\n')
    (tmp_path / "__init__.py").write_text("")
    assert all_suites(tmp_path) == {"dram": Suite("dram", "Rows of a DRAM.")}


def test_rows_are_told_as_they_come_and_kept(echo: Suite) -> None:
    told: list[Row] = []
    result = echo.run(Job(watcher=Silent(), seed=5), told.append)
    assert [row.workload for row in result.rows] == ["left", "right"]
    assert list(result.rows) == told
    assert (result.suite, result.seed) == ("echo", 5)


def test_only_chooses_workloads(echo: Suite) -> None:
    result = echo.run(Job(watcher=Silent(), only="*ght"))
    assert [row.workload for row in result.rows] == ["right"]
    message = "only must match a workload of suite 'echo', not 'none'"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        echo.run(Job(watcher=Silent(), only="none"))


def test_unknown_suite_is_refused() -> None:
    known = ", ".join(all_suites())
    message = f"suite must be one of {known}, not 'gahter'"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        suite_of("gahter")
