from __future__ import annotations

from amaranth.hdl import Module, Signal

from ember_hw.rtl.delay import delay
from ember_hw.rtl.tests.harness import Bench


def test_a_delay_gives_every_stage():
    valid, payload = Signal(), Signal(8)
    m = Module()
    stages = list(zip(*delay(m, "test", valid, payload, 3), strict=True))
    bench = Bench(m)

    async def check(ctx):
        sent = [(0, 0)] * 3
        for number in range(1, 20):
            for cycles, (held_valid, held) in enumerate(stages, 1):
                assert (ctx.get(held_valid), ctx.get(held)) == sent[-cycles]
            sent.append((number % 2, number))
            ctx.set(valid, number % 2)
            ctx.set(payload, number)
            await ctx.tick()

    bench.process(check)
    bench.run(50)
