# pyright: basic
"""The reduce unit by array calls against the one that goes pass by pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_hw.compiler.interpreters.microcode_issue import Chunk
from ember_hw.compiler.interpreters.reduce import reduce_rows
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError, ProgramError
from ember_hw.host.backends.reduce_model import ReduceModel
from ember_hw.isa import Event, Microcode, ReduceOperation, RowFormat, Source, event_mask
from ember_hw.registers import NO_UNIT, FaultCode, describe_fault

CONFIG = AcceleratorConfig(name="reduces", data_width_bits=64, max_burst_beats=8, execute="reduce")
ITERATE, END = (event_mask([(event, 1)], CONFIG) for event in (Event.ITERATE, Event.END))
ROOT_END = event_mask([(Event.END, 0)], CONFIG)
#: Bits that arithmetic may trip over: zeros, denormals, 2^24, infinities, a NaN with a payload.
CORNERS = (0, 0x80000000, 1, 0x807FFFFF, 0x3F800000, 0x4B800000, 0x7F800000, 0xFF800000, 0xFFC12345)


def microcode(operation: ReduceOperation, **header: int) -> Microcode:
    step = {"operation": int(operation), "emit_events": END, "scaled": 0, "scalar": 1}
    step |= {name: header.pop(name) for name in tuple(header) if name in step}
    records = {"row0": {"events": ITERATE}, "reduce": header, "reduce0": step}
    return Microcode(CONFIG, records)


def bags(
    rng: np.random.Generator, columns: int, lengths: Any, row_bytes: int | None = None
) -> tuple[list[Chunk], list[tuple[int, list[int]]], list[bytes]]:
    """Return the same bags as chunks, and as bundles with rows."""
    bundles: list[tuple[int, list[int]]] = []
    rows: list[bytes] = []
    size = 4 * columns if row_bytes is None else row_bytes
    for number, length in enumerate(lengths):
        for place in range(max(length, 1)):
            events = ITERATE if length else 0
            events |= END if place + 1 >= length else 0
            is_last = number + 1 == len(lengths) and place + 1 >= length
            weight = int(rng.choice(CORNERS)) if rng.random() < 0.2 else int(rng.integers(1 << 32))
            bundles.append((events | (ROOT_END if is_last else 0), [4 * columns, weight, 0, 0]))
        for _ in range(length):
            row = rng.integers(0, 1 << 32, -(-size // 4), np.uint32)
            chosen = rng.random(len(row)) < 0.3
            row[chosen] = rng.choice(np.array(CORNERS, np.uint32), int(chosen.sum()))
            rows.append(row.tobytes()[:size])
    return chunks_of(rng, bundles, rows), bundles, rows


def chunks_of(
    rng: np.random.Generator, bundles: list[tuple[int, list[int]]], rows: list[bytes]
) -> list[Chunk]:
    """Cut bundles with their rows into chunks."""
    chunks: list[Chunk] = []
    waiting, start = iter(rows), 0
    while start < len(bundles):
        stop = start + int(rng.integers(1, 6))
        part = bundles[start:stop]
        mine = [next(waiting) for events, _ in part if events & ITERATE]
        beats = [(row[i : i + 8], i + 8 >= len(row)) for row in mine for i in range(0, len(row), 8)]
        data = b"".join(beat.ljust(8, b"\0") for beat, _ in beats)
        chunks.append(
            Chunk(
                events=np.array([events for events, _ in part], np.uint32),
                scalars=np.array([scalars for _, scalars in part], np.uint32),
                row_beats=np.frombuffer(data, np.uint8).reshape(-1, 8),
                row_last=np.array([last for _, last in beats], np.bool_),
                row_keep=np.array([len(beat) for beat, _ in beats], np.uint8),
            )
        )
        start = stop
    return chunks


def results(model: ReduceModel, chunks: list[Chunk]) -> list[list[int]]:
    return [
        row.view(np.uint32).tolist()
        for chunk in chunks
        for part in model.results(chunk)
        for row in np.ascontiguousarray(part)
    ]


@pytest.mark.parametrize("scaled", [0, 1])
@pytest.mark.parametrize("operation", list(ReduceOperation))
@pytest.mark.parametrize("seed", range(8))
def test_bits_are_those_of_the_passes(operation: ReduceOperation, scaled: int, seed: int) -> None:
    rng = np.random.default_rng([seed, operation, scaled])
    columns = int(rng.integers(1, 9))
    program = microcode(operation, scaled=scaled, length=4 * columns)
    chunks, bundles, rows = bags(rng, columns, rng.integers(0, 6, 9).tolist())
    expected = reduce_rows(program.records, CONFIG, bundles, rows)
    assert results(ReduceModel(program), chunks) == [r.view(np.uint32).tolist() for r in expected]


@pytest.mark.parametrize("format", [RowFormat.FP16, RowFormat.BF16])
def test_small_rows_are_widened(format: RowFormat) -> None:
    rng = np.random.default_rng(3)
    program = microcode(ReduceOperation.SUM, length=24, format=int(format))
    chunks, bundles, rows = bags(rng, 6, [2, 0, 3], row_bytes=12)
    expected = reduce_rows(program.records, CONFIG, bundles, rows)
    assert results(ReduceModel(program), chunks) == [r.view(np.uint32).tolist() for r in expected]


def test_lengths_come_with_bundles() -> None:
    rng = np.random.default_rng(5)
    program = microcode(ReduceOperation.SUM, length_source=int(Source.SLOT), length_scalar=0)
    chunks: list[Chunk] = []
    expected: list[list[int]] = []
    for columns in (3, 1, 6):
        some, bundles, rows = bags(rng, columns, [2, 0, 1])
        chunks += some
        found = reduce_rows(program.records, CONFIG, bundles, rows)
        expected += [row.view(np.uint32).tolist() for row in found]
    assert results(ReduceModel(program), chunks) == expected


def test_each_row_leaves_where_each_is_copied() -> None:
    rng = np.random.default_rng(6)
    program = microcode(ReduceOperation.COPY, emit_events=ITERATE, length=20)
    chunks, _, rows = bags(rng, 5, [3, 0, 2])
    assert results(ReduceModel(program), chunks) == [
        np.frombuffer(row, np.uint32).tolist() for row in rows
    ]


def test_rows_of_another_length_are_a_fault() -> None:
    chunks, _, _ = bags(np.random.default_rng(7), 5, [3])
    model = ReduceModel(microcode(ReduceOperation.SUM, length=16))
    with pytest.raises(DeviceError) as caught:
        results(model, chunks)
    assert str(caught.value) == describe_fault(FaultCode.UNEXPECTED_ROW_LENGTH, NO_UNIT, 0, 0)


def test_an_accumulator_of_another_length_is_a_fault() -> None:
    rng = np.random.default_rng(8)
    program = microcode(ReduceOperation.SUM, length_source=int(Source.SLOT), length_scalar=0)
    chunks = [
        chunk
        for columns in (2, 3)
        for chunk in chunks_of(rng, [(ITERATE, [4 * columns, 0, 0, 0])], [bytes(4 * columns)])
    ]
    with pytest.raises(DeviceError) as caught:
        results(ReduceModel(program), chunks)
    assert str(caught.value) == describe_fault(FaultCode.UNEXPECTED_ROW_LENGTH, NO_UNIT, 0, 0)


def test_rows_of_several_entries_are_not_combined() -> None:
    program = microcode(ReduceOperation.SUM, length=16)
    both = program.with_fields({("row1", "events"): ITERATE})
    with pytest.raises(ProgramError) as caught:
        ReduceModel(both)
    assert str(caught.value) == (
        "rows that the reduce unit combines must be those of 1 row entry on backend "
        "'interpreter', not of 2"
    )
