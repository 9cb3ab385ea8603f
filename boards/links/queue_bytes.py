"""What the access unit delivers, as one stream of bytes."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.boards.links.frame import BEAT_LAST, Beat
from ember_hw.boards.links.ports import byte_stream
from ember_hw.config import AcceleratorConfig
from ember_hw.rtl.layouts import bundle_layout, row_beat_layout


def beat_bytes(kind: Beat, config: AcceleratorConfig) -> int:
    """Return the bytes of data of a beat; the byte that tells its kind stands before them."""
    return config.bundle_bytes if kind is Beat.BUNDLE else config.bus_bytes


class QueueBytes(wiring.Component):
    """Turns beats of the unit's queues into bytes, a beat at a time, bundles first.

    A byte a cycle, and a cycle between two beats. A beat is taken when the one before it has left.

    Parameters
    ----------
    config : AcceleratorConfig
        The access unit.

    Members
    -------
    bundle, row : streams
        With `config.execute` ``queues``.
    result : stream
        With ``reduce``.
    queue_reset : in
        Drops what is here, as the access unit does.
    o : stream
        Of each beat its kind, then its data.
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        rows = stream.Signature(row_beat_layout(config))
        if config.execute == "reduce":
            members = {"result": In(rows)}
        else:
            members = {"bundle": In(stream.Signature(bundle_layout(config))), "row": In(rows)}
        super().__init__({**members, "queue_reset": In(1), "o": Out(byte_stream())})

    def elaborate(self, platform):
        m = Module()
        config = self.config
        if config.execute == "reduce":
            queues = [(Beat.RESULT, self.result, self.result.payload.data)]
        else:
            payload = self.bundle.payload
            bundle = payload.events | (payload.scalars.as_value() << config.events)
            queues = [
                (Beat.BUNDLE, self.bundle, bundle),
                (Beat.ROW, self.row, self.row.payload.data),
            ]
        most = max(beat_bytes(kind, config) for kind, _, _ in queues)
        held = Signal(8 * (1 + most))
        left = Signal(range(most + 2))
        m.d.comb += [self.o.valid.eq(left != 0), self.o.payload.eq(held[:8])]
        with m.If(left != 0):
            with m.If(self.o.ready):
                m.d.sync += [held.eq(held >> 8), left.eq(left - 1)]
        taken = 0
        for kind, queue, value in queues:
            first = int(kind) | queue.payload.last * BEAT_LAST
            m.d.comb += queue.ready.eq((left == 0) & ~taken & ~self.queue_reset)
            with m.If(queue.valid & queue.ready):
                m.d.sync += [held.eq(first | value << 8), left.eq(1 + beat_bytes(kind, config))]
            taken = taken | queue.valid
        with m.If(self.queue_reset):
            m.d.sync += left.eq(0)
            m.d.comb += self.o.valid.eq(0)
        return m
