"""Takes scale and bias out of the beats of coded rows."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.config import AcceleratorConfig
from ember_hw.rtl.execute.reduce_layouts import coded_layout
from ember_hw.rtl.layouts import row_beat_layout

#: Bytes of scale and bias, as fp16 and as fp32.
HALF_HEADER_BYTES, HEADER_BYTES = 4, 8


class CodeAlign(wiring.Component):
    """Gives the codes of rows in full beats, scale and bias beside them.

    Throughput: a beat a cycle, no cycle between rows. What is left of a row behind its last beat
    leaves in the cycle after that came, while the next row's first beat is taken. A row without a
    code becomes one beat of none.

    Backpressure: a beat is taken when the one that it completes leaves.

    Members
    -------
    half_scale : in
        Scale and bias are fp16; constant while there are rows.
    i : stream, in
        Beats of rows: scale, bias, codes.
    o : stream, out
        Their codes.
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        super().__init__(
            {
                "half_scale": In(1),
                "i": In(stream.Signature(row_beat_layout(config))),
                "o": Out(stream.Signature(coded_layout(config))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bus_bytes = self.config.bus_bytes
        beat, out = self.i.payload, self.o.payload
        header_bytes = Mux(self.half_scale, HALF_HEADER_BYTES, HEADER_BYTES)

        first = Signal(init=1)  # the next beat is a row's first
        rest = Signal(8 * (bus_bytes - HALF_HEADER_BYTES))  # of the beat before
        factors = Signal(8 * HEADER_BYTES)
        has_tail = Signal()  # codes of a row that has come are left
        tail_count = Signal(range(bus_bytes))
        goes_beyond = Signal()  # the beat has bytes that are not the header or complete a beat
        completes = Signal()
        m.d.comb += [
            goes_beyond.eq(beat.bytes > header_bytes),
            completes.eq(~has_tail & ~first & self.i.valid),
            self.i.ready.eq(self.o.ready | (first & ~has_tail)),
        ]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [
                first.eq(beat.last),
                rest.eq(beat.data[8 * HALF_HEADER_BYTES :]),
                has_tail.eq(beat.last & (first | goes_beyond)),
                tail_count.eq(Mux(goes_beyond, beat.bytes - header_bytes, 0)),
            ]
            with m.If(first):
                m.d.sync += factors.eq(beat.data[: 8 * HEADER_BYTES])
        with m.Elif(self.o.ready):
            m.d.sync += has_tail.eq(0)

        ends = beat.last & ~goes_beyond
        least_bytes = bus_bytes - header_bytes
        m.d.comb += [
            self.o.valid.eq(has_tail | completes),
            out.codes.as_value().eq(
                Mux(
                    self.half_scale,
                    Cat(rest, beat.data[: 8 * HALF_HEADER_BYTES]),
                    Cat(
                        rest[8 * (HEADER_BYTES - HALF_HEADER_BYTES) :],
                        beat.data[: 8 * HEADER_BYTES],
                    ),
                )
            ),
            out.factors.eq(factors),
            out.last.eq(has_tail | ends),
            out.count.eq(Mux(has_tail, tail_count, Mux(ends, least_bytes + beat.bytes, bus_bytes))),
        ]
        return m
