from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ember_hw.compiler.interpreters.microcode import execute
from ember_hw.compiler.program import Callback, JsonValue, Kernel, Operand, Program
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError, ProgramError
from ember_hw.host.bindings.embedding_bag import lookup_request, request
from ember_hw.host.execute import Chunk, ExecuteSide, unpack_bundles
from ember_hw.host.launch import Launch, LoadedProgram
from ember_hw.host.reference import bit_equal, exact
from ember_hw.host.tests.programs import bag_program
from ember_hw.isa import Event, Microcode, event_mask

CONFIG = AcceleratorConfig.preset("small")
INDICES = np.array([3, 1, 4, 1, 5, 9, 2, 6])
OFFSETS = np.array([0, 0, 3, 3, 4, 8, 8])
TABLE = np.random.default_rng(0).standard_normal((10, 7), np.float32)


def launch_of(program: Program) -> Launch:
    (launch,) = LoadedProgram(program).launches(request(program, (INDICES, OFFSETS)))
    return launch


def whole_run(program: Program, launch: Launch) -> Chunk:
    regions = [(region.base, region.data) for region in launch.regions]
    chunks = list(execute(launch.microcode, regions))
    names = ("events", "scalars", "row_beats", "row_last")
    return Chunk(*(np.concatenate([getattr(c, name) for c in chunks]) for name in names))


def side_of(program: Program, microcode: Microcode) -> ExecuteSide:
    return ExecuteSide(
        program.nests[0].callbacks, microcode, {"out": (OFFSETS.size, TABLE.shape[1])}
    )


def expected(program: Program) -> np.ndarray:
    return exact(TABLE, lookup_request(program, (INDICES, OFFSETS)))


def cut(whole: Chunk, bundles: Sequence[int], beats: Sequence[int]) -> list[Chunk]:
    """Cut both queues at these positions."""
    bundle_edges = [0, *bundles, whole.events.size]
    beat_edges = [0, *beats, whole.row_last.size]
    return [
        Chunk(whole.events[a:b], whole.scalars[a:b], whole.row_beats[c:d], whole.row_last[c:d])
        for a, b, c, d in zip(
            bundle_edges, bundle_edges[1:], beat_edges, beat_edges[1:], strict=False
        )
    ]


@pytest.mark.parametrize("opt_level", [0, 1, 2, 3])
def test_chunks_may_be_cut_anywhere(opt_level: int) -> None:
    program = bag_program(TABLE, opt_level, config=CONFIG)
    launch = launch_of(program)
    whole = whole_run(program, launch)
    random = np.random.default_rng(opt_level)
    for _ in range(20):
        bundles = np.sort(random.integers(0, whole.events.size + 1, 5))
        beats = np.sort(random.integers(0, whole.row_last.size + 1, 5))
        side = side_of(program, launch.microcode)
        for chunk in cut(whole, bundles.tolist(), beats.tolist()):
            side.consume(chunk)
        assert bit_equal(side.finish()["out"], expected(program))
        assert side.bundles == whole.events.size
        assert side.row_beats == whole.row_last.size


def test_a_backend_may_reuse_the_arrays_of_a_chunk() -> None:
    program = bag_program(TABLE, 2, config=CONFIG)
    launch = launch_of(program)
    whole = whole_run(program, launch)
    side = side_of(program, launch.microcode)
    for chunk in cut(whole, [3, 4], [1, 7]):
        buffers = Chunk(
            chunk.events.copy(),
            chunk.scalars.copy(),
            chunk.row_beats.copy(),
            chunk.row_last.copy(),
        )
        side.consume(buffers)
        for reused in (buffers.events, buffers.scalars, buffers.row_beats, buffers.row_last):
            reused[...] = 0
    assert bit_equal(side.finish()["out"], expected(program))


def test_bytes_beyond_the_end_of_a_row_don_t_matter() -> None:
    for opt_level in (1, 2, 3):
        program = bag_program(TABLE, opt_level, config=CONFIG)
        launch = launch_of(program)
        whole = whole_run(program, launch)
        whole.row_beats.reshape(-1, 2, 16)[:, 1, 12:] = 0xFF  # NaN in the last lane
        side = side_of(program, launch.microcode)
        side.consume(whole)
        assert bit_equal(side.finish()["out"], expected(program))


