"""Rows of f32 and f64 side by side, popped and kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_hw.compiler.backend.execute_code import (
    Case,
    Constant,
    ExecuteCode,
    GetVariable,
    Memory,
    Pop,
    ReadRow,
    SetVariable,
    Store,
    Variable,
)
from ember_hw.errors import DeviceError
from ember_hw.host.execution import Chunk, ExecuteSide
from ember_hw.host.execution.tests.codes import CONFIG, ELEMENTS, chunk_of, nest_of
from ember_hw.host.execution.tests.runs import ENGINES
from ember_hw.isa import Event, event_mask

BEGIN = event_mask([(Event.BEGIN, 1)], CONFIG)
ITERATE = event_mask([(Event.ITERATE, 1)], CONFIG)
#: The first case keeps a row of each type; the second stores an element of each, and of its own.
CODE = ExecuteCode(
    (Memory("narrow", "f32", 1, True), Memory("wide", "f64", 1, True)),
    (Variable(0, "row<f32>"), Variable(1, "row<f64>")),
    entry=(Constant("c0", "index", 0),),
    cases=(
        Case(
            1,
            (
                Pop("row", "row<f32>"),
                Pop("wide_row", "row<f64>"),
                SetVariable(0, "row"),
                SetVariable(1, "wide_row"),
            ),
        ),
        Case(
            2,
            (
                Pop("i", "index"),
                Pop("own", "row<f64>"),
                GetVariable("kept", 0),
                GetVariable("wide_kept", 1),
                ReadRow("x", "kept", "i"),
                ReadRow("y", "wide_kept", "i"),
                ReadRow("z", "own", "c0"),
                Store("narrow", ("i",), "x"),
                Store("wide", ("i",), "y"),
                Store("wide", ("c0",), "z"),
            ),
        ),
    ),
    no_alias=True,
)
#: Two rows of 24 bytes: 6 of f32, or 3 of f64.
WIDE = np.array([[0.1, 0.2, 0.3], [1 / 3, -1e300, 5e-324]])


def side_of(engine: Any) -> tuple[ExecuteSide, dict[str, Any]]:
    memory = {"narrow": np.zeros(8, np.float32), "wide": np.zeros(8)}
    return ExecuteSide(nest_of(CODE), memory, {}, engine), memory


def queues(index: int) -> Chunk:
    scalars = np.array([[0] * 4, [index] * 4], np.uint32)
    assert WIDE.view(np.float32).shape == (2, ELEMENTS)
    return chunk_of(nest_of(CODE), [BEGIN, ITERATE], scalars, WIDE.view(np.float32))


@pytest.mark.parametrize("is_cut", [False, True])
@pytest.mark.parametrize("engine", ENGINES)
def test_rows_of_both_types_are_read_and_kept(engine: Any, is_cut: bool) -> None:
    side, memory = side_of(engine)
    chunk = queues(2)
    if is_cut:  # behind the first bundle, which has two rows of two beats
        first = Chunk(chunk.events[:1], chunk.scalars[:1], chunk.row_beats[:4], chunk.row_last[:4])
        side.consume(first)
        chunk = Chunk(chunk.events[1:], chunk.scalars[1:], chunk.row_beats[4:], chunk.row_last[4:])
    side.consume(chunk)
    side.finish()
    assert memory["narrow"][2] == WIDE.view(np.float32)[0, 2]
    assert memory["wide"].tolist() == [WIDE[0, 0], 0, WIDE[1, 2], 0, 0, 0, 0, 0]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_index_is_held_against_the_elements_of_its_type(engine: Any) -> None:
    side, _ = side_of(engine)
    with pytest.raises(DeviceError) as error:
        side.consume(queues(5))
    assert str(error.value) == "index into row 'wide_kept' must be in [0, 3), not 5 (case 2)"
