"""The generated core on a board: pads, clock domain, registers, native ports."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, ClockDomain, Const, Instance, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ember_hw.boards.ddr3.control import LiteToWishbone, StatusRegisters
from ember_hw.boards.ddr3.generate import Order, generate
from ember_hw.boards.ddr3.litedram_script import MODULE
from ember_hw.boards.ddr3.memory import DdrMemory
from ember_hw.rtl import axi

#: Width of the core's own addresses: those of all its registers.
_REGISTER_ADDRESS_BITS = 16
#: Pads by LiteDRAM's names and by those of amaranth-boards, whether chip select and reset are
#: there or tied on the board.
_PADS = {
    "a": "a",
    "ba": "ba",
    "ras_n": "ras",
    "cas_n": "cas",
    "we_n": "we",
    "cs_n": "cs",
    "reset_n": "rst",
    "cke": "clk_en",
    "odt": "odt",
    "dm": "dm",
    "dq": "dq",
}
#: Of differential pads only the positive one is named in the netlist.
_PAIRS = {"clk_p": "clk", "dqs_p": "dqs"}


class DdrCore(wiring.Component):
    """PLL, PHY, controller and registers in one, as LiteDRAM generates them, and `DdrMemory`.

    It makes the clock domain `sync` of the board's oscillator: ``m.domains += core.domain``. The
    platform is given the Verilog.

    Parameters
    ----------
    order : Order
        Of kind "core".
    memory : DdrMemory
        For as many ports.
    clock, reset : Value
        The oscillator, and what restarts everything.
    pads : port group
        Of amaranth-boards' resource "ddr3", requested without buffers.

    Members
    -------
    bus : AXI4-Lite, subordinate
        See `REGISTERS`; with an init CPU only `init_done` and `init_error`.
    initialised : out
        The chip can be used.
    """

    def __init__(self, *, order: Order, memory: DdrMemory, clock, reset, pads):
        if order.kind != "core" or order.ports != len(memory.ports):
            raise ValueError(
                f"order must be for a core with {len(memory.ports)} ports, "
                f"not for a {order.kind} with {order.ports}"
            )
        self.order = order
        self.memory = memory
        self.clock = clock
        self.reset = reset
        self.pads = pads
        self.domain = ClockDomain("sync")
        super().__init__(
            {
                "bus": In(axi.LiteSignature(address_bits=_REGISTER_ADDRESS_BITS)),
                "initialised": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        for name, text in generate(self.order, needed_for="`ember-hw build` with DDR3").items():
            platform.add_file(name, text)
        m.submodules.bridge = bridge = LiteToWishbone(address_bits=_REGISTER_ADDRESS_BITS)
        wiring.connect(m, wiring.flipped(self.bus), bridge.lite)
        bus = bridge.wishbone
        done, failed = Signal(), Signal()
        m.d.comb += self.initialised.eq(done & ~failed)
        pins: dict[str, Any] = {
            "i_clk": self.clock,
            "i_rst": self.reset,
            "o_user_clk": self.domain.clk,
            "o_user_rst": self.domain.rst,
            "o_init_done": done,
            "o_init_error": failed,
            **port_pins(self.memory),
            **pad_pins(self.pads),
        }
        for number in range(self.order.ports):
            pins[f"i_user_port_{number}_wdata_valid"] = Const(1)
            pins[f"i_user_port_{number}_wdata_we"] = Const(-1, 16)
            pins[f"i_user_port_{number}_rdata_ready"] = Const(1)
        if self.order.cpu is None:
            pins |= {
                "i_wb_ctrl_adr": Cat(bus.adr, Const(0, 30 - len(bus.adr))),
                "i_wb_ctrl_dat_w": bus.dat_w,
                "o_wb_ctrl_dat_r": bus.dat_r,
                "i_wb_ctrl_sel": Const(0b1111),
                "i_wb_ctrl_cyc": bus.cyc,
                "i_wb_ctrl_stb": bus.stb,
                "o_wb_ctrl_ack": bus.ack,
                "i_wb_ctrl_we": bus.we,
                "i_wb_ctrl_cti": Const(0, 3),
                "i_wb_ctrl_bte": Const(0, 2),
                "o_wb_ctrl_err": bus.err,
            }
        else:
            m.submodules.status = status = StatusRegisters(address_bits=_REGISTER_ADDRESS_BITS)
            wiring.connect(m, bus, status.wishbone)
            m.d.comb += [status.done.eq(done), status.failed.eq(failed)]
            # The CPU's console is heard by nobody.
            pins |= {
                "i_uart_tx_ready": Const(1),
                "i_uart_rx_valid": Const(0),
                "i_uart_rx_data": Const(0, 8),
            }
        m.submodules.core = Instance(MODULE, **pins)
        return m


def port_pins(memory: DdrMemory) -> dict[str, Any]:
    """Return the native ports of a memory as connections of a generated core."""
    pins: dict[str, Any] = {}
    for number, port in enumerate(memory.ports):
        name = f"user_port_{number}"
        pins |= {
            f"i_{name}_cmd_valid": port.cmd_valid,
            f"o_{name}_cmd_ready": port.cmd_ready,
            f"i_{name}_cmd_we": port.cmd_we,
            f"i_{name}_cmd_addr": port.cmd_addr,
            f"o_{name}_wdata_ready": port.wdata_ready,
            f"i_{name}_wdata_data": memory.write_data,
            f"o_{name}_rdata_valid": port.rdata_valid,
        }
    # Every port has the same data.
    return {**pins, "o_user_port_0_rdata_data": memory.read_data}


def pad_pins(pads) -> dict[str, Any]:
    """Return a DDR3 resource's pads as connections of a generated core."""
    pins: dict[str, Any] = {}
    for inner, outer in _PADS.items():
        if hasattr(pads, outer):
            pins[f"io_ddram_{inner}"] = getattr(pads, outer).io
    for inner, outer in _PAIRS.items():
        pins[f"io_ddram_{inner}"] = getattr(pads, outer).p
    return pins
