"""A port asks for its parts beat by beat and says where each answer belongs."""

from __future__ import annotations

from collections import deque

import pytest

from ember_hw.boards.ddr3.bank_port import BankPort
from ember_hw.boards.ddr3.tests.memory_setup import SMALL
from ember_hw.rtl.tests.harness import Bench

pytestmark = pytest.mark.rtl


@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_beats_are_asked_for_in_order_and_answers_have_their_places(stall: float):
    bench = Bench(BankPort(chip=SMALL), seed=3)
    parts = []
    for i in range(40):
        length = bench.random.randrange(8)
        first = 16 * bench.random.randrange(64) + bench.random.randrange(8)
        place = bench.random.randrange(256)
        parts.append({"beat": first, "length": length, "write": i % 5 == 4, "place": place})
    beats = [
        (part["beat"] + i, part["write"], part["place"] + i)
        for part in parts
        for i in range(part["length"] + 1)
    ]
    asked, placed, cycles = [], [], []
    port = bench.dut.port

    async def controller(ctx):
        waiting: deque[int] = deque()
        cycle = 0
        while len(asked) < len(beats) or len(placed) < sum(not write for _, write, _ in beats):
            ctx.set(port.cmd_ready, bench.random.random() >= stall)
            answers = bool(waiting) and bench.random.random() >= stall
            if answers:
                waiting.popleft()
            ctx.set(port.rdata_valid, answers)
            _, _, valid, ready, write, beat, put, place = await ctx.tick().sample(
                *(port.cmd_valid, port.cmd_ready, port.cmd_we, port.cmd_addr),
                *(bench.dut.put, bench.dut.place),
            )
            if valid and ready:
                asked.append((beat, write))
                cycles.append(cycle)
                if not write:
                    waiting.append(beat)
            if put:
                placed.append(place)
            cycle += 1

    bench.send(bench.dut.part, parts, stall=stall)
    bench.process(controller)
    bench.run(3_000)
    assert asked == [(beat, write) for beat, write, _ in beats]
    assert placed == [place for _, write, place in beats if not write]
    if not stall:
        assert cycles[-1] - cycles[0] + 1 == len(beats)


def test_a_port_that_takes_nothing_stops_the_parts_and_loses_none():
    bench = Bench(BankPort(chip=SMALL))
    parts = [{"beat": 16 * i, "length": 0, "write": 0, "place": i} for i in range(30)]
    taken = bench.send(bench.dut.part, parts)
    seen = []

    async def controller(ctx):
        port = bench.dut.port
        for _ in range(100):
            await ctx.tick()
        seen.append(len(taken))
        ctx.set(port.cmd_ready, 1)
        while len(seen) <= len(parts):
            _, _, valid, beat = await ctx.tick().sample(port.cmd_valid, port.cmd_addr)
            ctx.set(port.rdata_valid, valid)
            if valid:
                seen.append(beat)

    bench.process(controller)
    bench.run(1_000)
    assert seen[0] == 16
    assert seen[1:] == [part["beat"] for part in parts]


def test_data_that_was_written_is_told():
    bench = Bench(BankPort(chip=SMALL))
    told = []

    async def controller(ctx):
        for value in (0, 1, 0):
            ctx.set(bench.dut.port.wdata_ready, value)
            told.append(ctx.get(bench.dut.written))
            await ctx.tick()

    bench.process(controller)
    bench.run(10)
    assert told == [0, 1, 0]
