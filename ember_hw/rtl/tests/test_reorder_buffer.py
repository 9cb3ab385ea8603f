from __future__ import annotations

import pytest
from amaranth.hdl import ResetInserter, Signal

from ember_hw.rtl.reorder_buffer import ReorderBuffer
from ember_hw.rtl.tests.harness import Bench, gaps, payloads, refuses


class Buffer(Bench):
    """A reorder buffer whose bursts are put in an order that the dice choose."""

    def __init__(self, *, places: int = 8, burst_beats: int = 4, seed: int = 0, reset=None):
        self.places, self.burst_beats = places, burst_beats
        dut = ReorderBuffer(shape=16, places=places, burst_beats=burst_beats)
        super().__init__(dut if reset is None else ResetInserter(reset)(dut), seed=seed)
        self.dut = dut
        self.most_used = 0

    async def fill(self, ctx, beats: list[int], *, window: int, stall: float):
        """Take bursts while they fit, and put their beats, at most `window` bursts apart."""
        dut, dice = self.dut, self.random
        while not ctx.get(dut.cleared):
            await ctx.tick()
        bursts = []
        left = list(beats)
        while left:
            count = dice.randint(1, min(self.burst_beats, len(left)))
            bursts.append(left[:count])
            left = left[count:]
        flying: list[tuple[int, list[int]]] = []
        while bursts or flying:
            takes = False
            ctx.set(dut.take, 0)
            if bursts and len(flying) < window and dice.random() >= stall:
                ctx.set(dut.length, len(bursts[0]) - 1)
                takes = bool(ctx.get(dut.fits))
                ctx.set(dut.take, takes)
            puts = bool(flying) and dice.random() >= stall
            ctx.set(dut.put, puts)
            if puts:
                burst = dice.choice(flying)
                position, rest = burst
                flying.remove(burst)
                ctx.set(dut.position, position)
                ctx.set(dut.beat, rest[0])
                if rest[1:]:
                    flying.append(((position + 1) % (2 * self.places), rest[1:]))
            if takes:
                flying.append((ctx.get(dut.start), bursts.pop(0)))
            await ctx.tick()
            self.most_used = max(self.most_used, ctx.get(dut.used))
            assert ctx.get(dut.used) <= self.places
        ctx.set(dut.take, 0)
        ctx.set(dut.put, 0)


@pytest.mark.parametrize(
    ("seed", "places", "burst_beats", "window", "stall"),
    [
        (1, 8, 4, 4, 0.0),
        (2, 8, 8, 8, 0.3),
        (3, 16, 4, 16, 0.5),
        (4, 2, 1, 2, 0.2),
        (5, 4, 4, 1, 0.0),
        (6, 64, 8, 64, 0.1),
    ],
)
def test_beats_leave_in_the_order_of_their_places(
    seed: int, places: int, burst_beats: int, window: int, stall: float
):
    buffer = Buffer(places=places, burst_beats=burst_beats, seed=seed)
    beats = [buffer.random.randrange(1 << 16) for _ in range(400)]

    async def fill(ctx):
        await buffer.fill(ctx, beats, window=window, stall=stall)

    buffer.process(fill)
    taken = buffer.receive(buffer.dut.o, len(beats), stall=stall)
    buffer.run(8000)
    assert payloads(taken) == beats


def test_one_beat_a_cycle():
    buffer = Buffer(places=16, burst_beats=1)

    async def fill(ctx):
        await buffer.fill(ctx, list(range(100)), window=4, stall=0.0)

    buffer.process(fill)
    taken = buffer.receive(buffer.dut.o, 100)
    buffer.run(400)
    assert gaps(taken[4:]) == {1}


@pytest.mark.parametrize("wait", range(6))
def test_a_beat_leaves_three_to_five_cycles_after_it_was_put(wait: int):
    buffer = Buffer(places=4)
    dut = buffer.dut
    put_cycle = 0

    async def fill(ctx):
        nonlocal put_cycle
        while not ctx.get(dut.cleared):
            await ctx.tick()
            put_cycle += 1
        ctx.set(dut.take, 1)
        await ctx.tick()
        ctx.set(dut.take, 0)
        for _ in range(wait):
            await ctx.tick()
        put_cycle += 1 + wait
        ctx.set(dut.put, 1)
        await ctx.tick()
        ctx.set(dut.put, 0)

    buffer.process(fill)
    taken = buffer.receive(dut.o, 1)
    buffer.run(40)
    assert 3 <= taken[0].cycle - put_cycle <= 5


def test_a_full_buffer_says_so_and_frees_beat_by_beat():
    buffer = Buffer(places=4, burst_beats=4)
    dut = buffer.dut

    async def drive(ctx):
        while not ctx.get(dut.cleared):
            await ctx.tick()
        ctx.set(dut.length, 2)
        assert ctx.get(dut.fits)
        ctx.set(dut.take, 1)
        await ctx.tick()
        ctx.set(dut.take, 0)
        for length, fits in ((0, 1), (1, 0), (3, 0)):
            ctx.set(dut.length, length)
            assert ctx.get(dut.fits) == fits
        ctx.set(dut.put, 1)
        ctx.set(dut.position, 0)
        await ctx.tick()
        ctx.set(dut.put, 0)
        ctx.set(dut.length, 1)
        ctx.set(dut.o.ready, 1)
        await ctx.tick().until(dut.o.valid)
        assert ctx.get(dut.used) == 2
        assert ctx.get(dut.fits)

    buffer.process(drive)
    buffer.run(40)


@pytest.mark.parametrize("cycle", [8, 9, 11, 14])
def test_a_reset_amid_bursts_leaves_nothing_behind(cycle: int):
    reset = Signal()
    buffer = Buffer(places=4, burst_beats=2, reset=reset, seed=cycle)
    dut = buffer.dut
    seen = []

    async def drive(ctx):
        for number in range(cycle):
            cleared = ctx.get(dut.cleared)
            ctx.set(dut.take, bool(cleared and ctx.get(dut.fits)))
            ctx.set(dut.put, bool(cleared and number > 5))
            ctx.set(dut.position, max(0, number - 6))
            ctx.set(dut.beat, 0xDEAD)
            await ctx.tick()
        ctx.set(dut.take, 0)
        ctx.set(dut.put, 0)
        ctx.set(reset, 1)
        await ctx.tick()
        ctx.set(reset, 0)
        ctx.set(dut.o.ready, 1)
        await buffer.fill(ctx, list(range(1, 30)), window=2, stall=0.2)
        await ctx.tick().repeat(8)

    async def watch(ctx):
        while True:
            _, _, valid, ready, value = await ctx.tick().sample(
                dut.o.valid, dut.o.ready, dut.o.payload
            )
            if valid and ready:
                seen.append(value)

    buffer.process(drive)
    buffer.process(watch, background=True)
    buffer.run(400)
    assert seen == list(range(1, 30))


def test_parameters_are_checked():
    for places in (1, 12):
        with refuses(f"places must be a power of two, 2 or more, not {places}"):
            ReorderBuffer(shape=8, places=places, burst_beats=1)
    for burst_beats in (0, 9):
        with refuses(f"burst_beats must be from 1 to 8, not {burst_beats}"):
            ReorderBuffer(shape=8, places=8, burst_beats=burst_beats)
