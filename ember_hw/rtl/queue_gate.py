"""Closes an output queue without breaking its protocol."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out


class QueueGate(wiring.Component):
    """Passes a stream through, no cycle later; when stopped, only an entry already shown.

    Parameters
    ----------
    shape : shape-like
        Payload.

    Members
    -------
    i, o : stream
    stop : in
        Show no further entry. One that was shown and not taken stays until it is taken.
    settled : out
        No entry has to stay.
    """

    def __init__(self, *, shape):
        self.shape = shape
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "o": Out(stream.Signature(shape)),
                "stop": In(1),
                "settled": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        shown = Signal()
        opens = Signal()
        m.d.sync += shown.eq(self.o.valid & ~self.o.ready)
        m.d.comb += [
            opens.eq(~self.stop | shown),
            self.o.payload.eq(self.i.payload),
            self.o.valid.eq(self.i.valid & opens),
            self.i.ready.eq(self.o.ready & opens),
            self.settled.eq(~shown),
        ]
        return m
