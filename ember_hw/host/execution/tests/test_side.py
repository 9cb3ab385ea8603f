"""What both engines refuse, count and leave alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ember_hw.compiler.backend.execute_code import (
    Carried,
    Case,
    Compute,
    Constant,
    ExecuteCode,
    Extent,
    For,
    GetVariable,
    Load,
    Memory,
    Pop,
    ReadRow,
    Scalar,
    SetVariable,
    Statement,
    Store,
    Variable,
)
from ember_hw.compiler.program import Operand
from ember_hw.errors import DeviceError, ProgramError, ToolError
from ember_hw.host.execution import Chunk, ExecuteSide, c_compiler
from ember_hw.host.execution.tests.codes import CONFIG, ELEMENTS, ROOT_END, chunk_of, nest_of
from ember_hw.host.execution.tests.runs import ENGINES
from ember_hw.isa import Event, Source, event_mask

BEGIN = event_mask([(Event.BEGIN, 1)], CONFIG)
ITERATE = event_mask([(Event.ITERATE, 1)], CONFIG)
ENTRY = (
    Constant("c0", "index", 0),
    Constant("c1", "index", 1),
    Constant("f1", "f32", 1.0),
    Extent("D", "out", 1),
)
MEMORIES = (Memory("out", "f32", 2, True), Memory("sc", "f32", 1, True))


def code_of(*body: Statement, entry: tuple[Statement, ...] = (), **parts: Any) -> ExecuteCode:
    return ExecuteCode(MEMORIES, entry=(*ENTRY, *entry), cases=(Case(1, body),), **parts)


def add_rows() -> ExecuteCode:
    """Case 1 adds a row to row `b` of out."""
    return code_of(
        Pop("b", "index"),
        Pop("row", "row<f32>"),
        For(
            "d", "c0", "D", "c1",
            (
                Load("old", "out", ("b", "d")),
                ReadRow("x", "row", "d"),
                Compute("new", "f32", "addf", ("old", "x")),
                Store("out", ("b", "d"), "new"),
            ),
        ),
        no_alias=True,
    )  # fmt: skip


def arrays(rows: int = 4, columns: int = ELEMENTS) -> dict[str, NDArray[Any]]:
    return {"out": np.zeros((rows, columns), np.float32), "sc": np.zeros(3, np.float32)}


def queues(code: ExecuteCode, keys: list[int]) -> Chunk:
    """Return queues with a call of case 1 for each key, its first scalar."""
    scalars = np.zeros((len(keys), 4), np.int32)
    scalars[:, 0] = keys
    rows = np.arange(5 * ELEMENTS, dtype=np.float32).reshape(5, ELEMENTS)
    return chunk_of(nest_of(code), [BEGIN] * len(keys), scalars.view(np.uint32), rows)


def side_of(code: ExecuteCode, engine: Any, **changes: Any) -> ExecuteSide:
    return ExecuteSide(nest_of(code), changes.pop("arrays", arrays()), {"N": 3}, engine, **changes)


def raises(error: type[Exception], message: str) -> Any:
    return pytest.raises(error, match=f"^{re.escape(message)}$")


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_are_added_and_counted(engine: str) -> None:
    code, memory = add_rows(), arrays()
    side = side_of(code, engine, arrays=memory)
    side.consume(queues(code, [1, 3, 1]))
    side.finish()
    rows = np.arange(5 * ELEMENTS, dtype=np.float32).reshape(5, ELEMENTS)
    assert memory["out"].tolist() == [
        [0] * 6,
        (rows[0] + rows[2]).tolist(),
        [0] * 6,
        rows[1].tolist(),
    ]
    assert (side.bundles, side.rows, side.row_beats, side.calls) == (4, 3, 6, {1: 3})


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("keys", "columns", "message"),
    [
        ([0, 4, 9], ELEMENTS, "index 0 into argument 'out' must be in [0, 4), not 4 (case 1)"),
        ([0, -1], ELEMENTS, "index 0 into argument 'out' must be in [0, 4), not -1 (case 1)"),
        ([1], 8, "index into row 'row' must be in [0, 6), not 6 (case 1)"),
    ],
)
def test_access_outside_is_refused(
    keys: list[int], columns: int, message: str, engine: str
) -> None:
    code = add_rows()
    side = side_of(code, engine, arrays=arrays(4, columns))
    with raises(DeviceError, message):
        side.consume(queues(code, keys))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            (Pop("b", "index"), Compute("q", "index", "divsi", ("c1", "b"))),
            "divisor must be other than 0, not 0 (case 1)",
        ),
        (
            (Pop("b", "index"), For("d", "c0", "D", "b", ())),
            "step of a loop must be at least 1, not 0 (case 1)",
        ),
        (
            (
                Compute("z", "f32", "subf", ("f1", "f1")),
                Compute("q", "f32", "divf", ("f1", "z")),
                Compute("i", "index", "fptosi", ("q",)),
            ),
            "float that becomes an integer must fit 64 bits, and doesn't (case 1)",
        ),
        (
            (GetVariable("row", 0), ReadRow("x", "row", "c0")),
            "variable 0 must be set before it is read, and isn't (case 1)",
        ),
    ],
)
def test_operation_without_a_result_is_refused(
    body: tuple[Statement, ...], message: str, engine: str
) -> None:
    code = code_of(*body, variables=(Variable(0, "row<f32>"),))
    side = side_of(code, engine)
    with raises(DeviceError, message):
        side.consume(queues(code, [0]))


@pytest.mark.parametrize("engine", ENGINES)
def test_entry_and_end_are_checked_too(engine: str) -> None:
    bad = code_of(entry=(Constant("c9", "index", 9), Load("x", "sc", ("c9",))))
    with raises(DeviceError, "index 0 into argument 'sc' must be in [0, 3), not 9 (entry)"):
        side_of(bad, engine)
    bad = code_of(entry=(Constant("c9", "index", 9),), end=(Store("sc", ("c9",), "f1"),))
    side = side_of(bad, engine)
    side.consume(queues(bad, []))
    with raises(DeviceError, "index 0 into argument 'sc' must be in [0, 3), not 9 (end)"):
        side.finish()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_row_is_kept_from_chunk_to_chunk(engine: Any) -> None:
    keep = Case(1, (Pop("row", "row<f32>"), SetVariable(0, "row")))
    read = (GetVariable("kept", 0), ReadRow("x", "kept", "i"))
    store = Case(2, (Pop("i", "index"), *read, Store("sc", ("i",), "x")))
    code = ExecuteCode(MEMORIES, (Variable(0, "row<f32>"),), cases=(keep, store), no_alias=True)
    nest, memory = nest_of(code), arrays()
    side = ExecuteSide(nest, memory, {}, engine)
    scalars = np.array([[0] * 4, [2] * 4, [1] * 4], np.uint32)
    rows = np.arange(ELEMENTS, dtype=np.float32).reshape(1, -1) + 5
    whole = chunk_of(nest, [BEGIN, ITERATE, ITERATE], scalars, rows)
    no_beats = (np.zeros((0, 16), np.uint8), np.zeros(0, np.bool_))
    first = Chunk(whole.events[:1], whole.scalars[:1], whole.row_beats.copy(), whole.row_last)
    side.consume(first)
    first.row_beats[...] = 0
    side.consume(Chunk(whole.events[1:2], whole.scalars[1:2], *no_beats))
    side.consume(Chunk(whole.events[2:], whole.scalars[2:], *no_beats))
    side.finish()
    assert memory["sc"].tolist() == [0, 6, 7]


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_may_have_lengths_of_their_own(engine: Any) -> None:
    """The bundle's second scalar tells a row's bytes; the code sums its elements."""
    code = code_of(
        Pop("i", "index"),
        Pop("bytes", "index"),
        Pop("row", "row<f32>"),
        Compute("n", "index", "divsi", ("bytes", "c4")),
        For(
            "d", "c0", "n", "c1",
            (ReadRow("x", "row", "d"), Compute("sum", "f32", "addf", ("acc", "x"))),
            (Carried("acc", "f1", "sum", "total"),),
        ),
        Store("sc", ("i",), "total"),
        entry=(Constant("c4", "index", 4),),
        no_alias=True,
    )  # fmt: skip
    nest = nest_of(code)
    fields = {("row0", "length_source"): Source.SLOT, ("row0", "length_export"): 1}
    nest = replace(nest, microcode=nest.microcode.with_fields(fields))
    memory = arrays()
    side = ExecuteSide(nest, memory, {}, engine)
    scalars = np.array([[0, 4, 0, 0], [1, 20, 0, 0], [2, 12, 0, 0], [0] * 4], np.uint32)
    events = np.array([BEGIN] * 3 + [ROOT_END], np.uint32)
    beats = np.arange(16, dtype=np.float32).view(np.uint8).reshape(4, 16)
    side.consume(Chunk(events, scalars, beats, np.array([True, False, True, True])))
    side.finish()
    assert memory["sc"].tolist() == [1 + 0, 1 + 4 + 5 + 6 + 7 + 8, 1 + 12 + 13 + 14]
    side = ExecuteSide(nest, memory, {}, engine)
    with raises(DeviceError, "each row of row0 must be 2 beats on the row queue, not 1"):
        side.consume(Chunk(events, scalars, beats, np.ones(4, np.bool_)))


@pytest.mark.parametrize("engine", ENGINES)
def test_overlapping_memories_are_worked_on_in_order(engine: Any) -> None:
    """Without `no_alias`, element k + 1 of one array is element k of the other."""
    shared = np.zeros(5, np.float32)
    memory = {"a": shared[:4], "b": shared[1:]}
    code = ExecuteCode(
        (Memory("a", "f32", 1, False), Memory("b", "f32", 1, True)),
        entry=(*ENTRY[:3], Constant("c4", "index", 4)),
        cases=(
            Case(
                1,
                (
                    For(
                        "d", "c0", "c4", "c1",
                        (
                            Load("old", "a", ("d",)),
                            Compute("new", "f32", "addf", ("old", "f1")),
                            Store("b", ("d",), "new"),
                        ),
                    ),
                ),
            ),
        ),
    )  # fmt: skip
    side = ExecuteSide(nest_of(code), memory, {}, engine)
    side.consume(queues(code, [0]))
    assert shared.tolist() == [0, 1, 2, 3, 4]


def test_a_lost_beat_leaves_the_queues_full() -> None:
    code = add_rows()
    whole = queues(code, [0, 1])
    side = side_of(code, "c")
    side.consume(replace(whole, row_beats=whole.row_beats[:-1], row_last=whole.row_last[:-1]))
    message = "queues must be empty at the end of a program, not hold 2 bundles and 1 row beats"
    with raises(DeviceError, message):
        side.finish()


def test_a_row_of_another_length_is_an_error() -> None:
    code = add_rows()
    whole = queues(code, [0, 1])
    with raises(DeviceError, "each row of row0 must be 2 beats on the row queue, not 1"):
        side_of(code, "c").consume(replace(whole, row_last=np.ones_like(whole.row_last)))


def test_a_program_must_end_and_end_last() -> None:
    code = add_rows()
    whole = queues(code, [0])
    side = side_of(code, "c")
    side.consume(Chunk(whole.events[:1], whole.scalars[:1], whole.row_beats, whole.row_last))
    with raises(DeviceError, "the last of 1 bundles must end the outermost loop, and doesn't"):
        side.finish()
    side = side_of(code, "c")
    side.consume(whole)
    end = queues(code, [])
    message = "no bundle must follow the one that ends the outermost loop"
    with raises(DeviceError, message):
        side.consume(end)
    ends = np.array([ROOT_END] * 2, np.uint32)
    twice = Chunk(ends, np.zeros((2, 4), np.uint32), end.row_beats, end.row_last)
    with raises(DeviceError, message):
        side_of(code, "c").consume(twice)


def _change(what: str) -> Callable[[Any], Any]:
    changes: dict[str, Callable[[Any], Any]] = {
        "no code": lambda nest: replace(nest, code=None),
        "event": lambda nest: replace(
            nest, microcode=nest.microcode.with_field("issue", "events", BEGIN ^ BEGIN)
        ),
        "too few": lambda nest: replace(
            nest, callbacks=(replace(nest.callbacks[0], operands=nest.callbacks[0].operands[:1]),)
        ),
        "kind": lambda nest: replace(
            nest,
            callbacks=(
                replace(
                    nest.callbacks[0],
                    operands=(Operand("scalar", 0, "f32"), nest.callbacks[0].operands[1]),
                ),
            ),
        ),
        "row": lambda nest: replace(
            nest,
            callbacks=(
                replace(
                    nest.callbacks[0],
                    operands=(nest.callbacks[0].operands[0], Operand("row", 2, "f32")),
                ),
            ),
        ),
        "case": lambda nest: replace(nest, callbacks=(replace(nest.callbacks[0], id=7),)),
    }
    return changes[what]


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("no code", "nest 'codes' must have execute code to be run, and has none"),
        ("event", "events of row0 must be among those that the unit issues"),
        ("too few", "operands of callback 1 must be as many as its case pops, 2, not 1"),
        (
            "kind",
            "operand 0 of callback 1 must be a scalar of dtype index or i8 or i16 or i32 or i64, "
            "not a scalar of f32",
        ),
        ("row", "operand 1 of callback 1 must be a row that comes with its event, not row2"),
        ("case", "token must be a case of the execute code (1), not 7"),
    ],
)
def test_nest_that_contradicts_itself_is_refused(what: str, message: str) -> None:
    nest = _change(what)(nest_of(add_rows()))
    with raises(ProgramError, message):
        ExecuteSide(nest, arrays(), {}, "c")


def test_callback_of_an_event_that_is_not_issued_is_refused() -> None:
    code = code_of()
    nest = nest_of(code)
    nest = replace(nest, microcode=nest.microcode.with_field("issue", "events", 0))
    message = "event of callback 1 must be one that the microcode issues, not begin of level 1"
    with raises(ProgramError, message):
        ExecuteSide(nest, arrays(), {}, "c")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({}, "arrays of the execute side must hold 'sc', not only out"),
        (
            {"sc": np.zeros(3)},
            "array 'sc' must be C-contiguous, of float32 and of rank 1, "
            "not of float64 and shape (3,)",
        ),
        (
            {"sc": np.broadcast_to(np.zeros(1, np.float32), (1,))},
            "array 'sc' must be writeable, and isn't",
        ),
    ],
)
def test_arrays_are_those_of_the_code(changed: dict[str, Any], message: str) -> None:
    given = {"out": arrays()["out"], **changed}
    with raises(ProgramError, message):
        side_of(add_rows(), "c", arrays=given)


def test_scalars_are_those_of_the_code() -> None:
    code = code_of(entry=(Scalar("n", "N"),))
    with raises(ProgramError, "scalars of the execute side must hold 'N', not only B"):
        ExecuteSide(nest_of(code), arrays(), {"B": 1}, "c")


def test_engine_is_one_that_there_is() -> None:
    with raises(ValueError, "engine must be one of auto, c, numpy, not 'fpga'"):
        side_of(add_rows(), "fpga")


def test_without_a_compiler_numpy_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        return None

    monkeypatch.setattr(c_compiler, "find_compiler", none)
    monkeypatch.setattr("ember_hw.host.execution.side.find_compiler", none)
    assert side_of(add_rows(), "auto").engine == "numpy"
    message = (
        "a C compiler must be found for engine 'c' (CC, cc, gcc, clang or the package 'ziglang'), "
        "and none is; install one or use engine 'numpy'"
    )
    with raises(ToolError, message):
        c_compiler.build_library("int nothing;")
