from __future__ import annotations

import random

import pytest

from ember_hw import isa
from ember_hw.config import AcceleratorConfig
from ember_hw.rtl.burst_splitter import BOUNDARY_BYTES, BurstSplitter, chunk_beats
from ember_hw.rtl.tests.harness import CONFIG, Bench, gaps, payloads


def _descriptor(address: int, length: int, hint: isa.Hint = isa.Hint.NONE, entry: int = 0) -> dict:
    return {"address": address, "last_byte": length - 1, "hint": hint, "entry": entry}


def _expected(row: dict, config: AcceleratorConfig) -> list[dict]:
    """Cut a row beat by beat: a burst ends with its chunk or with the row."""
    bursts: list[dict] = []
    bus = config.bus_bytes
    beats = row["last_byte"] // bus + 1
    for i in range(beats):
        address = row["address"] + i * bus
        if not bursts or address % (chunk_beats(config) * bus) == 0:
            carried = {"hint": row["hint"], "entry": row["entry"]}
            bursts.append({"address": address, "length": -1, "row_last": 0} | carried)
        bursts[-1]["length"] += 1
    bursts[-1]["row_last"] = 1
    for burst in bursts:
        burst["last_bytes"] = row["last_byte"] + 1 - (beats - 1) * bus
    return bursts


def _simulate(config: AcceleratorConfig, rows: list[dict], *, seed: int, stall: float):
    dut = BurstSplitter(config=config)
    bench = Bench(dut, seed=seed)
    expected = [burst for row in rows for burst in _expected(row, config)]
    sent = bench.send(dut.descriptor, rows, stall=stall)
    bursts = bench.receive(dut.burst, len(expected), stall=stall)
    bench.run(30_000)
    assert payloads(bursts) == expected
    return sent, bursts


NARROW = CONFIG
WIDE = CONFIG.with_changes(data_width_bits=512, max_burst_beats=64, reorder_buffer_beats=128)
SINGLE = CONFIG.with_changes(max_burst_beats=1)
WHOLE = CONFIG.with_changes(
    data_width_bits=128, max_burst_beats=256, reorder_buffer_beats=512, address_width_bits=40
)
ODD = CONFIG.with_changes(max_burst_beats=5)
TWO_PORTS = CONFIG.with_changes(memory_ports=2, port_interleave_bytes=64, max_burst_beats=8)
LINES = CONFIG.with_changes(
    data_width_bits=512, memory_ports=2, port_interleave_bytes=64, reorder_buffer_beats=16
)
NAMES = ["narrow", "wide", "single", "whole", "odd", "two_ports", "lines"]


@pytest.mark.parametrize(
    ("config", "beats"),
    [(NARROW, 8), (WIDE, 64), (SINGLE, 1), (WHOLE, 256), (ODD, 4), (TWO_PORTS, 8), (LINES, 1)],
    ids=NAMES,
)
def test_the_longest_burst(config: AcceleratorConfig, beats: int):
    assert chunk_beats(config) == beats


@pytest.mark.parametrize("config", [NARROW, WIDE, SINGLE, WHOLE, ODD, TWO_PORTS, LINES], ids=NAMES)
def test_rows_around_a_boundary(config: AcceleratorConfig):
    bus = config.bus_bytes
    lengths = [1, bus - 1, bus, bus + 1, 2 * bus, 3 * bus + 2, 9 * bus]
    lengths += [config.max_burst_beats * bus, config.max_burst_beats * bus + 1]
    starts = range(BOUNDARY_BYTES - 5 * bus, BOUNDARY_BYTES + 2 * bus, bus)
    rows = [_descriptor(start, length) for start in starts for length in lengths]
    _simulate(config, rows[:: 1 if config is NARROW else 2], seed=1, stall=0.1)


@pytest.mark.parametrize("config", [WIDE, WHOLE], ids=["wide", "whole"])
def test_a_row_that_fills_pages_exactly_has_no_burst_too_many(config: AcceleratorConfig):
    pages = BOUNDARY_BYTES
    rows = [_descriptor(start, n * pages) for start in (0, pages) for n in (1, 2, 3)]
    rows += [_descriptor(pages // 2, pages // 2), _descriptor(pages // 2, 3 * pages // 2)]
    _simulate(config, rows, seed=2, stall=0.0)


def test_the_longest_row():
    rows = [_descriptor(BOUNDARY_BYTES - 64, 65535), _descriptor(0, 65535)]
    _simulate(WIDE, rows, seed=3, stall=0.2)


@pytest.mark.parametrize("seed", [4, 5])
def test_random_rows_with_hints_under_stalls(seed: int):
    dice = random.Random(seed)
    rows = [
        _descriptor(
            dice.randrange(0, 1 << 14, 8),
            dice.randrange(1, 200),
            dice.choice(list(isa.Hint)),
        )
        for _ in range(60)
    ]
    _simulate(NARROW, rows, seed=seed, stall=0.5)


def test_one_burst_a_cycle_also_from_row_to_row():
    rows = [_descriptor(64 * i, length) for i, length in enumerate([8, 64, 65, 200, 8, 8, 300])]
    sent, bursts = _simulate(NARROW, rows, seed=0, stall=0.0)
    assert gaps(bursts) == {1}
    assert bursts[0].cycle - sent[0].cycle == 1
