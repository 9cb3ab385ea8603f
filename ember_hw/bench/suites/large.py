"""Large tables: rows at the end of an 8 GiB file, mapped into memory, and what memory that takes.

The file is sparse: it has only the rows that are looked up, and none of it is copied. Addresses
beyond 4 GiB and element numbers beyond 2^31 must be right; rows are compared with the file's.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import ember_hw
from ember_hw.bench.registry import Job
from ember_hw.bench.result import Row
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError

BACKENDS = ("interpreter", "verilator")
TABLE_BYTES, QUICK_TABLE_BYTES = 8 << 30, 5 << 30
EMBEDDING_DIM = 64
#: Rows that are looked up: the last ones, and as many around 4 GiB.
ROWS = 32
#: Anonymous memory that a run may take, with the model of the unit.
MOST_MB = 512.0
_CONFIG = "default"
_STATUS = Path("/proc/self/status")
_EVERY_SECONDS = 0.01


@dataclass
class Memory:
    """Anonymous memory of this process: at first, and the most since then, in bytes."""

    before: int
    most: int = 0
    _ended: threading.Event = field(default_factory=threading.Event)

    @property
    def growth_mb(self) -> float:
        """Growth in 10**6 bytes."""
        return max(0, self.most - self.before) / 1e6


def run(job: Job) -> Iterator[Row]:
    """Look up rows of the table on each backend."""
    import torch  # slow to import, and not needed to list suites

    from ember_hw.nn.functional import embedding_bag

    table_bytes = QUICK_TABLE_BYTES if job.quick else TABLE_BYTES
    height = table_bytes // (4 * EMBEDDING_DIM)
    middle = (4 << 30) // (4 * EMBEDDING_DIM)
    last = np.arange(height - ROWS, height)
    around = np.arange(middle - ROWS // 2, middle + ROWS // 2) % height
    indices = np.stack([last, around])
    for backend in BACKENDS:
        name = f"{table_bytes / (1 << 30):.3g} GiB, {backend}"
        if not job.wants(name):
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "table.npy"
            rows = write_sparse(path, height, indices.reshape(-1), job.seed)
            job.watcher(f"large: opening {backend}")
            config = AcceleratorConfig.preset(_CONFIG)
            with ember_hw.open_device(
                backend, config=config, progress=job.watcher.detail
            ) as device:
                job.watcher(f"large: {name}")
                with watched_memory() as memory:
                    weight = torch.from_numpy(ember_hw.map_table(path))
                    found = embedding_bag(
                        torch.from_numpy(indices.reshape(-1, 1)), weight, mode="sum", device=device
                    ).numpy()
                del weight
        if not np.array_equal(found, rows):
            raise DeviceError(f"rows of {name!r} must be those of the file, and aren't")
        yield Row(
            workload=name,
            metric="anonymous memory",
            value=memory.growth_mb,
            unit="MB",
            params={"config": _CONFIG, "lookups": indices.size, "table_bytes": table_bytes},
            reference_name="most allowed",
            reference=MOST_MB,
            is_smaller_better=True,
            bar=1.0,
        )


def write_sparse(path: Path, height: int, indices: np.ndarray, seed: int) -> np.ndarray:
    """Write a table that has only some rows, and return these, float32 (N, EMBEDDING_DIM)."""
    table = np.lib.format.open_memmap(path, "w+", np.float32, (height, EMBEDDING_DIM))
    rows = np.random.default_rng(seed).standard_normal((len(indices), EMBEDDING_DIM), np.float32)
    table[indices] = rows
    return table[indices]  # an index may stand twice


@contextmanager
def watched_memory() -> Iterator[Memory]:
    """Watch the anonymous memory of this process.

    Raises
    ------
    DeviceError
        The system doesn't tell it.
    """
    memory = Memory(_anonymous_bytes())

    def watch() -> None:
        while not memory._ended.wait(_EVERY_SECONDS):
            memory.most = max(memory.most, _anonymous_bytes())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield memory
    finally:
        memory._ended.set()
        watcher.join()
        memory.most = max(memory.most, _anonymous_bytes())


def _anonymous_bytes() -> int:
    for line in _STATUS.read_text().splitlines() if _STATUS.exists() else ():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise DeviceError(f"{_STATUS} must tell RssAnon, as Linux does, and doesn't")
