"""The memory with the chip's pins as ports, for a simulation that brings the chip."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Member, Out

from ember_hw.boards.memory import memory_members
from ember_hw.boards.sdram.chip import SdramChip
from ember_hw.boards.sdram.memory import DOMAIN, SdramMemory
from ember_hw.boards.sdram.pads import SdramPads, SdramPorts
from ember_hw.boards.sdram.pins import WORD_BYTES
from ember_hw.config import AcceleratorConfig

#: Members of `SdramPorts` that a simulation reads, by the name of its port.
_OUTPUTS = ("ras", "cas", "we", "ba", "a", "dqm")


def pin_members(chip: SdramChip) -> dict[str, Member]:
    """Return the chip's pins as flat ports, high where they are asserted."""
    return {
        "sdram_ras": Out(1),
        "sdram_cas": Out(1),
        "sdram_we": Out(1),
        "sdram_ba": Out(chip.bank_bits),
        "sdram_a": Out(chip.row_bits),
        "sdram_dqm": Out(WORD_BYTES),
        "sdram_dq_out": Out(8 * WORD_BYTES),
        "sdram_dq_enable": Out(1),
        "sdram_dq_in": In(8 * WORD_BYTES),
    }


class SimulatedSdram(wiring.Component):
    """`SdramMemory` and its pads; the domain `sdram` is the simulation's.

    Parameters
    ----------
    chip, clock_mhz, config
        See `SdramMemory`.

    Members
    -------
    unit, link : in
        See `memory_members`.
    sdram_* : pins
        See `pin_members`.
    """

    def __init__(self, *, chip: SdramChip, clock_mhz: float, config: AcceleratorConfig):
        self.chip = chip
        self.clock_mhz = clock_mhz
        self.config = config
        super().__init__({**memory_members(config), **pin_members(chip)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = SdramMemory(
            chip=self.chip, clock_mhz=self.clock_mhz, config=self.config
        )
        ports = SdramPorts.for_simulation(self.chip)
        m.submodules.pads = pads = SdramPads(chip=self.chip, ports=ports, domain=DOMAIN)
        wiring.connect(m, wiring.flipped(self.unit), memory.unit)
        wiring.connect(m, wiring.flipped(self.link), memory.link)
        wiring.connect(m, memory.pins, pads.pins)
        for name in _OUTPUTS:
            m.d.comb += getattr(self, f"sdram_{name}").eq(getattr(ports, name).o)
        m.d.comb += [
            self.sdram_dq_out.eq(ports.dq.o),
            self.sdram_dq_enable.eq(ports.dq.oe[0]),
            ports.dq.i.eq(self.sdram_dq_in),
        ]
        return m
