from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from ember_hw.bench.registry import Job
from ember_hw.bench.suites import large
from ember_hw.bench.tests.fakes import Silent
from ember_hw.errors import DeviceError

JOB = Job(watcher=Silent(), quick=True, only="*interpreter")


def test_rows_at_the_end_and_around_4_gib_are_right_and_nothing_is_copied() -> None:
    (row,) = large.run(JOB)
    assert row.workload == "5 GiB, interpreter"
    assert row.params["table_bytes"] == 5 << 30
    assert row.value < large.MOST_MB
    assert row.ratio is not None
    assert row.ratio > 1


def test_wrong_rows_end_the_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "QUICK_TABLE_BYTES", 1 << 20)
    monkeypatch.setattr(large, "write_sparse", wrong_rows)
    message = "rows of '0.000977 GiB, interpreter' must be those of the file, and aren't"
    with pytest.raises(DeviceError, match=f"^{re.escape(message)}$"):
        list(large.run(JOB))


def wrong_rows(path: Path, height: int, indices: np.ndarray, seed: int) -> np.ndarray:
    np.lib.format.open_memmap(path, "w+", np.float32, (height, large.EMBEDDING_DIM))
    return np.ones((len(indices), large.EMBEDDING_DIM), np.float32)


def test_memory_that_is_taken_is_seen() -> None:
    with large.watched_memory() as memory:
        kept = np.ones(8 << 20)
    assert memory.growth_mb > 60
    assert kept.size


def test_system_that_tells_no_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "_STATUS", Path("/nowhere"))
    message = "/nowhere must tell RssAnon, as Linux does, and doesn't"
    with pytest.raises(DeviceError, match=f"^{message}$"), large.watched_memory():
        pass
