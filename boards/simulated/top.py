"""The top of the simulated board: what a board holds, with block RAM or SDRAM as its memory."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from ember_hw.boards.block_memory import BlockMemory
from ember_hw.boards.core import BoardCore
from ember_hw.boards.description import BoardDescription
from ember_hw.boards.sdram.chip import CHIPS
from ember_hw.boards.sdram.simulated import SimulatedSdram, pin_members
from ember_hw.boards.simulated.probe import connect_physical, physical_members

#: The chip of a simulated SDRAM, and its clock over that of the unit.
CHIP = CHIPS["ulx3s"]
SDRAM_CLOCKS_A_CYCLE = 2


def has_sdram(description: BoardDescription) -> bool:
    """Return whether a board's memory is SDRAM, and not block RAM."""
    return description.memory == "SDRAM"


class SimulatedBoard(wiring.Component):
    """`BoardCore`, a memory, and a UART where there is a baud rate.

    Parameters
    ----------
    description : BoardDescription
        Gives config, clock and memory.
    baud : int or None
        Bits a second; None for a channel of a byte a cycle.

    Members
    -------
    rx, tx, or in_*, out_*
        See `physical_members`.
    sdram_* : pins
        With SDRAM: see `ember_hw.boards.sdram.simulated`.
    """

    def __init__(self, *, description: BoardDescription, baud: int | None):
        self.description = description
        self.baud = baud
        pins = pin_members(CHIP) if has_sdram(description) else {}
        super().__init__(physical_members(baud) | pins)

    def elaborate(self, platform):
        m = Module()
        description = self.description
        m.submodules.core = core = BoardCore(description=description)
        memory = self._sdram(m) if has_sdram(description) else self._block_ram()
        m.submodules.memory = memory
        wiring.connect(m, core.unit_memory[0], memory.unit)
        wiring.connect(m, core.link_memory, memory.link)
        connect_physical(m, self, core)
        return m

    def _block_ram(self) -> BlockMemory:
        description = self.description
        return BlockMemory(
            config=description.config,
            base=description.memory_base,
            num_bytes=description.memory_bytes,
            is_modelled=True,
        )

    def _sdram(self, m: Module) -> SimulatedSdram:
        description = self.description
        clock_mhz = SDRAM_CLOCKS_A_CYCLE * description.clock_hz / 1e6
        memory = SimulatedSdram(chip=CHIP, clock_mhz=clock_mhz, config=description.config)
        for name, member in pin_members(CHIP).items():
            inner, outer = getattr(memory, name), getattr(self, name)
            m.d.comb += outer.eq(inner) if member.flow is Out else inner.eq(outer)
        return memory
