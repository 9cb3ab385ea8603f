"""A memory with its chip, and both of those who ask it."""

from __future__ import annotations

import numpy as np
from amaranth.sim import Simulator

from ember_hw.boards.sdram.memory import SdramMemory
from ember_hw.boards.sdram.model import ChipModel
from ember_hw.boards.sdram.pins import Command
from ember_hw.boards.sdram.simulated import SimulatedSdram
from ember_hw.boards.sdram.tests.chips import CLOCK_MHZ, SMALL
from ember_hw.boards.tests.memory_users import MemoryUsers
from ember_hw.config import AcceleratorConfig

CONFIG = AcceleratorConfig.preset("small").with_changes(address_width_bits=32)


class MemorySetup(MemoryUsers):
    """Memory, chip and two clocks, the chip's twice the unit's; with the pads' registers or not."""

    def __init__(self, seed: int, *, with_pads: bool = False):
        random = np.random.default_rng(seed)
        parameters = {"chip": SMALL, "clock_mhz": CLOCK_MHZ, "config": CONFIG}
        if with_pads:
            dut = SimulatedSdram(**parameters)
        else:
            dut = SdramMemory(**parameters, pad_clocks=0)
        super().__init__(dut, Simulator(dut), random)
        self.model = ChipModel(SMALL, SMALL.clocks(CLOCK_MHZ))
        self.model.words[:] = random.integers(0, 1 << 16, len(self.model.words))
        self.simulator.add_clock(20e-9)
        self.simulator.add_clock(10e-9, phase=7e-9, domain="sdram")
        chip = self._chip_behind_pads if with_pads else self._chip
        self.simulator.add_testbench(chip, background=True)
        self.simulator.add_testbench(self._limit, background=True)

    async def _chip(self, ctx):
        pins = self.dut.pins
        async for _ in ctx.tick("sdram"):
            word = self.model.edge(
                Command(ctx.get(pins.command)),
                bank=ctx.get(pins.bank),
                address=ctx.get(pins.address),
                mask=ctx.get(pins.mask),
                data=ctx.get(pins.data_out) if ctx.get(pins.data_enable) else None,
            )
            ctx.set(pins.data_in, word)

    async def _chip_behind_pads(self, ctx):
        dut = self.dut
        async for _ in ctx.tick("sdram"):
            pins = [ctx.get(pin) for pin in (dut.sdram_ras, dut.sdram_cas, dut.sdram_we)]
            word = self.model.edge(
                Command(pins[0] << 2 | pins[1] << 1 | pins[2]),
                bank=ctx.get(dut.sdram_ba),
                address=ctx.get(dut.sdram_a),
                mask=ctx.get(dut.sdram_dqm),
                data=ctx.get(dut.sdram_dq_out) if ctx.get(dut.sdram_dq_enable) else None,
            )
            ctx.set(dut.sdram_dq_in, word)

    async def _limit(self, ctx):
        for _ in range(6000):
            await ctx.tick()
        raise AssertionError("not done after 6000 cycles")

    def beat(self, address: int) -> int:
        return int.from_bytes(self.model.words[address // 2 :][:8].tobytes(), "little")
