"""Every hand-written program delivers what plain loops say, on every config."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_hw.bench.programs import TASKS, Task, config_for_all, program_text
from ember_hw.bench.programs.blocks import block_attention
from ember_hw.bench.programs.expected import BEGIN, END, ITERATE, Recorder
from ember_hw.compiler.backend.assemble import assemble_text
from ember_hw.compiler.interpreters.microcode import execute
from ember_hw.config import PRESETS, AcceleratorConfig
from ember_hw.errors import CheckError
from ember_hw.isa import Microcode, disassemble
from ember_hw.isa import assemble as assemble_records

CONFIG = config_for_all(PRESETS["default"], input_queue=True)
#: Sizes that take a moment: each task's, by its name.
SMALL: dict[str, dict[str, Any]] = {
    **{name: {"lookups": 200} for name in ("embedding_bag", "embedding_bag_weighted", "gather")},
    **{name: {"requests": 5} for name in ("embedding_bag_requests", "embedding_bag_queue")},
    "tables": {"count": 5, "bags": 7},
    "tables_of_one_bag": {"count": 40},
    "tables_of_shapes": {"count": 5, "bags": 7},
    **{name: {"edges": 200} for name in ("spmm", "message_passing", "fusedmm")},
    "knowledge_graph": {"triples": 70},
    "block_attention": {"blocks": 12},
}


def delivered(task: Task, config: AcceleratorConfig) -> dict[str, Any]:
    launches = task.launches(config)
    chunks = list(
        execute(
            launches[0].microcode,
            [(region.base, region.data) for region in launches[0].regions],
            requests=[launch.arguments for launch in launches],
            lines=task.lines,
        )
    )
    names = ("events", "scalars", "row_beats", "row_last")
    return {name: np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in names}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", TASKS)
def test_program_delivers_what_the_loops_say(name: str, preset: str, seed: int) -> None:
    task = TASKS[name](seed, **SMALL[name])
    config = task.config(PRESETS[preset])
    task.expected.check(name, config, **delivered(task, config))
    assert task.name == name
    assert task.params
    assert 0 < task.limit(config) <= 1


@pytest.mark.parametrize("name", TASKS)
def test_one_config_holds_all_programs(name: str) -> None:
    task = TASKS[name](**SMALL[name])
    assert task.config(CONFIG) == CONFIG
    microcode = task.launch(CONFIG, outstanding_reads=7).microcode
    assert microcode.get("header", "outstanding_reads") == 7
    assert Microcode.decode(microcode.encode(), CONFIG) == microcode
    assert assemble_records(disassemble(microcode), CONFIG) == microcode


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("embedding_bag", {"bag": 1, "row_bytes": 64}),
        ("embedding_bag", {"bag": 5, "index_type": "i64"}),
        ("embedding_bag_weighted", {"bag": 80, "index_type": "i64", "row_bytes": 260}),
        ("gather", {"index_type": "i64", "row_bytes": 4}),
        ("tables_of_one_bag", {"row_bytes": 256}),
        ("message_passing", {"row_bytes": 72}),
        *(("block_attention", {"block_rows": rows, "query_rows": 2}) for rows in (1, 2, 8)),
    ],
)
def test_other_shapes(name: str, shape: dict[str, Any]) -> None:
    task = TASKS[name](**{**SMALL[name], **shape})
    task.expected.check(name, CONFIG, **delivered(task, CONFIG))


@pytest.mark.parametrize("name", TASKS)
def test_poisoned_tables_are_found_out(name: str) -> None:
    task = TASKS[name](**SMALL[name])
    for symbol, array in task.arrays.items():
        if array.ndim == 2 or symbol == "tables":
            array.view(np.uint32)[...] ^= 1
    with pytest.raises(CheckError, match=rf"^beat 0 of '{name}' must have the bytes of row 0"):
        task.expected.check(name, CONFIG, **delivered(task, CONFIG))


def test_lines_of_a_request_come_together() -> None:
    task = TASKS["embedding_bag_queue"](requests=3, bags=20, lookups=40)
    places = [place for place, _ in task.feed]
    assert places == [(0, 0), (0, 0), (1, 0), (1, 0), (1, 0)] * 3
    for place, lines in task.lines.items():
        fed = [line for at, line in task.feed if at == place]
        np.testing.assert_array_equal(np.stack(fed), lines)
    assert TASKS["gather"](lookups=3).feed == []


# What came


def expected() -> Recorder:
    recorder = Recorder()
    recorder.token((ITERATE, 1), scalars={1: np.float32(1.0)}, rows=[np.arange(20, dtype="f4")])
    recorder.token((END, 1), rows=[np.ones(4, np.float32)])
    recorder.token()
    recorder.end()
    return recorder


def came() -> dict[str, Any]:
    beats = np.full((3, 64), 0xAA, np.uint8)
    beats[:2].reshape(-1)[:80] = np.arange(20, dtype="f4").view(np.uint8)
    beats[2, :16] = np.ones(4, np.float32).view(np.uint8)
    return {
        "events": np.array([1 << 4, 1 << 7, 1 << 6], np.uint32),
        "scalars": np.array([[9, 0x3F800000, 9, 9], [9, 9, 9, 9], [9, 9, 9, 9]], np.uint32),
        "row_beats": beats,
        "row_last": np.array([0, 1, 1], np.uint8),
    }


def test_bytes_and_scalars_that_mean_nothing_are_not_compared() -> None:
    delivery = expected().delivery()
    delivery.check("x", PRESETS["default"], **came())
    assert delivery.tokens == 3


@pytest.mark.parametrize(
    ("part", "place", "value", "message"),
    [
        ("events", 1, 5, "events of bundle 1 of 'x' must be 0x80, not 0x5"),
        ("scalars", (0, 1), 5, "scalar 1 of bundle 0 of 'x' must be 0x3f800000, not 0x5"),
        ("row_beats", (1, 3), 5, "beat 1 of 'x' must have the bytes of row 0, and doesn't"),
        ("row_last", 2, 0, "end of a row at beat 2 of 'x' must be True, not False"),
        ("row_last", 0, 1, "end of a row at beat 0 of 'x' must be False, not True"),
    ],
)
def test_what_differs_is_named(part: str, place: Any, value: int, message: str) -> None:
    found = came()
    found[part][place] = value
    with pytest.raises(CheckError) as raised:
        expected().delivery().check("x", PRESETS["default"], **found)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("events", "scalars"), "bundles of 'x' must be 3, not 2"),
        (("row_beats", "row_last"), "row beats of 'x' must be 3, not 2"),
    ],
)
def test_what_is_missing_is_counted(names: tuple[str, ...], message: str) -> None:
    found = came()
    for name in names:
        found[name] = found[name][:2]
    with pytest.raises(CheckError) as raised:
        expected().delivery().check("x", PRESETS["default"], **found)
    assert str(raised.value) == message


def test_a_request_without_a_step_is_one_token() -> None:
    recorder = Recorder()
    recorder.end()
    recorder.token((BEGIN, 0), rows=[np.zeros(1, np.float32)])
    recorder.end()
    delivery = recorder.delivery()
    assert delivery.bundles == (frozenset({(END, 0)}), frozenset({(BEGIN, 0), (END, 0)}))
    assert delivery.tokens == 2


# Limits


@pytest.mark.parametrize(
    ("name", "shape", "limit"),
    [
        # The last offset of all, which no bag begins with, adds a little to the closed form.
        ("embedding_bag", {"row_bytes": 64, "bag": 1}, 64 / (64 + 4 + 4)),
        ("embedding_bag", {"row_bytes": 64, "bag": 80}, 64 / (64 + 4 + 4 / 80)),
        ("embedding_bag", {"row_bytes": 256, "bag": 8, "index_type": "i64"}, 256 / (256 + 9)),
        ("embedding_bag_weighted", {"row_bytes": 64, "bag": 8}, 64 / (64 + 8 + 0.5)),
        ("gather", {"row_bytes": 40}, 40 / (64 + 4)),
        ("knowledge_graph", {"row_bytes": 64}, 3 * 64 / (3 * 64 + 12)),
        ("embedding_bag_requests", {}, 64 * 256 / (64 * 256 + 256 + 64)),
        ("embedding_bag_queue", {}, 1.0),
    ],
)
def test_limit_is_the_closed_form(name: str, shape: dict[str, Any], limit: float) -> None:
    assert TASKS[name](**shape).limit(CONFIG) == pytest.approx(limit, rel=1e-4)


def test_limit_of_blocks_and_ports() -> None:
    task = block_attention(row_bytes=64, block_rows=1, query_rows=1, blocks=64)
    attended = task.params["attended"]
    useful, indices = 64 * (64 + 2 * attended), 4 * attended + 4 * 65
    assert task.limit(CONFIG) == pytest.approx(useful / (useful + indices))
    own_port = CONFIG.with_changes(index_port_bits=128)
    assert task.limit(own_port) == 1.0
    assert task.limit(CONFIG.with_changes(memory_ports=2)) == 1.0
    slow = TASKS["embedding_bag"](row_bytes=64, bag=1).limit(
        CONFIG.with_changes(index_port_bits=64)
    )
    assert slow == pytest.approx(1.0, rel=1e-3)
    weights = TASKS["embedding_bag_weighted"](row_bytes=64, bag=1, index_type="i64")
    assert weights.limit(own_port) == pytest.approx(16 / 20, rel=1e-3)


def test_one_token_and_one_row_a_cycle_are_a_limit() -> None:
    wide = TASKS["gather"](row_bytes=64).limit(CONFIG.with_changes(index_port_bits=512))
    assert wide == 1.0
    tables = TASKS["tables_of_one_bag"](row_bytes=64)
    wanted = len(tables.expected.row_lengths) / tables.expected.tokens
    assert tables.limit(CONFIG.with_changes(index_port_bits=512)) == pytest.approx(wanted)


# Text


def test_index_type_leaves_the_places_of_tables() -> None:
    text = program_text("tables", "i64")
    assert 'a0 "distance" : memref<?xi32>' in text
    assert "= a0[t0] : i32" in text
    assert 'a2 "idx" : memref<?xi64>' in text
    assert "= a1[t0 * a5 + t1] : i64" in text
    assert assemble_text(text, CONFIG).arguments[1].type == "memref<?xi64>"


def test_name_of_a_program_is_one_of_those_there_are() -> None:
    with pytest.raises(
        ValueError, match=r"^program must be one of block_attention, embedding_bag,"
    ):
        program_text("pooling")
