"""One memory port: reads of both clients as an AXI read manager."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw import isa
from ember_hw.config import AcceleratorConfig
from ember_hw.rtl import axi
from ember_hw.rtl.layouts import read_request_layout, request_tag_bits, streams

# ARCACHE for ordinary memory, and for lines that will not be used again (no allocate). Ref: IHI
# 0022, A4.4.
_CACHE_NORMAL = 0b1111
_CACHE_NON_TEMPORAL = 0b0011


def port_beat_layout(config: AcceleratorConfig, *, index: bool) -> data.StructLayout:
    """Return a beat of one port; `index`: of the index lines' own port."""
    return data.StructLayout(
        {
            "tag": request_tag_bits(config),
            "data": config.index_port_bits if index else config.data_width_bits,
            "last": 1,
            "response": 2,
        }
    )


class MemoryPort(wiring.Component):
    """Sends index reads before row reads, one a cycle, and hands every returned beat to its client.

    The top bit of ARID is 1 for index lines, 0 for rows; the index lines' own port has no such bit.
    Whoever asks has a place for each beat, so RREADY is always high. A request that was shown on AR
    stays there until it is taken, whatever `stop` says.

    Parameters
    ----------
    config : AcceleratorConfig
    index : bool
        The index lines' own port: `row_request` stays unused.

    Members
    -------
    index_request, row_request : streams, in
    index_valid, row_valid, beat : out
        A returned beat and whose it is; a cycle after R.
    stop : in
        Take no further request.
    idle : out
        No read is in flight or waits on AR.
    waiting : out
        A request waits for ARREADY.
    axi : AXI read channels, manager
    """

    def __init__(self, *, config: AcceleratorConfig, index: bool = False):
        self.config = config
        self.index = index
        super().__init__(
            {
                "index_request": In(stream.Signature(read_request_layout(config))),
                "row_request": In(stream.Signature(read_request_layout(config))),
                "index_valid": Out(1),
                "row_valid": Out(1),
                "beat": Out(port_beat_layout(config, index=index)),
                "stop": In(1),
                "idle": Out(1),
                "waiting": Out(1),
                "axi": Out(axi.ReadSignature(config, index=index)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config, bus = self.config, self.axi
        tag_width = request_tag_bits(config)

        free = Signal()
        is_index = Signal()
        chosen = Signal(read_request_layout(config))
        m.d.comb += [
            free.eq((~bus.arvalid | bus.arready) & ~self.stop),
            self.index_request.ready.eq(free),
            self.row_request.ready.eq(free & ~self.index_request.valid),
            self.waiting.eq(bus.arvalid & ~bus.arready),
            is_index.eq(self.index_request.valid),
            chosen.eq(Mux(is_index, self.index_request.payload, self.row_request.payload)),
        ]
        with m.If(bus.arready):
            m.d.sync += bus.arvalid.eq(0)
        with m.If(free):
            m.d.sync += [
                bus.arvalid.eq(self.index_request.valid | self.row_request.valid),
                bus.araddr.eq(chosen.address),
                bus.arlen.eq(chosen.length),
                bus.arid.eq(Cat(chosen.tag, is_index)),
                bus.arcache.eq(
                    Mux(chosen.hint == isa.Hint.NON_TEMPORAL, _CACHE_NON_TEMPORAL, _CACHE_NORMAL)
                ),
            ]
        bus_bytes = len(bus.rdata) // 8
        m.d.comb += [
            bus.arsize.eq(Const((bus_bytes - 1).bit_length(), 3)),
            bus.arburst.eq(axi.Burst.INCREMENTING),
            bus.rready.eq(1),
        ]

        to_index = Const(1) if self.index else bus.rid[tag_width]
        asked = bus.arvalid & bus.arready
        returned = bus.rvalid & bus.rlast
        in_flight = Signal(range(most_reads(config) + 1))
        with m.If(asked & ~returned):
            m.d.sync += in_flight.eq(in_flight + 1)
        with m.Elif(returned & ~asked):
            m.d.sync += in_flight.eq(in_flight - 1)
        m.d.sync += [
            self.index_valid.eq(bus.rvalid & to_index),
            self.row_valid.eq(bus.rvalid & ~to_index),
            self.beat.tag.eq(bus.rid[:tag_width]),
            self.beat.data.eq(bus.rdata),
            self.beat.last.eq(bus.rlast),
            self.beat.response.eq(bus.rresp),
        ]
        m.d.comb += self.idle.eq(
            (in_flight == 0) & ~bus.arvalid & ~self.index_valid & ~self.row_valid
        )
        return m


def most_reads(config: AcceleratorConfig) -> int:
    """Return the reads that may be in flight: the rows', and every place of every stream."""
    return config.outstanding_reads + streams(config) * config.lines_per_stream
