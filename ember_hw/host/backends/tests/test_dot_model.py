# pyright: basic
"""Sums across rows by array calls against those that go bundle by bundle."""

from __future__ import annotations

import numpy as np
import pytest

from ember_hw.compiler.interpreters.microcode_issue import Chunk
from ember_hw.compiler.interpreters.reduce import reduce_rows
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError
from ember_hw.host.backends.dot_model import DotModel
from ember_hw.isa import Chain, Event, Fold, Microcode, Place, RowFormat, event_mask
from ember_hw.registers import NO_UNIT, FaultCode, describe_fault

CONFIG = AcceleratorConfig(
    name="sums",
    data_width_bits=64,
    max_burst_beats=8,
    execute="reduce",
    reduce_dot=1,
    row_entries=3,
)
BEGIN, ITERATE, END = (event_mask([(event, 1)], CONFIG) for event in Event)
SCALARS = [0] * CONFIG.bundle_scalars
NORM = {"fold": Fold.ABSOLUTE, "second": Chain.ADD, "third": Chain.ADD}


def microcode(columns: int, places=tuple(Place), negated=(0, 0, 1), **header: int) -> Microcode:
    records = {"reduce": {"length": 4 * columns, **NORM, **header}}
    for entry, events in enumerate((BEGIN, ITERATE, ITERATE)):
        records[f"row{entry}"] = {"events": events}
        records[f"reduce{entry}"] = {"place": places[entry], "negated": negated[entry]}
    records["reduce2"]["emit_events"] = ITERATE
    return Microcode(CONFIG, records)


def chunk_of(events: list[int], rows: list[bytes]) -> Chunk:
    beats = [(row[i : i + 8], i + 8 >= len(row)) for row in rows for i in range(0, len(row), 8)]
    data = b"".join(beat.ljust(8, b"\1") for beat, _ in beats)
    return Chunk(
        events=np.array(events, np.uint32),
        scalars=np.array([SCALARS] * len(events), np.uint32).reshape(-1, len(SCALARS)),
        row_beats=np.frombuffer(data, np.uint8).reshape(-1, 8),
        row_last=np.array([last for _, last in beats], np.bool_),
        row_keep=np.array([len(beat) for beat, _ in beats], np.uint8),
    )


def drawn(rng: np.random.Generator, count: int, row_bytes: int) -> list[bytes]:
    rows = rng.standard_normal((count, -(-row_bytes // 4))).astype(np.float32)
    rows[rng.random(rows.shape) < 0.05] = np.inf
    rows.view(np.uint32)[rng.random(rows.shape) < 0.05] = 0xFFC12345
    return [row.tobytes()[:row_bytes] for row in rows]


@pytest.mark.parametrize("format", [RowFormat.FP32, RowFormat.BF16])
@pytest.mark.parametrize("seed", range(12))
def test_bits_are_those_of_the_bundles(seed: int, format: RowFormat) -> None:
    rng = np.random.default_rng(seed)
    columns = int(rng.integers(1, 9))
    header = {"fold": Fold(1 + seed % 3), "second": Chain(seed % 3), "format": int(format)}
    header["third"] = Chain.NONE if seed % 4 == 0 else Chain.ADD
    places = rng.permutation(list(Place)).tolist()
    program = microcode(columns, places, rng.integers(0, 2, 3).tolist(), **header)
    events = [BEGIN | ITERATE]
    events += rng.choice([BEGIN | ITERATE, ITERATE, END, BEGIN | END], 30).tolist()
    model = DotModel(program)
    rows: list[bytes] = []
    found: list[int] = []
    start = 0
    while start < len(events):
        part = events[start : start + int(rng.integers(1, 6))]
        count = sum(bool(e & BEGIN) + 2 * bool(e & ITERATE) for e in part)
        mine = drawn(rng, count, columns * (4 if format is RowFormat.FP32 else 2))
        for results in model.results(chunk_of(part, mine)):
            found += results.view(np.uint32).reshape(-1).tolist()
        rows += mine
        start += len(part)
    bundles = [(e, SCALARS) for e in events]
    expected = reduce_rows(program.records, CONFIG, bundles, rows)
    assert found == [int(row.view(np.uint32)[0]) for row in expected]


def test_nothing_leaves_where_nothing_is_asked_for() -> None:
    model = DotModel(microcode(3))
    assert list(model.results(chunk_of([END, END], []))) == []
    assert list(model.results(chunk_of([BEGIN], [bytes(12)]))) == []


def test_a_row_of_another_length_is_a_fault() -> None:
    with pytest.raises(DeviceError) as caught:
        list(DotModel(microcode(3)).results(chunk_of([BEGIN], [bytes(8)])))
    assert str(caught.value) == describe_fault(FaultCode.UNEXPECTED_ROW_LENGTH, NO_UNIT, 0, 0)


def test_a_sum_that_lacks_a_row_is_a_fault() -> None:
    model = DotModel(microcode(3))
    with pytest.raises(DeviceError) as caught:
        list(model.results(chunk_of([ITERATE], [bytes(12)] * 2)))
    assert str(caught.value) == describe_fault(FaultCode.UNEXPECTED_ROW_LENGTH, NO_UNIT, 0, 0)
