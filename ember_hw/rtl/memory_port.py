"""The memory port: reads of both clients merged, as an AXI4 read manager."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw import isa
from ember_hw.config import AcceleratorConfig
from ember_hw.rtl import axi
from ember_hw.rtl.layouts import read_beat_layout, read_request_layout, tag_bits

# ARCACHE for ordinary memory, and for lines that will not be used again (no allocate). Ref: IHI
# 0022, A4.4.
_CACHE_NORMAL = 0b1111
_CACHE_NON_TEMPORAL = 0b0011


class MemoryPort(wiring.Component):
    """Sends index reads before row reads, one a cycle, and hands every returned beat to its client.

    Bit ``tag_bits - 1`` of ARID is 1 for index lines, 0 for rows. Both clients have a place for
    each beat they asked for, so RREADY is always high. A request that was shown on AR stays there
    until it is taken, whatever `stop` says.

    Parameters
    ----------
    config : AcceleratorConfig

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
    axi : AXI4 read channels, manager
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        super().__init__(
            {
                "index_request": In(stream.Signature(read_request_layout(config))),
                "row_request": In(stream.Signature(read_request_layout(config))),
                "index_valid": Out(1),
                "row_valid": Out(1),
                "beat": Out(read_beat_layout(config)),
                "stop": In(1),
                "idle": Out(1),
                "waiting": Out(1),
                "axi": Out(axi.ReadSignature(config)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config, bus = self.config, self.axi
        top = tag_bits(config) - 1

        free = Signal()
        m.d.comb += [
            free.eq((~bus.arvalid | bus.arready) & ~self.stop),
            self.index_request.ready.eq(free),
            self.row_request.ready.eq(free & ~self.index_request.valid),
            self.waiting.eq(bus.arvalid & ~bus.arready),
        ]
        chosen = Signal(read_request_layout(config))
        is_index = self.index_request.valid
        m.d.comb += chosen.eq(
            Mux(
                is_index, self.index_request.payload.as_value(), self.row_request.payload.as_value()
            )
        )
        with m.If(bus.arready):
            m.d.sync += bus.arvalid.eq(0)
        with m.If(free):
            m.d.sync += [
                bus.arvalid.eq(self.index_request.valid | self.row_request.valid),
                bus.araddr.eq(chosen.address),
                bus.arlen.eq(chosen.beats - 1),
                bus.arid.eq(chosen.tag[:top] | (is_index << top)),
                bus.arcache.eq(
                    Mux(chosen.hint == isa.Hint.NON_TEMPORAL, _CACHE_NON_TEMPORAL, _CACHE_NORMAL)
                ),
            ]
        m.d.comb += [
            bus.arsize.eq(Const((config.bus_bytes - 1).bit_length(), 3)),
            bus.arburst.eq(axi.Burst.INCREMENTING),
            bus.rready.eq(1),
        ]

        asked = bus.arvalid & bus.arready
        returned = bus.rvalid & bus.rlast
        in_flight = Signal(range(config.outstanding_reads + _index_lines(config) + 1))
        m.d.sync += [
            in_flight.eq(in_flight + asked - returned),
            self.index_valid.eq(bus.rvalid & bus.rid[top]),
            self.row_valid.eq(bus.rvalid & ~bus.rid[top]),
            self.beat.tag.eq(bus.rid[:top]),
            self.beat.data.eq(bus.rdata),
            self.beat.last.eq(bus.rlast),
            self.beat.response.eq(bus.rresp),
        ]
        m.d.comb += self.idle.eq(
            (in_flight == 0) & ~bus.arvalid & ~self.index_valid & ~self.row_valid
        )
        return m


def _index_lines(config: AcceleratorConfig) -> int:
    """Return the lines that may be in flight: every place of every stream."""
    return config.traversal_units * config.streams_per_unit * config.lines_per_stream
