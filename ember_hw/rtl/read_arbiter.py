"""Lets several access units read through one memory channel."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.config import AcceleratorConfig
from ember_hw.rtl import axi
from ember_hw.rtl.layouts import tag_bits
from ember_hw.rtl.stream_arbiter import StreamArbiter


class ReadArbiter(wiring.Component):
    """Merges the reads of several units in turn; a beat finds its unit by the ID's top bits.

    One read a cycle; a unit that waits is served after every other at most once, whatever they ask
    for. A read leaves a cycle after it came; beats pass in the same cycle, and the channel's RREADY
    is that of the unit whose beat it is.

    Parameters
    ----------
    config : AcceleratorConfig
        Of each unit.
    units : int
        1 to 8.

    Members
    -------
    units : AXI read channels, subordinate, one a unit
    channel : AXI read channels, manager
        Its IDs are those of the units, with the unit's number above.
    """

    def __init__(self, *, config: AcceleratorConfig, units: int):
        if not 1 <= units <= 8:
            raise ValueError(f"units must be from 1 to 8, not {units!r}")
        self.config = config
        unit_bits = (units - 1).bit_length()
        super().__init__(
            {
                "units": In(axi.ReadSignature(config)).array(units),
                "channel": Out(axi.ReadSignature(config, extra_id_bits=unit_bits)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config, channel = self.config, self.channel
        fields = ("arid", "araddr", "arlen", "arcache")
        layout = data.StructLayout({name: len(getattr(self.units[0], name)) for name in fields})
        m.submodules.arbiter = arbiter = StreamArbiter(shape=layout, inputs=len(self.units))
        read = arbiter.o.payload
        id_bits = tag_bits(config)
        from_unit = Cat(channel.rid[id_bits:], Const(0, 1))
        for number, unit in enumerate(self.units):
            for name in fields:
                m.d.comb += getattr(arbiter.i[number].payload, name).eq(getattr(unit, name))
            m.d.comb += [
                arbiter.i[number].valid.eq(unit.arvalid),
                unit.arready.eq(arbiter.i[number].ready),
                unit.rvalid.eq(channel.rvalid & (from_unit == number)),
                unit.rid.eq(channel.rid[:id_bits]),
                unit.rdata.eq(channel.rdata),
                unit.rresp.eq(channel.rresp),
                unit.rlast.eq(channel.rlast),
            ]
        m.d.comb += [
            channel.arvalid.eq(arbiter.o.valid),
            arbiter.o.ready.eq(channel.arready),
            channel.arid.eq(Cat(read.payload.arid, read.source)),
            channel.araddr.eq(read.payload.araddr),
            channel.arlen.eq(read.payload.arlen),
            channel.arcache.eq(read.payload.arcache),
            channel.arsize.eq((config.bus_bytes - 1).bit_length()),
            channel.arburst.eq(axi.Burst.INCREMENTING),
            channel.rready.eq(Array(unit.rready for unit in self.units)[from_unit]),
        ]
        return m
