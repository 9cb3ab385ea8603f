"""Takes turns among streams."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out


class StreamArbiter(wiring.Component):
    """Merges streams: one payload a cycle, whoever waited longest since it was served first.

    A stream that waits is served after every other at most once. The payloads of one stream keep
    their order. The output is a register: a payload leaves a cycle after it was taken.

    Parameters
    ----------
    shape : shape-like
        Payload.
    inputs : int
        Streams, 1 or more.

    Members
    -------
    i : streams, in
    o : stream, out
        ``payload``, and the number of the stream it came from in ``source``.
    """

    def __init__(self, *, shape, inputs: int):
        if inputs < 1:
            raise ValueError(f"inputs must be at least 1, not {inputs!r}")
        self.shape = shape
        self.inputs = inputs
        layout = data.StructLayout({"payload": shape, "source": range(max(2, inputs))})
        super().__init__(
            {"i": In(stream.Signature(shape)).array(inputs), "o": Out(stream.Signature(layout))}
        )

    def elaborate(self, platform):
        m = Module()
        last = Signal(range(max(2, self.inputs)))  # served last: the one behind it is first now
        chosen = Signal.like(last)
        free = Signal()
        waits = Cat(port.valid for port in self.i)
        m.d.comb += free.eq(~self.o.valid | self.o.ready)
        with m.Switch(last):
            for served in range(self.inputs):
                with m.Case(served):
                    for distance in reversed(range(1, self.inputs + 1)):
                        number = (served + distance) % self.inputs
                        with m.If(self.i[number].valid):
                            m.d.comb += chosen.eq(number)
        for number, port in enumerate(self.i):
            m.d.comb += port.ready.eq(free & (chosen == number))
        with m.If(free):
            m.d.sync += [
                self.o.valid.eq(waits.any()),
                self.o.payload.payload.eq(Array(port.payload for port in self.i)[chosen]),
                self.o.payload.source.eq(chosen),
            ]
            with m.If(waits.any()):
                m.d.sync += last.eq(chosen)
        return m
