from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ember_hw.bench.registry import Job, suite_of
from ember_hw.bench.suites import dram
from ember_hw.config import AcceleratorConfig
from ember_hw.host.backends.verilator import Backend
from ember_hw.sim.dram import DRAM_PRESETS
from ember_hw.sim.options import LinkMemory


class Silent:
    def __call__(self, text: str) -> None: ...
    def detail(self, text: str) -> None: ...
    def reached(self, done: int, total: int | None, cycles: int | None) -> None: ...


def rows_of(only: str) -> dict[tuple[str, str], Any]:
    result = suite_of("dram").run(Job(watcher=Silent(), quick=True, only=only))
    return {(row.workload, row.metric): row for row in result.rows}


def test_models_agree_with_the_other_simulator() -> None:
    rows = rows_of("model/ddr4-2400/random rows of*")
    assert len(rows) == 8
    assert all(row.ratio >= row.bar for row in rows.values())


def test_the_preset_is_within_a_tenth_of_the_card_and_the_others_are_not() -> None:
    rows = rows_of("card/*")
    off = {
        name: max(
            abs(rows[f"card/{name}/{size} B", "utilisation"].ratio - 1) for size in dram.ROW_BYTES
        )
        for name in dram.CARD_MODELS
    }
    assert off["hbm2-pc"] < 0.06
    assert off["hbm2-pc, tFAW 30 ns"] > 0.15
    assert off["hbm2-pc, a row in one bank"] > 0.3


def test_rows_are_spread_and_fit_every_memory() -> None:
    workload = dram.random_rows(256, seed=1, quick=True)
    table, indices = workload.arrays["tab"], workload.arrays["idx"]
    assert workload.rows is not None
    np.testing.assert_array_equal(workload.rows, table[indices].view(np.uint8))
    assert len(np.unique(indices)) > 0.9 * len(indices)
    for memory in DRAM_PRESETS.values():
        launch = workload.launch(dram.config_of(memory.name))
        assert max(r.base + r.data.size for r in launch.regions) <= memory.size_bytes


def test_a_link_carries_its_rate() -> None:
    assert dram.peak_bytes_per_cycle(LinkMemory(bytes_per_cycle=4)) == 4
    assert dram.peak_bytes_per_cycle(DRAM_PRESETS["ddr4-2400"]) == 64


class WrongRows:
    """A backend whose rows are another table's."""

    config = dram.config_of("ecpix5-ddr3")

    def execute(self, launch: object) -> Iterator[Any]:
        yield type("Chunk", (), {"row_beats": np.zeros((1, 16), np.uint8)})


def test_wrong_rows_are_refused() -> None:
    job = Job(watcher=Silent(), quick=True)
    backend: Any = WrongRows()
    message = "rows of '64 B/bag 8/int32' must be the table's, and aren't"
    with pytest.raises(dram.DeviceError, match=f"^{message}$"):
        dram.measure(backend, DRAM_PRESETS["ecpix5-ddr3"], 64, job)


@pytest.mark.verilator
@pytest.mark.timeout(900)
def test_the_unit_is_held_against_the_bound() -> None:
    """With the smallest unit, whose few reads in flight can't reach it."""
    memory = DRAM_PRESETS["ecpix5-ddr3"]
    config = AcceleratorConfig.preset("tiny")
    backend = Backend(config, memory=memory, optimise=False, record_reads=True)
    row = dram.measure(backend, memory, 64, Job(watcher=Silent(), quick=True))
    backend.close()
    assert 0.3 <= (row.ratio or 0) <= 1
    assert row.params["bound_cycles"] < row.params["cycles"]
    assert row.params["memory"] == memory.describe()
