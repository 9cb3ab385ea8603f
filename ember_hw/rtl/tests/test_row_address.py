from __future__ import annotations

import random

import pytest

from ember_hw import isa
from ember_hw.isa import Source
from ember_hw.registers import NO_UNIT, FaultCode
from ember_hw.rtl.row_address import RowAddress
from ember_hw.rtl.tests.harness import CONFIG, Bench, gaps, payloads

PLAIN = {"base": 0x1000, "pitch": 64, "length": 40, "rows": 100}
SLOTS = {
    "index_export": 0,
    "rows_source": Source.SLOT,
    "rows_export": 1,
    "base_source": Source.SLOT,
    "base_export": 2,
    "pitch": 128,
    "length": 128,
}
LENGTHS = {
    "base": 0x8000,
    "rows": 50,
    "pitch_source": Source.SLOT,
    "pitch_export": 1,
    "length_source": Source.SLOT,
    "length_export": 2,
}
PART = PLAIN | {
    "pitch": 1 << 12,
    "length": 64,
    "offset_enable": 1,
    "offset_export": 1,
    "offset_shift": 3,
    "clip": 1000,
    "hint": isa.Hint.KEEP,
}


def _expected(record: dict, entry: int, exports: list[int]) -> tuple[dict | None, dict | None]:
    """Return a row's descriptor or its fault."""

    def value(name: str) -> int:
        if record.get(f"{name}_source") == Source.SLOT:
            return exports[record[f"{name}_export"]]
        return record.get(name, 0)

    index = exports[record.get("index_export", 0)]
    fault = {"unit": NO_UNIT, "stream": entry, "address": index}
    if index >= value("rows"):
        return None, fault | {"code": FaultCode.INDEX_OUT_OF_RANGE}
    base, pitch, length = value("base"), value("pitch"), value("length")
    if record.get("base_source") == Source.SLOT:
        base <<= 6
    offset = 0
    bad = pitch >= 1 << 20 or length >= 1 << 16 or length == 0
    bad |= base >= 1 << CONFIG.address_width_bits
    whole = length
    if record.get("offset_enable"):
        whole = record["clip"]
        offset = exports[record["offset_export"]]
        offset = (offset - (offset >> 31 << 32)) << record["offset_shift"]
        bad |= not 0 <= offset < record["clip"]
        length = min(length, record["clip"] - offset)
    bad |= (base | pitch | offset) % CONFIG.bus_bytes != 0 or whole > pitch
    if bad:
        return None, fault | {"code": FaultCode.ROW_OUT_OF_BOUNDS}
    address = base + index * pitch + offset & (1 << CONFIG.address_width_bits) - 1
    hint = record.get("hint", isa.Hint.NONE)
    return {"address": address, "length": length, "hint": hint, "entry": entry}, None


def _simulate(records: list[dict], rows: list[dict], *, seed: int = 0, stall: float = 0.0):
    dut = RowAddress(config=CONFIG)
    bench = Bench(dut, seed=seed)

    async def configure(ctx):
        for port, record in zip(dut.rows, records, strict=True):
            ctx.set(port, record)

    outcomes = [_expected(records[row["entry"]], row["entry"], row["exports"]) for row in rows]
    wanted = [descriptor for descriptor, _ in outcomes if descriptor is not None]
    bench.process(configure)
    sent = bench.send(dut.row, rows, stall=stall)
    descriptors = bench.receive(dut.descriptor, len(wanted), stall=stall)
    asked = bench.watch(dut.rows_asked, dut.bytes_asked)
    faults = bench.watch(dut.fault.valid, dut.fault.payload)

    async def drain(ctx):
        while len(sent) < len(rows):
            await ctx.tick()
        await ctx.tick().repeat(8)

    bench.process(drain)
    bench.run(3000)
    assert payloads(descriptors) == wanted
    assert payloads(asked) == [descriptor["length"] for descriptor in wanted]
    assert payloads(faults) == [fault for _, fault in outcomes if fault is not None]
    return sent, descriptors


def _rows(seed: int, count: int, choices: list[list[int]]) -> list[dict]:
    dice = random.Random(seed)
    return [
        {
            "entry": dice.randrange(CONFIG.row_entries),
            "exports": [dice.choice(choice) & 0xFFFF_FFFF for choice in choices],
        }
        for _ in range(count)
    ]


@pytest.mark.parametrize(("seed", "stall"), [(1, 0.0), (2, 0.4)])
def test_rows_of_both_entries(seed: int, stall: float):
    rows = _rows(seed, 40, [list(range(20)), list(range(20, 50)), list(range(1, 9))])
    _simulate([PLAIN, SLOTS], rows, seed=seed, stall=stall)


def test_lengths_and_pitches_from_values():
    rows = _rows(3, 40, [list(range(40)), [64, 128, 1 << 16], [1, 8, 64]])
    _simulate([LENGTHS, PLAIN], rows, seed=3, stall=0.3)


def test_parts_of_rows_are_cut_at_the_clip():
    rows = _rows(4, 40, [list(range(40)), [0, 8, 64, 120, 124], [0]])
    for row in rows:
        row["entry"] = 0
    _simulate([PART, PLAIN], rows, seed=4, stall=0.3)


OUTSIDE_INDEX = [[100, 0, 0], [0xFFFF_FFFF, 0, 0], [1 << 31, 0, 0]]
OUTSIDE_PART = [[0, 125, 0], [0, 0xFFFF_FFFF, 0], [0, 1 << 31, 0], [0, (1 << 31) - 1, 0]]
OUTSIDE_SIZE = [[0, 1 << 20, 8], [0, 64, 1 << 16], [0, 64, 0], [0, 64, 0xFFFF_FFFF]]
OUTSIDE_PITCH = [[0, 64, 65], [1, 0, 8], [0, 68, 8]]  # longer than the pitch, and off the beat


@pytest.mark.parametrize(
    ("record", "exports"),
    [
        *((PLAIN, exports) for exports in OUTSIDE_INDEX),
        *((PART, exports) for exports in OUTSIDE_PART),
        *((LENGTHS, exports) for exports in OUTSIDE_SIZE + OUTSIDE_PITCH),
        (PART | {"offset_shift": 0}, [0, 4, 0]),  # a part that begins off the beat
        (PLAIN | {"base_source": Source.SLOT, "base_export": 1}, [0, 1 << 31, 0]),
        (PLAIN | {"rows": 0}, [0, 0, 0]),
        (PART, [100, 125, 0]),  # the index is blamed before the part
    ],
)
def test_what_is_outside_is_reported_and_never_asked_for(record: dict, exports: list[int]):
    good = {"entry": 1, "exports": [3, 0, 0]}
    rows = [good, {"entry": 0, "exports": exports}, good]
    outcomes = [_expected(record, 0, exports), _expected(PLAIN, 1, good["exports"])]
    assert outcomes[0][1] is not None
    assert outcomes[1][0] is not None
    _simulate([record, PLAIN], rows)


def test_one_row_a_cycle():
    rows = _rows(5, 40, [list(range(20))] * 3)
    for row in rows:
        row["entry"] = 0
    sent, descriptors = _simulate([PLAIN, PLAIN], rows)
    assert gaps(sent) == gaps(descriptors) == {1}
    assert descriptors[0].cycle - sent[0].cycle == 7
