"""The top of the simulated board: what a board holds, with block RAM as its memory."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import wiring

from ember_hw.boards.block_memory import BlockMemory
from ember_hw.boards.core import BoardCore
from ember_hw.boards.description import BoardDescription
from ember_hw.boards.simulated.probe import connect_physical, physical_members


class SimulatedBoard(wiring.Component):
    """`BoardCore`, block RAM, and a UART where there is a baud rate.

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
    """

    def __init__(self, *, description: BoardDescription, baud: int | None):
        self.description = description
        self.baud = baud
        super().__init__(physical_members(baud))

    def elaborate(self, platform):
        m = Module()
        description = self.description
        m.submodules.core = core = BoardCore(description=description)
        m.submodules.memory = memory = BlockMemory(
            config=description.config,
            base=description.memory_base,
            num_bytes=description.memory_bytes,
            is_modelled=True,
        )
        wiring.connect(m, core.unit_memory[0], memory.unit)
        wiring.connect(m, core.link_memory, memory.link)
        connect_physical(m, self, core)
        return m
