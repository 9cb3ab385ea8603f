from __future__ import annotations

import pytest
from amaranth.hdl import unsigned

from ember_hw.rtl.fifos import LUT_MEMORY_ENTRIES, ReservedFifo, StreamFifo
from ember_hw.rtl.tests.harness import Bench, gaps, payloads, refuses


def test_a_queue_of_one_entry_is_refused():
    with refuses("depth_entries must be at least 2, not 1"):
        StreamFifo(shape=8, depth_entries=1)


def test_no_credit_is_refused():
    with refuses("credits must be at least 1, not 0"):
        ReservedFifo(shape=8, credits=0)


LONG = LUT_MEMORY_ENTRIES + 1  # the first length in block memory


@pytest.mark.parametrize("depth", [2, 3, 5, 8, LUT_MEMORY_ENTRIES, LONG, 24])
@pytest.mark.parametrize("seed", [1, 2])
def test_entries_leave_in_order_under_stalls(depth: int, seed: int):
    dut = StreamFifo(shape=8, depth_entries=depth)
    bench = Bench(dut, seed=seed)
    # Filling first, so that every place of the memory is used.
    sent = bench.send(dut.i, range(120), stall=0.3)
    received = bench.receive(dut.o, 120, stall=0.4, start=40)
    levels = []

    async def level(ctx):
        while True:
            _, _, now = await ctx.tick().sample(dut.level)
            levels.append(now)

    bench.process(level, background=True)
    bench.run(1000)
    assert payloads(received) == list(range(120))
    for cycle, now in enumerate(levels):
        into = sum(item.cycle < cycle for item in sent)
        out = sum(item.cycle < cycle for item in received)
        assert now == into - out


@pytest.mark.parametrize(
    ("depth", "latency"), [(3, 1), (4, 1), (LUT_MEMORY_ENTRIES, 1), (LONG, 3), (64, 3)]
)
def test_one_entry_a_cycle_one_or_three_cycles_later(depth: int, latency: int):
    dut = StreamFifo(shape=8, depth_entries=depth)
    bench = Bench(dut)
    sent = bench.send(dut.i, range(30))
    received = bench.receive(dut.o, 30)
    bench.run(200)
    assert gaps(sent) == gaps(received) == {1}
    assert received[0].cycle - sent[0].cycle == latency


@pytest.mark.parametrize(("depth", "registers"), [(5, 0), (LONG, 2)])
def test_a_full_queue_holds_its_memory_and_a_long_one_its_registers(depth: int, registers: int):
    dut = StreamFifo(shape=8, depth_entries=depth)
    bench = Bench(dut)

    async def fill(ctx):
        ctx.set(dut.i.valid, 1)
        await ctx.tick().repeat(40)
        assert ctx.get(dut.level) == depth + registers
        assert not ctx.get(dut.i.ready)

    bench.process(fill)
    bench.run(50)


def _pipeline(bench: Bench, dut: ReservedFifo, count: int, latency: int, stall: float) -> list[int]:
    """Take a place as often as there is room; push a number that many cycles later."""
    takes: list[int] = []

    async def pusher(ctx):
        pushes: dict[int, int] = {}
        cycle = 0
        while len(takes) < count or pushes:
            take = bool(ctx.get(dut.room)) and len(takes) < count and bench.random.random() >= stall
            ctx.set(dut.take, take)
            ctx.set(dut.push, cycle in pushes)
            ctx.set(dut.payload, pushes.pop(cycle, 0))
            if take:
                pushes[cycle + latency] = len(takes)
                takes.append(cycle)
            await ctx.tick()
            cycle += 1
        ctx.set(dut.push, 0)

    bench.process(pusher)
    return takes


@pytest.mark.parametrize("credits", [1, 2, 3, 7])
@pytest.mark.parametrize("seed", [1, 2])
def test_every_reserved_entry_finds_its_place(credits: int, seed: int):
    dut = ReservedFifo(shape=unsigned(8), credits=credits)
    bench = Bench(dut, seed=seed)
    received = bench.receive(dut.o, 50, stall=0.5)
    _pipeline(bench, dut, 50, latency=3, stall=0.2)
    bench.run(2000)
    assert payloads(received) == list(range(50))


def test_room_ends_with_the_credits_and_returns_with_them():
    dut = ReservedFifo(shape=8, credits=3)
    bench = Bench(dut)

    async def reserve(ctx):
        for i in range(3):
            assert ctx.get(dut.room)
            assert ctx.get(dut.level) == i
            ctx.set(dut.take, 1)
            await ctx.tick()
        ctx.set(dut.take, 0)
        assert not ctx.get(dut.room)
        ctx.set(dut.push, 1)
        await ctx.tick()
        ctx.set(dut.push, 0)
        ctx.set(dut.o.ready, 1)
        await ctx.tick().until(dut.o.valid)
        assert ctx.get(dut.room)
        assert ctx.get(dut.level) == 2

    bench.process(reserve)
    bench.run(50)


def test_one_entry_a_cycle_with_a_credit_for_each_cycle_of_the_way():
    latency = 4
    dut = ReservedFifo(shape=8, credits=latency + 2)  # the queue adds one, giving back one
    bench = Bench(dut)
    received = bench.receive(dut.o, 40)
    takes = _pipeline(bench, dut, 40, latency=latency, stall=0)
    bench.run(200)
    assert gaps(received) == {1}
    assert takes == list(range(40))
