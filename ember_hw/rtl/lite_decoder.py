"""Spreads AXI4-Lite accesses over the register files of several access units."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ember_hw import registers
from ember_hw.rtl import axi


class LiteDecoder(wiring.Component):
    """Sends each access to the unit whose number stands above the address of a register.

    One write and one read at a time; an access costs two cycles more than in the unit. An address
    that belongs to no unit is answered with DECERR.

    Parameters
    ----------
    units : int
        1 to 8.

    Members
    -------
    bus : AXI4-Lite, subordinate
    units : AXI4-Lite, manager, one a unit
    """

    def __init__(self, *, units: int):
        if not 1 <= units <= 8:
            raise ValueError(f"units must be from 1 to 8, not {units!r}")
        super().__init__(
            {
                "bus": In(axi.LiteSignature(address_bits=self.address_bits(units))),
                "units": Out(axi.LiteSignature()).array(units),
            }
        )

    @staticmethod
    def address_bits(units: int) -> int:
        """Return the width of the cluster's address."""
        return registers.ADDRESS_WIDTH_BITS + (units - 1).bit_length()

    def elaborate(self, platform):
        m = Module()
        self._write(m)
        self._read(m)
        return m

    def _write(self, m: Module) -> None:
        """Hold address and data until both are here, hand them on, and pass the answer back."""
        bus = self.bus
        address = Signal.like(bus.awaddr)
        data = Signal.like(bus.wdata)
        strobe = Signal.like(bus.wstrb)
        have_address = Signal()
        have_data = Signal()
        address_goes = Signal()  # has not been taken by the unit
        data_goes = Signal()
        both = Signal()
        unit = address[registers.ADDRESS_WIDTH_BITS :]
        m.d.comb += [
            both.eq(have_address & have_data),
            bus.awready.eq(~have_address),
            bus.wready.eq(~have_data),
        ]
        with m.If(bus.awvalid & bus.awready):
            m.d.sync += [address.eq(bus.awaddr), have_address.eq(1), address_goes.eq(1)]
        with m.If(bus.wvalid & bus.wready):
            m.d.sync += [data.eq(bus.wdata), strobe.eq(bus.wstrb), have_data.eq(1), data_goes.eq(1)]
        for number, port in enumerate(self.units):
            m.d.comb += [port.awaddr.eq(address), port.wdata.eq(data), port.wstrb.eq(strobe)]
            with m.If(both & (unit == number)):
                m.d.comb += [
                    port.awvalid.eq(address_goes),
                    port.wvalid.eq(data_goes),
                    port.bready.eq(bus.bready),
                    bus.bvalid.eq(port.bvalid),
                    bus.bresp.eq(port.bresp),
                ]
            with m.If(port.awvalid & port.awready):
                m.d.sync += address_goes.eq(0)
            with m.If(port.wvalid & port.wready):
                m.d.sync += data_goes.eq(0)
        with m.If(both & (unit >= len(self.units))):
            m.d.comb += [bus.bvalid.eq(1), bus.bresp.eq(axi.Response.DECODE_ERROR)]
        with m.If(bus.bvalid & bus.bready):
            m.d.sync += [have_address.eq(0), have_data.eq(0)]

    def _read(self, m: Module) -> None:
        """Hold the address, hand it on, and pass the answer back."""
        bus = self.bus
        address = Signal.like(bus.araddr)
        have_address = Signal()
        address_goes = Signal()
        unit = address[registers.ADDRESS_WIDTH_BITS :]
        m.d.comb += bus.arready.eq(~have_address)
        with m.If(bus.arvalid & bus.arready):
            m.d.sync += [address.eq(bus.araddr), have_address.eq(1), address_goes.eq(1)]
        for number, port in enumerate(self.units):
            m.d.comb += port.araddr.eq(address)
            with m.If(have_address & (unit == number)):
                m.d.comb += [
                    port.arvalid.eq(address_goes),
                    port.rready.eq(bus.rready),
                    bus.rvalid.eq(port.rvalid),
                    bus.rdata.eq(port.rdata),
                    bus.rresp.eq(port.rresp),
                ]
            with m.If(port.arvalid & port.arready):
                m.d.sync += address_goes.eq(0)
        with m.If(have_address & (unit >= len(self.units))):
            m.d.comb += [bus.rvalid.eq(1), bus.rresp.eq(axi.Response.DECODE_ERROR)]
        with m.If(bus.rvalid & bus.rready):
            m.d.sync += have_address.eq(0)
