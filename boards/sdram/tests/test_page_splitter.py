"""Requests leave in parts that lie in one row each, and each bank is told its rows."""

from __future__ import annotations

import random

import pytest

from ember_hw.boards.sdram.page_splitter import PageSplitter
from ember_hw.boards.sdram.tests.chips import SMALL
from ember_hw.rtl.tests.harness import Bench, payloads

pytestmark = pytest.mark.rtl

PAGE = SMALL.page_beats


def _parts(request: dict[str, int]) -> list[tuple[int, dict[str, int]]]:
    """Row and part of each piece, reckoned beat by beat."""
    pieces: list[tuple[int, dict[str, int]]] = []
    for number in range(request["beat"], request["beat"] + request["length"] + 1):
        page, beat = divmod(number % (1 << SMALL.beat_address_bits), PAGE)
        row, bank = divmod(page, SMALL.banks)
        if not pieces or beat == 0:
            fixed = {"write": request["write"], "tag": request["tag"]}
            pieces.append((row, {"bank": bank, "beat": beat, "length": -1, "last": 0, **fixed}))
        pieces[-1][1]["length"] += 1
    pieces[-1][1]["last"] = 1
    return pieces


@pytest.mark.parametrize(("stall", "seed"), [(0.0, 1), (0.5, 2)])
def test_parts_and_rows(stall, seed):
    dut = PageSplitter(chip=SMALL, tag_bits=3)
    bench = Bench(dut, seed=seed)
    rng = random.Random(seed)
    requests = [
        {
            "beat": rng.choice([rng.randrange(1 << SMALL.beat_address_bits), PAGE * 8 - 1, 0]),
            "length": rng.choice([0, 1, PAGE - 1, PAGE, 255]),
            "write": rng.randrange(2),
            "tag": rng.randrange(8),
        }
        for _ in range(60)
    ]
    parts = [part for request in requests for part in _parts(request)]
    bench.send(dut.request, requests, stall=stall)
    segments = bench.receive(dut.segment, len(parts), stall=stall)
    rows = []
    for bank, port in enumerate(dut.rows):
        count = sum(part["bank"] == bank for _, part in parts)
        rows.append(bench.receive(port, count, stall=stall))
    bench.run(5000)
    assert payloads(segments) == [part for _, part in parts]
    for bank, seen in enumerate(rows):
        assert payloads(seen) == [row for row, part in parts if part["bank"] == bank]


def test_part_waits_for_room_in_both_queues():
    dut = PageSplitter(chip=SMALL, tag_bits=3)
    bench = Bench(dut)
    request = {"beat": 0, "length": 0, "write": 0, "tag": 0}
    taken = bench.send(dut.request, [request] * 8)
    segments = bench.receive(dut.segment, 8)
    bench.receive(dut.rows[0], 8, start=100)
    bench.run(300)
    # Four rows wait in the bank's queue, a fifth part before it; its row is in neither queue.
    assert [item.cycle < 100 for item in segments] == [True] * 4 + [False] * 4
    assert sum(item.cycle < 100 for item in taken) == 5
