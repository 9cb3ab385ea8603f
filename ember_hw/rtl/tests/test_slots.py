from __future__ import annotations

import pytest
from amaranth.hdl import Const, Module, Signal, signed

from ember_hw.rtl.slots import select, select_registered
from ember_hw.rtl.tests.harness import Bench


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 13])
def test_a_number_selects_its_value(count: int):
    number, chosen, later = Signal(4), Signal(32), Signal(32)
    values = [Const(i * 0x0101_0101 + 1, 32) for i in range(count)]
    m = Module()
    m.d.comb += [
        chosen.eq(select(number, values)),
        later.eq(select_registered(m, "later", number, values)),
    ]
    bench = Bench(m)

    async def check(ctx):
        for i in range(16):
            ctx.set(number, i)
            await ctx.tick()
            expected = i * 0x0101_0101 + 1
            if i < count:
                assert ctx.get(chosen) == expected
            assert ctx.get(later) == (expected if i < count else 0)

    bench.process(check)
    bench.run(50)


def test_signs_are_extended_to_the_widest():
    number, chosen = Signal(1), Signal(signed(8))
    m = Module()
    m.d.sync += chosen.eq(select(number, [Const(-2, signed(3)), Const(100, signed(8))]))
    bench = Bench(m)

    async def check(ctx):
        for i, expected in enumerate((-2, 100)):
            ctx.set(number, i)
            await ctx.tick()
            assert ctx.get(chosen) == expected

    bench.process(check)
    bench.run(10)