def test_lost_row_beat_is_an_error() -> None:
    program = bag_program(TABLE, 3, config=CONFIG)
    launch = launch_of(program)
    whole = whole_run(program, launch)
    side = side_of(program, launch.microcode)
    side.consume(replace(whole, row_beats=whole.row_beats[:-1], row_last=whole.row_last[:-1]))
    message = "queues must be empty at the end of a program, not hold 3 bundles and 1 row beats"
    with pytest.raises(DeviceError, match=f"^{message}$"):
        side.finish()


def test_row_of_another_length_is_an_error() -> None:
    program = bag_program(TABLE, 3, config=CONFIG)
    launch = launch_of(program)
    whole = whole_run(program, launch)
    side = side_of(program, launch.microcode)
    message = "each row of row0 must be 2 beats on the row queue, not 1"
    with pytest.raises(DeviceError, match=f"^{message}$"):
        side.consume(replace(whole, row_last=np.ones_like(whole.row_last)))


def test_program_without_its_end_is_an_error() -> None:
    program = bag_program(TABLE, 3, config=CONFIG)
    launch = launch_of(program)
    whole = whole_run(program, launch)
    side = side_of(program, launch.microcode)
    side.consume(cut(whole, [1], [0])[0])
    message = "the last of 1 bundles must end the outermost loop, and doesn't"
    with pytest.raises(DeviceError, match=f"^{message}$"):
        side.finish()


@pytest.mark.parametrize("is_one_chunk", [True, False])
def test_bundle_after_the_end_is_an_error(is_one_chunk: bool) -> None:
    program = bag_program(TABLE, 3, config=CONFIG)
    launch = launch_of(program)
    end = np.array([event_mask([(Event.END, 0)], CONFIG)], np.uint32)
    scalars = np.zeros((1, CONFIG.bundle_scalars), np.uint32)
    no_beats, no_last = np.zeros((0, 16), np.uint8), np.zeros(0, np.bool_)
    one = Chunk(end, scalars, no_beats, no_last)
    two = Chunk(np.repeat(end, 2), np.repeat(scalars, 2, axis=0), no_beats, no_last)
    side = side_of(program, launch.microcode)
    message = "no bundle must follow the one that ends the outermost loop"

    def consume() -> None:
        for chunk in [two] if is_one_chunk else [one, one]:
            side.consume(chunk)

    with pytest.raises(DeviceError, match=f"^{message}$"):
        consume()


def with_parameters(callback: Callback, **changes: Any) -> Callback:
    assert callback.kernel is not None
    return replace(callback, kernel=Kernel("accumulate", {**callback.kernel.parameters, **changes}))


CALLBACK = bag_program(TABLE, 2, config=CONFIG).nests[0].callbacks[0]


@pytest.mark.parametrize(
    ("callbacks", "message"),
    [
        (
            [replace(CALLBACK, kernel=None)],
            "kernel of callback 1 must be one of accumulate, update, not None",
        ),
        (
            [replace(CALLBACK, kernel=Kernel("fold"))],
            "kernel of callback 1 must be one of accumulate, update, not 'fold'",
        ),
        (
            [replace(CALLBACK, event=Event.BEGIN)],
            "event of callback 1 must be one that the microcode issues, not begin of level 1",
        ),
        (
            [replace(CALLBACK, operands=(CALLBACK.operands[0], Operand("row", 0, "f16")))],
            "operand 1 of callback 1 must be of dtype f32, not 'f16'",
        ),
        (
            [replace(CALLBACK, operands=(Operand("scalar", 0, "bf16"), CALLBACK.operands[1]))],
            "operand 0 of callback 1 must be of dtype f32 or index or i8 or i16 or i32 or i64, "
            "not 'bf16'",
        ),
        (
            [replace(CALLBACK, operands=(CALLBACK.operands[0], Operand("row", 1, "f32")))],
            "operand 1 of callback 1 must be a row that comes with its event, not row1",
        ),
        (
            [with_parameters(CALLBACK, output="other")],
            "output of callback 1 must be one of out, not 'other'",
        ),
        (
            [CALLBACK, replace(CALLBACK, id=2)],
            "output 'out' must be written by one callback, not two",
        ),
        ([], "output 'out' must be written by a callback, and isn't"),
    ],
)
def test_callback_that_can_t_run_is_refused(callbacks: list[Callback], message: str) -> None:
    program = bag_program(TABLE, 2, config=CONFIG)
    with pytest.raises(ProgramError, match=f"^{re.escape(message)}$"):
        ExecuteSide(callbacks, program.nests[0].microcode, {"out": (1, TABLE.shape[1])})


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("length_source", 1, "length of row0 must be an immediate multiple of 4 bytes"),
        ("length", 30, "length of row0 must be an immediate multiple of 4 bytes"),
        ("events", 1, "events of row0 must be among those that the unit issues"),
    ],
)
def test_row_entry_that_can_t_be_read_is_refused(field: str, value: int, message: str) -> None:
    program = bag_program(TABLE, 2, config=CONFIG)
    microcode = program.nests[0].microcode.with_field("row0", field, value)
    with pytest.raises(ProgramError, match=f"^{message}$"):
        side_of(program, microcode)


