"""Merges the line requests of all memory streams into one stream."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw import isa
from ember_hw.config import AcceleratorConfig
from ember_hw.rtl.layouts import line_address_bits, stream_bits, streams


def line_layout(config: AcceleratorConfig) -> data.StructLayout:
    """Return a line to read: its number, and the stream that wants it."""
    return data.StructLayout(
        {"line": line_address_bits(config), "stream": stream_bits(config), "hint": isa.Hint}
    )


class IndexPort(wiring.Component):
    """Asks for one line a cycle; outer units go first, since inner ones wait for them.

    No stream starves: each asks for no more lines than it has places, and a stream that waits keeps
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
        super().__init__(
            {
                "lines": In(stream.Signature(line_address_bits(config))).array(streams(config)),
                "hints": In(isa.Hint).array(streams(config)),
                "request": Out(stream.Signature(line_layout(config))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        free = Signal()
        chosen = Signal(stream_bits(self.config))
        m.d.comb += free.eq(~self.request.valid | self.request.ready)
        for number, line in reversed(list(enumerate(self.lines))):
            with m.If(line.valid):
                m.d.comb += chosen.eq(number)
        for number, line in enumerate(self.lines):
            m.d.comb += line.ready.eq(free & (chosen == number))
        # Selected by number: a chain of conditions would be a chain of multiplexers.
        payload = self.request.payload
        with m.If(free):
            m.d.sync += [
                self.request.valid.eq(Cat(line.valid for line in self.lines).any()),
                payload.line.eq(Array(line.payload for line in self.lines)[chosen]),
                payload.stream.eq(chosen),
                payload.hint.eq(Array(self.hints)[chosen]),
            ]
        return m
