"""Words become beats in the clock in which they are due, and beats words."""

from __future__ import annotations

import pytest
from amaranth.sim import Simulator

from ember_hw.boards.sdram.chip import BURST_WORDS
from ember_hw.boards.sdram.data_path import ReadPath, WritePath
from ember_hw.boards.sdram.tests.chips import CLOCK_MHZ, SMALL

pytestmark = pytest.mark.rtl

CLOCKS = SMALL.clocks(CLOCK_MHZ)


def _beat(first: int) -> int:
    return sum((first + i) << 16 * i for i in range(BURST_WORDS))


@pytest.mark.parametrize("pad_clocks", [0, 2])
def test_words_of_a_read_become_a_beat(pad_clocks):
    dut = ReadPath(clocks=CLOCKS, tag_bits=4, pad_clocks=pad_clocks)
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    reads = {5: 1, 5 + BURST_WORDS: 2, 30: 3}
    beats = []

    async def drive(ctx):
        ctx.set(dut.beat.ready, 1)
        for cycle in range(70):
            ctx.set(dut.read, cycle in reads)
            ctx.set(dut.tag, reads.get(cycle, 0))
            ctx.set(dut.last, reads.get(cycle) == 2)
            # The chip sees a command a clock later, and its word comes CL clocks after that.
            ctx.set(dut.data_in, cycle)
            if ctx.get(dut.beat.valid):
                beat = ctx.get(dut.beat.payload)
                beats.append((beat.data, beat.tag, beat.last))
            await ctx.tick()

    simulator.add_testbench(drive)
    simulator.run()
    first = 1 + pad_clocks + CLOCKS.cl
    assert beats == [(_beat(at + first), tag, tag == 2) for at, tag in reads.items()]


def test_room_ends_with_the_places():
    dut = ReadPath(clocks=CLOCKS, tag_bits=1, pad_clocks=0)
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)

    async def drive(ctx):
        taken = 0
        for cycle in range(200):
            asks = cycle % BURST_WORDS == 0 and ctx.get(dut.has_room)
            ctx.set(dut.read, asks)
            taken += asks
            await ctx.tick()
        assert taken == 16
        ctx.set(dut.beat.ready, 1)
        await ctx.tick()
        assert ctx.get(dut.has_room)

    simulator.add_testbench(drive)
    simulator.run()


def test_beat_becomes_words_from_the_clock_after_the_write():
    dut = WritePath()
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    seen = []

    async def drive(ctx):
        ctx.set(dut.beat.payload, {"data": _beat(100), "bytes": 0xFFF6})
        ctx.set(dut.beat.valid, 1)
        for cycle in range(14):
            ctx.set(dut.write, cycle == 2)
            assert ctx.get(dut.beat.ready) == (cycle == 3)
            word = ctx.get(dut.data_out) if ctx.get(dut.data_enable) else None
            seen.append((word, ctx.get(dut.mask)))
            await ctx.tick()

    simulator.add_testbench(drive)
    simulator.run()
    masks = [0b01, 0b10, 0, 0, 0, 0, 0, 0]
    words = [(100 + i, mask) for i, mask in enumerate(masks)]
    assert seen == [(None, 0)] * 3 + words + [(None, 0)] * 3
