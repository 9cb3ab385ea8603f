"""Hand-written programs, assembled, bound and interpreted, equal NumPy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from ember_hw.compiler.backend.assemble import Assembly, assemble_text
from ember_hw.compiler.interpreters.microcode import (
    CHUNK_ROW_BYTES,
    CHUNK_TOKENS,
    execute,
)
from ember_hw.compiler.program import Callback
from ember_hw.compiler.tests.programs import embedding_bag_sum
from ember_hw.config import PRESETS, AcceleratorConfig
from ember_hw.errors import AssemblyError
from ember_hw.isa import Event, Microcode, event_bit

PAGE_BYTES = 4096
#: Lengths of bags: empty first, in the middle, last, side by side; none at all; no bag.
BAGS = {
    "mixed": [0, 3, 0, 1, 0, 0, 5, 2, 0],
    "one": [4],
    "one_empty": [0],
    "all_empty": [0, 0, 0],
    "full": [2, 2, 2],
    "no_bag": [],
}


def lay_out(
    arrays: Mapping[str, NDArray[Any]], config: AcceleratorConfig
) -> tuple[dict[str, int], list[tuple[int, NDArray[np.uint8]]]]:
    """Place arrays in memory; rows and regions are padded to the bus width."""
    environment: dict[str, int] = {}
    regions: list[tuple[int, NDArray[np.uint8]]] = []
    address = 1 << 20
    for symbol, array in arrays.items():
        if array.ndim == 2:
            padding = -array.shape[1] % (config.bus_bytes // array.itemsize)
            array = np.pad(array, ((0, 0), (0, padding)), constant_values=np.nan)
            environment |= {f"{symbol}.rows": len(array), f"{symbol}.pitch": array.shape[1]}
        environment[f"{symbol}.elements"] = array.size
        content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        content = np.pad(content, (0, -len(content) % 64))
        environment |= {symbol: address, f"{symbol}.bytes": len(content)}
        regions.append((address, content))
        address += PAGE_BYTES + len(content) // PAGE_BYTES * PAGE_BYTES
    return environment, regions


def tokens(
    assembly: Assembly,
    microcode: Microcode,
    regions: list[tuple[int, NDArray[np.uint8]]],
    chunk_tokens: int = CHUNK_TOKENS,
    chunk_row_bytes: int = CHUNK_ROW_BYTES,
) -> Iterator[tuple[Callback | None, list[Any]]]:
    """Expand what the queues deliver into callbacks and their operands, at the end None."""
    config, levels = assembly.config, range(assembly.config.traversal_units)
    order = [(e, k) for k in levels for e in (Event.BEGIN, Event.ITERATE)]
    order += [(Event.END, k) for k in reversed(levels)]
    by_event = {(callback.event, callback.level): callback for callback in assembly.callbacks}
    chunks = execute(microcode, regions, chunk_tokens=chunk_tokens, chunk_row_bytes=chunk_row_bytes)
    for chunk in chunks:
        beats = iter(zip(chunk.row_beats, chunk.row_last, chunk.row_keep, strict=True))

        def next_row(beats: Iterator[Any] = beats) -> NDArray[np.float32]:
            parts: list[NDArray[np.uint8]] = []
            for beat, last, keep in beats:
                parts.append(beat[:keep])
                if last:
                    return np.concatenate(parts).view(np.float32)
            raise AssertionError("a row must end within its chunk")

        for events, scalars in zip(chunk.events, chunk.scalars, strict=True):
            rows = {
                entry: next_row()
                for entry in range(config.row_entries)
                if microcode.get(f"row{entry}", "events") & int(events)
            }
            for event, level in order:
                if not int(events) >> event_bit(event, level, config) & 1:
                    continue
                callback = by_event.get((event, level))
                if callback is not None:
                    operands: list[Any] = []
                    for operand in callback.operands:
                        if operand.kind == "row":
                            operands.append(rows[operand.index])
                        else:
                            dtype = np.float32 if operand.dtype == "f32" else np.int32
                            operands.append(
                                scalars[operand.index : operand.index + 1].view(dtype)[0]
                            )
                    yield callback, operands
                if (event, level) == (Event.END, 0):
                    yield None, []
        assert next(beats, None) is None


def pool(
    opt_level: int, stream: Iterator[tuple[Callback | None, list[Any]]], bags: int, width: int
) -> NDArray[np.float32]:
    """Sum rows into bags as the callbacks of each level do."""
    out = np.zeros((bags, width), np.float32)
    bag, ended = 0, False
    for callback, operands in stream:
        assert not ended, "nothing may follow the end of the root"
        if callback is None:
            ended = True
        elif opt_level == 0:
            row, column, value = operands
            out[row, column] += value
        elif opt_level == 1:
            row, column, values = operands
            out[row, column : column + len(values)] += values
        elif opt_level == 2:
            row, values = operands
            out[row] += values
        elif callback.event is Event.ITERATE:
            out[bag] += operands[0]
        else:
            bag += 1
    assert ended
    return out


@pytest.mark.parametrize("lengths", BAGS.values(), ids=BAGS.keys())
@pytest.mark.parametrize("index_type", ["i32", "i64"])
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("opt_level", range(4))
def test_embedding_bag_sum_equals_numpy(
    opt_level: int, preset: str, index_type: Literal["i32", "i64"], lengths: list[int]
) -> None:
    config = PRESETS[preset]
    rng = np.random.default_rng(opt_level)
    dtype: Any = {"i32": np.int32, "i64": np.int64}[index_type]
    assembly = assemble_text(embedding_bag_sum(opt_level, config, index_type), config)
    for width in (1, 5, 16, 20):
        table = rng.standard_normal((11, width)).astype(np.float32)
        offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        indices = rng.integers(0, len(table), int(offsets[-1])).astype(dtype)
        arrays: dict[str, NDArray[Any]] = {
            "off": offsets.astype(np.int64),
            "idx": indices,
            "tab": table,
        }
        environment, regions = lay_out(arrays, config)
        environment |= {"B": len(lengths), "D": width}
        microcode = assembly.nest().bind(environment)

        expected = np.zeros((len(lengths), width), np.float32)
        for bag in range(len(lengths)):
            for index in indices[offsets[bag] : offsets[bag + 1]]:
                expected[bag] += table[index]
        for limits in ({}, {"chunk_tokens": 3, "chunk_row_bytes": 100}):
            stream = tokens(assembly, microcode, regions, **limits)
            np.testing.assert_array_equal(
                pool(opt_level, stream, len(lengths), width), expected, strict=True
            )


@pytest.mark.parametrize("opt_level", range(4))
def test_words_decode_to_the_assembled_records(opt_level: int) -> None:
    for config in PRESETS.values():
        microcode = assemble_text(embedding_bag_sum(opt_level, config), config).microcode
        words = microcode.encode()
        again = Microcode.decode(words, config)
        assert again == microcode
        assert again.encode() == words


def test_part_shorter_than_the_bus_is_refused() -> None:
    text = embedding_bag_sum(1, PRESETS["tiny"])
    with pytest.raises(AssemblyError) as raised:
        assemble_text(text, PRESETS["default"])
    assert str(raised.value) == (
        "au: 'au.row r0 on t2': length must be a multiple of 16 elements, the bus width of config "
        "'default', not 2"
    )