def test_rows_of_several_entries_are_told_apart() -> None:
    """Row 0 comes with each iteration of level 0, row 1 with each second one, in one stream."""
    masks = [event_mask([(Event.ITERATE, 0)], CONFIG), event_mask([(Event.END, 1)], CONFIG)]
    records = {f"row{r}": {"events": mask, "length": 16} for r, mask in enumerate(masks)}
    end = event_mask([(Event.END, 0)], CONFIG)
    microcode = Microcode(CONFIG, {**records, "issue": {"events": masks[0] | masks[1]}})
    callbacks = [
        Callback(1, 0, Event.ITERATE, (Operand("row", 0, "f32"),), adding("a", variable=0)),
        Callback(2, 1, Event.END, (Operand("row", 1, "f32"),), adding("b", variable=1)),
    ]
    side = ExecuteSide(callbacks, microcode, {"a": (1, 4), "b": (1, 4)})
    events = np.array([masks[0], masks[0] | masks[1], masks[0], masks[1] | end], np.uint32)
    values = np.array([1, 2, 10, 4, 20], np.float32)
    side.consume(
        Chunk(
            events,
            np.zeros((4, 3), np.uint32),
            np.repeat(values, 4).view(np.uint8).reshape(5, 16),
            np.ones(5, np.bool_),
        )
    )
    outputs = side.finish()
    assert outputs["a"].tolist() == [[7] * 4]
    assert outputs["b"].tolist() == [[30] * 4]


def adding(output: str, *, variable: int) -> Kernel:
    parameters: dict[str, JsonValue] = {
        "output": output,
        "value": 0,
        "key": {"variable": variable, "initial": 0},
        "column": None,
        "weight": None,
        "updates": [],
    }
    return Kernel("accumulate", parameters)


@pytest.mark.parametrize("preset", ["default", "tiny"])
@pytest.mark.parametrize("traversal_units", [1, 2, 3, 4])
def test_bundles_are_unpacked_as_they_were_packed(preset: str, traversal_units: int) -> None:
    config = AcceleratorConfig.preset(preset).with_changes(
        traversal_units=traversal_units, bundle_scalars=5, exports=5
    )
    random = np.random.default_rng(traversal_units)
    events = random.integers(0, 1 << config.events, 50, np.uint32)
    scalars = random.integers(0, 1 << 32, (50, 5), np.uint32)
    packed = np.zeros((50, config.bundle_bytes), np.uint8)
    for i in range(50):
        word = int(events[i])
        for s in range(5):
            word |= int(scalars[i, s]) << (config.events + 32 * s)
        packed[i] = np.frombuffer(word.to_bytes(config.bundle_bytes, "little"), np.uint8)
    found_events, found_scalars = unpack_bundles(packed, config)
    assert np.array_equal(found_events, events)
    assert np.array_equal(found_scalars, scalars)


def test_no_bundle_is_unpacked_to_none() -> None:
    config = AcceleratorConfig.preset("tiny")
    events, scalars = unpack_bundles(np.zeros((0, config.bundle_bytes), np.uint8), config)
    assert events.shape == (0,)
    assert scalars.shape == (0, config.bundle_scalars)
