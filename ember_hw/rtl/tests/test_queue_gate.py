from __future__ import annotations

import pytest

from ember_hw.rtl.queue_gate import QueueGate
from ember_hw.rtl.tests.harness import Bench, gaps, payloads


@pytest.mark.parametrize("seed", [1, 2])
def test_an_open_gate_passes_everything_in_the_same_cycle(seed: int):
    dut = QueueGate(shape=8)
    bench = Bench(dut, seed=seed)
    sent = bench.send(dut.i, range(40), stall=0.3)
    received = bench.receive(dut.o, 40, stall=0.3)
    bench.run(500)
    assert sent == received
    assert payloads(received) == list(range(40))


def test_one_entry_a_cycle():
    dut = QueueGate(shape=8)
    bench = Bench(dut)
    bench.send(dut.i, range(40))
    received = bench.receive(dut.o, 40)
    bench.run(100)
    assert gaps(received) == {1}


def test_a_stopped_gate_shows_nothing_new_and_keeps_what_it_showed():
    dut = QueueGate(shape=8)
    bench = Bench(dut)

    async def drive(ctx):
        ctx.set(dut.i.payload, 7)
        ctx.set(dut.i.valid, 1)
        await ctx.tick()
        ctx.set(dut.stop, 1)
        for _ in range(3):
            assert ctx.get(dut.o.valid)
            assert ctx.get(dut.o.payload) == 7
            assert not ctx.get(dut.settled)
            await ctx.tick()
        ctx.set(dut.o.ready, 1)
        assert ctx.get(dut.i.ready)
        await ctx.tick()
        ctx.set(dut.i.payload, 8)
        for _ in range(3):
            assert not ctx.get(dut.o.valid)
            assert not ctx.get(dut.i.ready)
            assert ctx.get(dut.settled)
            await ctx.tick()
        ctx.set(dut.stop, 0)
        assert ctx.get(dut.o.valid)
        assert ctx.get(dut.i.ready)

    bench.process(drive)
    bench.run(50)


def test_an_entry_that_moves_as_the_gate_closes_leaves_nothing_behind():
    dut = QueueGate(shape=8)
    bench = Bench(dut)

    async def drive(ctx):
        ctx.set(dut.i.valid, 1)
        ctx.set(dut.o.ready, 1)
        await ctx.tick()
        ctx.set(dut.stop, 1)
        assert not ctx.get(dut.o.valid)
        assert ctx.get(dut.settled)

    bench.process(drive)
    bench.run(50)
