"""The host's way to the registers of the generated core: AXI4-Lite to Wishbone."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ember_hw.rtl import axi


class WishboneSignature(wiring.Signature):
    """A Wishbone bus of 32-bit registers, named as LiteX names the signals; the manager's end.

    Ref: Wishbone B4, classic cycles.

    Parameters
    ----------
    address_bits : int
        Width of the byte address; `adr` counts registers.
    """

    def __init__(self, *, address_bits: int):
        self.address_bits = address_bits
        super().__init__(
            {
                "adr": Out(address_bits - 2),
                "dat_w": Out(32),
                "dat_r": In(32),
                "cyc": Out(1),
                "stb": Out(1),
                "we": Out(1),
                "ack": In(1),
                "err": In(1),
            }
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WishboneSignature) and self.address_bits == other.address_bits


class LiteToWishbone(wiring.Component):
    """Carries one access at a time to a Wishbone bus; whole registers only.

    A write is taken when address and data are there. An access that Wishbone ends with `err` is
    answered with SLVERR.

    Parameters
    ----------
    address_bits : int
        Width of the byte address.

    Members
    -------
    lite : AXI4-Lite, subordinate
    wishbone : WishboneSignature
    """

    def __init__(self, *, address_bits: int):
        self.address_bits = address_bits
        super().__init__(
            {
                "lite": In(axi.LiteSignature(address_bits=address_bits)),
                "wishbone": Out(WishboneSignature(address_bits=address_bits)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        lite, bus = self.lite, self.wishbone
        writes, ends, response = Signal(), Signal(), Signal(axi.Response)
        m.d.comb += [
            writes.eq(lite.awvalid & lite.wvalid),
            ends.eq(bus.ack | bus.err),
            lite.awready.eq(bus.stb & bus.we & ends),
            lite.wready.eq(bus.stb & bus.we & ends),
            lite.arready.eq(bus.stb & ~bus.we & ends),
            lite.bresp.eq(response),
            lite.rresp.eq(response),
            bus.adr.eq(Mux(bus.we, lite.awaddr, lite.araddr) >> 2),
            bus.dat_w.eq(lite.wdata),
            bus.cyc.eq(bus.stb),
        ]
        with m.FSM(name="work"):
            with m.State("REST"):
                with m.If(writes | lite.arvalid):
                    m.d.sync += [bus.stb.eq(1), bus.we.eq(writes)]
                    m.next = "ACCESS"
            with m.State("ACCESS"):
                with m.If(ends):
                    m.d.sync += [
                        bus.stb.eq(0),
                        lite.rdata.eq(bus.dat_r),
                        lite.bvalid.eq(bus.we),
                        lite.rvalid.eq(~bus.we),
                        response.eq(Mux(bus.err, axi.Response.SLAVE_ERROR, axi.Response.OKAY)),
                    ]
                    m.next = "ANSWER"
            with m.State("ANSWER"):
                with m.If((lite.bvalid & lite.bready) | (lite.rvalid & lite.rready)):
                    m.d.sync += [lite.bvalid.eq(0), lite.rvalid.eq(0)]
                    m.next = "REST"
        return m


class StatusRegisters(wiring.Component):
    """What is left of the registers where an init CPU has them: those that say how it ended.

    Registers 0 and 1 tell `init_done` and `init_error`, as `REGISTERS` has them; others are 0.
    Writes do nothing. An access takes a cycle.

    Parameters
    ----------
    address_bits : int
        Width of the byte address.

    Members
    -------
    wishbone : WishboneSignature, subordinate
    done, failed : in
    """

    def __init__(self, *, address_bits: int):
        super().__init__(
            {
                "wishbone": In(WishboneSignature(address_bits=address_bits)),
                "done": In(1),
                "failed": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bus = self.wishbone
        m.d.comb += bus.ack.eq(bus.stb)
        with m.Switch(bus.adr):
            with m.Case(0):
                m.d.comb += bus.dat_r.eq(self.done)
            with m.Case(1):
                m.d.comb += bus.dat_r.eq(self.failed)
        return m
