"""The reduce unit on the Verilator model: the rows that leave are its results."""

from __future__ import annotations

import numpy as np
import pytest

from ember_hw.bench.programs import TASKS
from ember_hw.compiler.interpreters.microcode import execute
from ember_hw.compiler.interpreters.reduce import reduce_rows
from ember_hw.config import AcceleratorConfig
from ember_hw.host.backends import verilator
from ember_hw.host.launch import Launch
from ember_hw.isa import Event, ReduceOperation, event_mask
from ember_hw.sim.options import StallingSink

CONFIG = AcceleratorConfig.preset("tiny").with_changes(
    name="tiny that reduces", execute="reduce", int8_rows=1, reduce_dot=1, row_entries=3
)
ROW_BYTES = 24


def summed(launch: Launch) -> Launch:
    """Let the reduce unit sum the rows of each bag."""
    records = {
        ("reduce", "length"): ROW_BYTES,
        ("reduce0", "operation"): int(ReduceOperation.SUM),
        ("reduce0", "emit_events"): event_mask([(Event.END, 1)], CONFIG),
    }
    return Launch(
        launch.microcode.with_fields(records), launch.regions, launch.callbacks, launch.arguments
    )


def expected(launch: Launch) -> list[list[int]]:
    """Return the bits of the results, by the interpreters."""
    regions = [(region.base, region.data) for region in launch.regions]
    (chunk,) = execute(launch.microcode, regions, requests=[launch.arguments])
    rows = [row.tobytes() for row in chunk.row_beats.reshape(-1, ROW_BYTES)]
    bundles = zip(chunk.events.tolist(), chunk.scalars.tolist(), strict=True)
    results = reduce_rows(launch.microcode.records, CONFIG, bundles, rows)
    return [result.view(np.uint32).tolist() for result in results]


@pytest.mark.verilator
@pytest.mark.timeout(900)  # builds the model
def test_pooled_rows_leave() -> None:
    (launch,) = TASKS["embedding_bag"](row_bytes=ROW_BYTES, lookups=200).launches(CONFIG)
    launch = summed(launch)
    results = expected(launch)
    sink = StallingSink(seed=3, stall_probability=0.3)
    backend = verilator.Backend(CONFIG, sink=sink, optimise=False)
    chunks = list(backend.execute(launch))
    backend.close()
    assert sum(len(chunk.events) for chunk in chunks) == 0
    beats = np.concatenate([chunk.row_beats for chunk in chunks])
    ends = np.concatenate([chunk.row_last for chunk in chunks])
    assert ends.tolist() == [False, False, True] * len(results)
    assert beats.view(np.uint32).reshape(len(results), -1).tolist() == results
    assert [0] * (ROW_BYTES // 4) in results  # an empty bag
