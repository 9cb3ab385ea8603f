from __future__ import annotations

from typing import Any

import pytest

from ember_hw.bench import op_classes
from ember_hw.bench.registry import Job
from ember_hw.bench.tests.fakes import ASimulator, Silent
from ember_hw.config import AcceleratorConfig


class ATask:
    """Needs two levels more than the unit has; its limit is 0.75."""

    name, rows = "spmm", None

    def __init__(self, seed: int) -> None:
        self.params = {"seed_of_task": seed, "lookups": 0}

    def config(self, base: AcceleratorConfig) -> AcceleratorConfig:
        return base.with_changes(traversal_units=4)

    def limit(self, config: AcceleratorConfig) -> float:
        return 0.75

    def launch(self, config: AcceleratorConfig, *, outstanding_reads: int = 0) -> Any:
        raise NotImplementedError


@pytest.fixture(autouse=True)
def _one_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(op_classes, "TASKS", {"spmm": ATask})
    monkeypatch.setattr(op_classes, "Simulator", ASimulator)


def test_task_is_held_against_its_own_limit_on_a_unit_that_is_enough_for_it() -> None:
    (row,) = op_classes.run(Job(watcher=Silent(), seed=9), 0.98)
    assert row.workload == "512-bit/latency 100/spmm"
    assert (row.value, row.reference, row.bar) == (0.5, 0.75, 0.98)
    assert row.params["seed_of_task"] == 9
    assert row.is_below_bar


@pytest.mark.parametrize("choice", [{"quick": True}, {"only": "128-bit*"}])
def test_tasks_that_are_not_wanted_do_not_run(choice: dict[str, Any]) -> None:
    assert list(op_classes.run(Job(watcher=Silent(), **choice), 0.98)) == []
