from __future__ import annotations

import random

import pytest

from ember_hw import isa
from ember_hw.isa import ElementSize, Source
from ember_hw.registers import NO_UNIT, FaultCode
from ember_hw.rtl.row_address import RowAddress
from ember_hw.rtl.tests.harness import CONFIG as SHORT
from ember_hw.rtl.tests.harness import Bench, gaps, payloads

#: As many places for descriptors as one row a cycle needs.
CONFIG = SHORT.with_changes(descriptor_entries=16)
END = 1 << CONFIG.address_width_bits

PLAIN = {"base": 0x1000, "region_bytes": 64 * 99 + 40, "pitch": 64, "length": 40, "rows": 100}
SLOTS = {
    "index_export": 0,
    "rows_source": Source.SLOT,
    "rows_export": 1,
    "base": 0x2000,
    "region_bytes": 1 << 20,
    "base_source": Source.SLOT,
    "base_export": 2,
    "pitch": 128,
    "length": 128,
}
LENGTHS = {
    "base": 0x8000,
    "region_bytes": 1 << 22,
    "rows": 50,
    "pitch_source": Source.SLOT,
    "pitch_export": 1,
    "length_source": Source.SLOT,
    "length_export": 2,
}
PART = PLAIN | {
    "region_bytes": 1 << 20,
    "pitch": 1 << 12,
    "length": 64,
    "offset_enable": 1,
    "offset_export": 1,
    "offset_size": ElementSize.BYTES_8,
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
    if record["base"] + record["region_bytes"] > END:
        return None, fault | {"code": FaultCode.ADDRESS_OVERFLOW}
    base, pitch, length = record["base"], value("pitch"), value("length")
    offset = 0
    bad = pitch >= 1 << 20 or length >= 1 << 16 or length == 0
    whole = length
    if record.get("offset_enable"):
        whole = record["clip"]
        offset = exports[record["offset_export"]]
        offset = (offset - (offset >> 31 << 32)) << record["offset_size"]
        bad |= not 0 <= offset < record["clip"]
        length = min(length, record["clip"] - offset)
    place = index * pitch + offset
    if record.get("base_source") == Source.SLOT:
        place += exports[record["base_export"]] << 6
    bad |= (base | pitch | offset) % CONFIG.bus_bytes != 0 or whole > pitch
    if bad or place + length > record["region_bytes"]:
        return None, fault | {"code": FaultCode.ROW_OUT_OF_BOUNDS}
    hint = record.get("hint", isa.Hint.NONE)
    return {"address": base + place, "last_byte": length - 1, "hint": hint, "entry": entry}, None


def _simulate(
    records: list[dict],
    rows: list[dict],
    *,
    seed: int = 0,
    stall: float = 0.0,
    start: int = 0,
    config=CONFIG,
):
    dut = RowAddress(config=config)
    bench = Bench(dut, seed=seed)

    async def microcode(ctx):
        # Like a memory's read port: the record follows the entry within the cycle.
        async for (entry,) in ctx.changed(dut.entry):
            ctx.set(dut.record, records[entry])

    bench.simulator.add_process(microcode)
    outcomes = [_expected(records[row["entry"]], row["entry"], row["exports"]) for row in rows]
    wanted = [descriptor for descriptor, _ in outcomes if descriptor is not None]
    sent = bench.send(dut.row, rows, stall=stall)
    descriptors = bench.receive(dut.descriptor, len(wanted), stall=stall, start=start)
    asked = bench.watch(dut.asked.any(), dut.asked)
    lengths = bench.watch(dut.asked.any(), dut.bytes_asked)
    faults = bench.watch(dut.fault.valid, dut.fault.payload)

    async def drain(ctx):
        while len(sent) < len(rows):
            await ctx.tick()
        await ctx.tick().repeat(12)

    bench.process(drain)
    bench.run(3000)
    assert payloads(descriptors) == wanted
    assert payloads(asked) == [1 << descriptor["entry"] for descriptor in wanted]
    assert payloads(lengths) == [descriptor["last_byte"] + 1 for descriptor in wanted]
    assert payloads(faults) == [fault for _, fault in outcomes if fault is not None]
    return sent, descriptors


def _rows(seed: int, count: int, choices: list[list[int]], entry: int | None = None) -> list[dict]:
    dice = random.Random(seed)
    return [
        {
            "entry": dice.randrange(CONFIG.row_entries) if entry is None else entry,
            "exports": [dice.choice(choice) & 0xFFFF_FFFF for choice in choices],
        }
        for _ in range(count)
    ]


@pytest.mark.parametrize(("seed", "stall"), [(1, 0.0), (2, 0.4), (3, 0.7)])
def test_rows_of_both_entries(seed: int, stall: float):
    rows = _rows(seed, 40, [list(range(20)), list(range(20, 50)), list(range(1, 9))])
    _simulate([PLAIN, SLOTS], rows, seed=seed, stall=stall)


def test_lengths_and_pitches_from_values():
    rows = _rows(3, 40, [list(range(40)), [64, 128, 1 << 16], [1, 8, 64]])
    _simulate([LENGTHS, PLAIN], rows, seed=3, stall=0.3)


@pytest.mark.parametrize("size", ElementSize)
def test_parts_of_rows_are_cut_at_the_clip(size: ElementSize):
    counts = [offset >> size for offset in (0, 8, 64, 936, 944, 960, 992, 1000, 1008)]
    rows = _rows(4, 40, [list(range(40)), counts, [0]], entry=0)
    _simulate([PART | {"offset_size": size}, PLAIN], rows, seed=4, stall=0.3)


def test_random_rows_around_the_end_of_their_region():
    """Tables anywhere in a region, of any shape: none is asked for that is not wholly inside."""
    dice = random.Random(5)
    for seed in range(12):
        record = SLOTS | {
            "base": 64 * dice.randrange(100),
            "region_bytes": dice.randrange(1 << 12),
            "rows": dice.randrange(40),
            "rows_source": Source.IMMEDIATE,
            "pitch": 8 * dice.randrange(40),
            "length": dice.randrange(100),
            "offset_enable": dice.randrange(2),
            "offset_export": 1,
            "offset_size": dice.choice(list(ElementSize)),
            "clip": dice.randrange(200),
        }
        rows = _rows(seed, 60, [list(range(40)), list(range(20)), list(range(60))])
        records = [record, record | {"offset_enable": 0}]
        # Rows that are dropped keep their places: some of those at a time.
        faults = 0
        some = []
        for row in rows:
            faults += _expected(records[row["entry"]], row["entry"], row["exports"])[0] is None
            if faults < 12:
                some.append(row)
        _simulate(records, some, seed=seed, stall=0.1)


OUTSIDE_INDEX = [[100, 0, 0], [0xFFFF_FFFF, 0, 0], [1 << 31, 0, 0]]
OUTSIDE_PART = [[0, 125, 0], [0, 0xFFFF_FFFF, 0], [0, 1 << 31, 0], [0, (1 << 31) - 1, 0]]
OUTSIDE_SIZE = [[0, 1 << 20, 8], [0, 64, 1 << 16], [0, 64, 0], [0, 64, 0xFFFF_FFFF]]
OUTSIDE_PITCH = [[0, 64, 65], [1, 0, 8], [0, 68, 8]]  # longer than the pitch, and off the beat
FAR = PLAIN | {"base_source": Source.SLOT, "base_export": 1}


@pytest.mark.parametrize(
    ("record", "exports"),
    [
        *((PLAIN, exports) for exports in OUTSIDE_INDEX),
        *((PART, exports) for exports in OUTSIDE_PART),
        *((LENGTHS, exports) for exports in OUTSIDE_SIZE + OUTSIDE_PITCH),
        (PART | {"offset_size": ElementSize.BYTES_1}, [0, 4, 0]),  # a part off the beat
        (PART | {"clip": 0}, [0, 0, 0]),
        (PLAIN | {"rows": 0}, [0, 0, 0]),
        (PLAIN | {"base": 0x1004}, [0, 0, 0]),
        (PART, [100, 125, 0]),  # the index is blamed before the part
        # Beyond the region: by a byte, far, and so far that it would come round.
        (PLAIN | {"region_bytes": 64 * 3 + 39}, [3, 0, 0]),
        (PLAIN | {"region_bytes": 39}, [0, 0, 0]),
        (PLAIN | {"region_bytes": 0}, [0, 0, 0]),
        (FAR, [0, 100, 0]),
        (FAR, [0, 1 << 26, 0]),  # 64 of it are the address width
        (FAR, [0, 1 << 31, 0]),
        (FAR, [0, 0xFFFF_FFFF, 0]),
        (PLAIN | {"rows": 0xFFFF_FFFF}, [1 << 26, 0, 0]),
        (PLAIN | {"rows": 0xFFFF_FFFF, "pitch": 0xFFFF8}, [0xFFFF_FFFE, 0, 0]),
        # A region that is not in memory is blamed before a row of it.
        (PLAIN | {"base": END - 64, "region_bytes": 65}, [0, 0, 0]),
        (PLAIN | {"base": END - 64, "region_bytes": END - 1}, [99, 0, 0]),
        (PLAIN | {"base": END - 64, "region_bytes": 65, "length": 0}, [0, 0, 0]),
        (PLAIN | {"base": END - 64, "region_bytes": 65}, [100, 0, 0]),
    ],
)
def test_what_is_outside_is_reported_and_never_asked_for(record: dict, exports: list[int]):
    good = {"entry": 1, "exports": [3, 0, 0]}
    rows = [good, {"entry": 0, "exports": exports}, good]
    assert _expected(record, 0, exports)[0] is None
    assert _expected(PLAIN, 1, good["exports"])[0] is not None
    _simulate([record, PLAIN], rows)


@pytest.mark.parametrize(
    ("record", "exports"),
    [
        (PLAIN | {"region_bytes": 64 * 3 + 40}, [3, 0, 0]),
        (PLAIN | {"base": END - 64, "region_bytes": 64}, [0, 0, 0]),
        (PART | {"region_bytes": 4096 + 1000}, [1, 120, 0]),  # only what is fetched must be inside
        (FAR, [0, 99, 0]),
        (
            PLAIN | {"rows": 0xFFFF_FFFF, "base": 0, "region_bytes": END - 1, "pitch": 0x80000},
            [0x1FFF, 0, 0],
        ),
        (LENGTHS, [0, 0xFFFF8, 0xFFFF]),
    ],
)
def test_what_is_just_inside_is_asked_for(record: dict, exports: list[int]):
    assert _expected(record, 0, exports)[1] is None
    _simulate([record, PLAIN], [{"entry": 0, "exports": exports}])


@pytest.mark.parametrize("address_width_bits", [33, 40, 56])
def test_addresses_of_any_width(address_width_bits: int):
    config = CONFIG.with_changes(address_width_bits=address_width_bits)
    base = (1 << address_width_bits) - (1 << 20)
    record = PLAIN | {"base": base, "region_bytes": 1 << 20, "pitch": 1 << 12, "rows": 1000}
    dut = RowAddress(config=config)
    bench = Bench(dut)

    async def configure(ctx):
        ctx.set(dut.record, record)

    bench.process(configure)
    rows = [{"entry": 0, "exports": [index, 0, 0]} for index in (0, 255, 256)]
    bench.send(dut.row, rows)
    faults = bench.watch(dut.fault.valid, dut.fault.payload)
    descriptors = bench.receive(dut.descriptor, 2)

    async def wait(ctx):
        await ctx.tick().repeat(30)

    bench.process(wait)
    bench.run(100)
    assert [row["address"] for row in payloads(descriptors)] == [base, base + (255 << 12)]
    assert [fault["code"] for fault in payloads(faults)] == [FaultCode.ROW_OUT_OF_BOUNDS]


def test_one_row_a_cycle():
    rows = _rows(5, 40, [list(range(20)), list(range(20, 30)), list(range(10))])
    sent, descriptors = _simulate([PLAIN, SLOTS], rows)
    assert gaps(sent) == gaps(descriptors) == {1}
    assert descriptors[0].cycle - sent[0].cycle == 6


@pytest.mark.parametrize("places", [8, 16, 64])
def test_any_number_of_places_allows_one_row_a_cycle(places: int):
    """What `AcceleratorConfig.descriptor_entries` says of them."""
    rows = _rows(7, 200, [list(range(20)), list(range(20, 30)), list(range(10))])
    config = CONFIG.with_changes(descriptor_entries=places)
    _, descriptors = _simulate([PLAIN, SLOTS], rows, config=config)
    assert gaps(descriptors) == {1}


def test_rows_wait_for_a_place():
    rows = _rows(6, 40, [list(range(20))] * 3, entry=0)
    sent, descriptors = _simulate([PLAIN, PLAIN], rows, start=60)
    assert sum(item.cycle < 60 for item in sent) == CONFIG.descriptor_entries
    assert gaps(descriptors) == {1}
    _simulate([PLAIN, PLAIN], rows, config=SHORT)
