"""Merges the line requests of all memory streams into reads of the memory port."""

from __future__ import annotations

from amaranth.hdl import Const, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw import isa
from ember_hw.config import AcceleratorConfig
from ember_hw.rtl.layouts import (
    beat_count_bits,
    line_address_bits,
    read_request_layout,
    tag_bits,
)


class IndexPort(wiring.Component):
    """Asks for one line a cycle; outer units go first, since inner ones wait for them.

    A stream's number is its reads' tag, so its lines return in the order they were asked for. No
    stream starves: each asks for no more lines than it has places, and a stream that waits keeps
    its unit, and so those above it, from running on.

    Members
    -------
    lines : streams, in
        Line numbers, stream ``unit * streams_per_unit + index``.
    hints : in
        The streams' hints.
    request : stream, out
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        ports = config.traversal_units * config.streams_per_unit
        super().__init__(
            {
                "lines": In(stream.Signature(line_address_bits(config))).array(ports),
                "hints": In(isa.Hint).array(ports),
                "request": Out(stream.Signature(read_request_layout(config))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        line_beats = Const(self.config.line_beats, beat_count_bits(self.config))
        free = ~self.request.valid | self.request.ready
        with m.If(free):
            m.d.sync += self.request.valid.eq(0)
            granted = False
            for port, line in enumerate(self.lines):
                begin = m.Elif if granted else m.If
                granted = True
                with begin(line.valid):
                    m.d.comb += line.ready.eq(1)
                    m.d.sync += [
                        self.request.valid.eq(1),
                        self.request.payload.address.eq(
                            line.payload << (self.config.address_width_bits - len(line.payload))
                        ),
                        self.request.payload.beats.eq(line_beats),
                        self.request.payload.hint.eq(self.hints[port]),
                        self.request.payload.tag.eq(Const(port, tag_bits(self.config))),
                    ]
        return m
