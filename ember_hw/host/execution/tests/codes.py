"""Execute code written by hand, its queues, and a nest around it: what tests of engines share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.backend.execute_code import ExecuteCode, Pop, is_row, row_element
from ember_hw.compiler.program import Callback, Nest, Operand
from ember_hw.config import AcceleratorConfig
from ember_hw.host.execution import Chunk, ExecuteSide
from ember_hw.isa import Event, Microcode, event_mask

CONFIG = AcceleratorConfig(
    name="codes", data_width_bits=128, row_entries=4, exports=8, bundle_scalars=4
)
#: Events of the cases 1, 2, 3 in the order in which they happen.
EVENTS = ((Event.BEGIN, 1), (Event.ITERATE, 1), (Event.END, 1))
#: Elements of a row, and its beats.
ELEMENTS = 6
ROOT_END = event_mask([(Event.END, 0)], CONFIG)


def nest_of(code: ExecuteCode) -> Nest:
    """Return a nest that calls case k on event k; its rows take the entries in order."""
    callbacks: list[Callback] = []
    fields: dict[tuple[str, str], int] = {}
    entry = 0
    for case, (event, level) in zip(code.cases, EVENTS, strict=False):
        operands: list[Operand] = []
        scalars = 0
        for pop in case.body:
            if not isinstance(pop, Pop):
                continue
            if is_row(pop.type):
                operands.append(Operand("row", entry, row_element(pop.type)))
                fields[f"row{entry}", "events"] = event_mask([(event, level)], CONFIG)
                fields[f"row{entry}", "length"] = 4 * ELEMENTS
                entry += 1
            else:
                operands.append(Operand("scalar", scalars, pop.type))
                scalars += 1
        callbacks.append(Callback(case.id, level, event, tuple(operands)))
    told = event_mask([*EVENTS, (Event.END, 0)], CONFIG)
    microcode = Microcode(CONFIG).with_fields({("issue", "events"): told, **fields})
    return Nest("codes", microcode, callbacks=tuple(callbacks), code=code)


def chunk_of(
    nest: Nest,
    events: Sequence[int],
    scalars: NDArray[np.uint32],
    rows: NDArray[np.float32],
) -> Chunk:
    """Return a chunk of bundles, each with the rows that its events bring, and the end."""
    masks = [nest.microcode.get(f"row{r}", "events") for r in range(CONFIG.row_entries)]
    count = sum(bool(event & mask) for event in events for mask in masks)
    beats = np.full((count, 8), np.nan, np.float32)
    beats[:, :ELEMENTS] = rows[np.arange(count) % len(rows)]
    happened = np.array([*events, 0], np.uint32)
    happened[-1] = ROOT_END
    return Chunk(
        happened,
        np.concatenate((scalars[: len(events)], np.zeros((1, 4), np.uint32))),
        beats.view(np.uint8).reshape(-1, 16),
        np.tile([False, True], count),
    )


def run_code(
    code: ExecuteCode,
    chunks: Sequence[Chunk],
    arrays: dict[str, NDArray[Any]],
    engine: Any,
    scalars: dict[str, int] | None = None,
) -> ExecuteSide:
    """Run code on chunks; `arrays` are written in place."""
    side = ExecuteSide(nest_of(code), arrays, scalars or {}, engine)
    for chunk in chunks:
        side.consume(chunk)
    side.finish()
    return side
