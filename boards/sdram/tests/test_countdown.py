"""A limit of n clocks lets the next command through n clocks later, never earlier."""

from __future__ import annotations

import pytest
from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.sim import Simulator

from ember_hw.boards.sdram.countdown import countdown

pytestmark = pytest.mark.rtl


class _Limit(Elaboratable):
    def __init__(self, clocks: int):
        self.clocks = clocks
        self.start = Signal()
        self.over = Signal()

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.over.eq(countdown(m, self.start, self.clocks, "limit"))
        m.d.sync += Signal().eq(self.start)
        return m


@pytest.mark.parametrize("clocks", [1, 2, 3, 4, 7])
def test_limit_is_over_after_its_clocks(clocks):
    dut = _Limit(clocks)
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    seen: list[int] = []

    async def drive(ctx):
        for cycle in range(20):
            ctx.set(dut.start, cycle in (2, 10))
            await ctx.delay(0)
            seen.append(ctx.get(dut.over))
            await ctx.tick()

    simulator.add_testbench(drive)
    simulator.run()
    blocked = {start + i for start in (2, 10) for i in range(1, clocks)}
    assert [cycle for cycle, over in enumerate(seen) if not over] == sorted(blocked)


def test_limit_below_one_clock_is_refused():
    m = Module()
    m._MustUse__used = True  # Amaranth warns of modules that are not used
    with pytest.raises(ValueError, match=r"^clocks of limit must be at least 1, not 0$"):
        countdown(m, Signal(), 0, "limit")
