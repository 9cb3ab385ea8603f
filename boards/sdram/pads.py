"""Registers in the pads between the controller and the chip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Module
from amaranth.lib import io, wiring
from amaranth.lib.wiring import In

from ember_hw.boards.sdram.chip import SdramChip
from ember_hw.boards.sdram.pins import WORD_BYTES, SdramPins


@dataclass(frozen=True)
class SdramPorts:
    """The chip's pins as I/O ports; the clock's pin is the board's own.

    Attributes
    ----------
    ras, cas, we, ba, a, dqm, dq : PortLike
        An inverted port for a pin that is asserted low.
    cs, clk_en : PortLike or None
        None where the board ties the pin.
    """

    ras: Any
    cas: Any
    we: Any
    ba: Any
    a: Any
    dqm: Any
    dq: Any
    cs: Any = None
    clk_en: Any = None

    @staticmethod
    def of_resource(resource: Any) -> SdramPorts:
        """Return the ports of what ``platform.request("sdram", dir="-")`` returned."""
        names = ("ras", "cas", "we", "ba", "a", "dqm", "dq")
        return SdramPorts(
            **{name: getattr(resource, name) for name in names},
            cs=getattr(resource, "cs", None),
            clk_en=getattr(resource, "clk_en", None),
        )

    @staticmethod
    def for_simulation(chip: SdramChip) -> SdramPorts:
        """Return ports that a simulation reads and drives; members are high where asserted."""

        def port(name: str, width: int, direction: str = "o") -> io.SimulationPort:
            return io.SimulationPort(direction, width, name=f"sdram_{name}")

        return SdramPorts(
            ras=port("ras", 1),
            cas=port("cas", 1),
            we=port("we", 1),
            ba=port("ba", chip.bank_bits),
            a=port("a", chip.row_bits),
            dqm=port("dqm", WORD_BYTES),
            dq=port("dq", 8 * WORD_BYTES, "io"),
        )


class SdramPads(wiring.Component):
    """Puts a register into every pad: one clock to the chip, one back.

    The chip's clock is that of `sync` turned by half a period, so that commands and written words
    are stable around its edges, and words that are read are back when `sync` rises next.

    Parameters
    ----------
    chip : SdramChip
    ports : SdramPorts
    domain : str
        Of the controller.
    """

    def __init__(self, *, chip: SdramChip, ports: SdramPorts, domain: str = "sync"):
        self.chip = chip
        self.ports = ports
        self.domain = domain
        super().__init__({"pins": In(SdramPins(chip))})

    def elaborate(self, platform):
        m = Module()
        pins, ports, domain = self.pins, self.ports, self.domain
        command = pins.command.as_value()
        outputs = {
            "we": command[0],
            "cas": command[1],
            "ras": command[2],
            "ba": pins.bank,
            "a": pins.address,
            "dqm": pins.mask,
        }
        for name, value in outputs.items():
            m.submodules[name] = buffer = io.FFBuffer("o", getattr(ports, name), o_domain=domain)
            m.d.comb += buffer.o.eq(value)
        # The chip is always selected, and its clock always runs.
        for name in ("cs", "clk_en"):
            if (port := getattr(ports, name)) is not None:
                m.submodules[name] = buffer = io.Buffer("o", port)
                m.d.comb += buffer.o.eq(1)
        m.submodules.dq = dq = io.FFBuffer("io", ports.dq, i_domain=domain, o_domain=domain)
        m.d.comb += [dq.o.eq(pins.data_out), dq.oe.eq(pins.data_enable), pins.data_in.eq(dq.i)]
        return m
