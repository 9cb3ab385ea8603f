from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_hw.bench import small_rows
from ember_hw.bench.pooled import Operation, Run
from ember_hw.bench.registry import Job
from ember_hw.bench.small_rows import POINTS, SmallBags, checked, reducing_units, row_of
from ember_hw.bench.tests.fakes import Silent
from ember_hw.config import AcceleratorConfig
from ember_hw.demo.tests.results import a_report
from ember_hw.errors import DeviceError
from ember_hw.host.device import open_device


class AUnit:
    """Gives what the interpreter gives, a beat a cycle, but for the rows' indices."""

    wrong = 0.0

    def __init__(self, config: AcceleratorConfig, **_: Any) -> None:
        self.config = config

    def __enter__(self) -> AUnit:
        return self

    def __exit__(self, *_: object) -> None: ...

    def run(self, operation: Operation) -> Run:
        program = operation.compiled(self.config)
        assert {nest.execute for nest in program.nests} == {"fabric"}
        with open_device("interpreter", config=self.config) as device:
            found = device.run(program, operation.inputs).numpy().copy()
            report = device.report
        found[0, 0] += self.wrong
        row_bytes = (report.useful_bytes or 0) // operation.lookups
        beats = -(-row_bytes // self.config.bus_bytes) * operation.lookups // operation.groups
        ends = np.arange(1, operation.groups + 1, dtype=np.uint64) * np.uint64(beats)
        shared = {"rows": operation.lookups, "bus_bytes": self.config.bus_bytes}
        report = a_report(useful_bytes=row_bytes * operation.lookups, cycles=1000, **shared)
        return Run(report, (found,), ends)


def test_each_format_has_a_unit_that_takes_its_beats() -> None:
    lanes = {format: config.lanes for format, config in reducing_units().items()}
    assert lanes == {"bf16": 8, "fp16": 8, "int8": 16}
    assert len({point.name for point in POINTS}) == len(POINTS)
    for point in POINTS:
        assert point.has_bar == (point.row_bytes > 3 * 16)


@pytest.mark.parametrize("format", ["bf16", "fp16", "int8"])
def test_rows_are_held_against_the_port(format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_rows, "_LOOKUPS", 200)
    point = SmallBags(format, 64, 8)
    config = reducing_units()[format]
    row = row_of(point, config, checked(AUnit(config), point.operation(seed=1)))
    assert (row.metric, row.bar, row.params["lanes"]) == ("no lost beat", 0.98, config.lanes)
    beats = 5 if format == "int8" else 8
    assert row.value == pytest.approx(point.row_bytes / (16 * beats))
    assert row.reference == pytest.approx(point.row_bytes / (16 * beats + 4 + 4 / 8))


def test_other_results_than_the_interpreters_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_rows, "_LOOKUPS", 200)
    monkeypatch.setattr(AUnit, "wrong", 1.0)
    point = SmallBags("bf16", 32, 8)
    with pytest.raises(DeviceError) as caught:
        checked(AUnit(reducing_units()["bf16"]), point.operation(seed=1))
    assert str(caught.value) == (
        "results of 'small rows/32 of bf16/bag 8' must be the interpreter's bit for bit, and aren't"
    )


def test_a_quick_job_measures_one_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_rows, "Unit", AUnit)
    monkeypatch.setattr(small_rows, "_LOOKUPS", 200)
    rows = list(small_rows.small_rows(Job(watcher=Silent(), quick=True)))
    assert [row.workload for row in rows] == [POINTS[0].name]
    assert not list(small_rows.small_rows(Job(watcher=Silent(), quick=True, only="other")))
