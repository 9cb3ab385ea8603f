from __future__ import annotations

from amaranth.hdl import Const, Module, Signal
from amaranth.lib import data

from ember_hw.rtl.slots import inherited, inherited_slot, select
from ember_hw.rtl.tests.harness import CONFIG, Bench


def test_a_slot_selects_its_value_and_others_are_0():
    slot, held = Signal(4), Signal(32)
    values = data.View(data.ArrayLayout(32, CONFIG.exports), Const(0x3_0000_0002_0000_0001, 96))

    m = Module()
    choices = {0: Const(9, 32)} | inherited(values, CONFIG)
    m.d.sync += held.eq(select(m, "chosen", slot, choices))
    bench = Bench(m)
    expected = {0: 9} | {inherited_slot(i, CONFIG): i + 1 for i in range(CONFIG.exports)}

    async def check(ctx):
        for number in range(16):
            ctx.set(slot, number)
            await ctx.tick()
            assert ctx.get(held) == expected.get(number, 0)

    bench.process(check)
    bench.run(50)
