"""Queues between the blocks, on Amaranth's FIFOs."""

from __future__ import annotations

from amaranth.hdl import Assert, Module, Shape, Signal, Value
from amaranth.lib import fifo, stream, wiring
from amaranth.lib.wiring import In, Out


class StreamFifo(wiring.Component):
    """A queue from stream to stream.

    Parameters
    ----------
    shape : shape-like
        Payload.
    depth_entries : int
        Entries it holds, 2 or more.

    Members
    -------
    i, o : stream
        One entry a cycle in and out, with a depth of 3 or more; an entry can leave two cycles after
        it came.
    level : out
        Entries inside.
    """

    def __init__(self, *, shape, depth_entries: int):
        if depth_entries < 2:
            raise ValueError(f"depth_entries must be at least 2, not {depth_entries!r}")
        self.shape = shape
        self.depth_entries = depth_entries
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "o": Out(stream.Signature(shape)),
                "level": Out(range(depth_entries + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        width = Shape.cast(self.shape).width
        m.submodules.fifo = queue = fifo.SyncFIFOBuffered(width=width, depth=self.depth_entries)
        m.d.comb += [
            queue.w_data.eq(self.i.payload),
            queue.w_en.eq(self.i.valid),
            self.i.ready.eq(queue.w_rdy),
            Value.cast(self.o.payload).eq(queue.r_data),
            self.o.valid.eq(queue.r_rdy),
            queue.r_en.eq(self.o.ready),
            self.level.eq(queue.level),
        ]
        return m


class ReservedFifo(wiring.Component):
    """A queue behind a pipeline that cannot stall: room is reserved where work enters it.

    Parameters
    ----------
    shape : shape-like
        Payload.
    credits : int
        Entries that may be reserved or waiting at one time. One entry a cycle needs as many as the
        cycles from `take` to the entry's leaving.

    Members
    -------
    room : out
        An entry may be reserved in this cycle.
    take : in
        Reserve one; only while `room` is high.
    push, payload : in
        Fill a reserved entry. Always succeeds.
    o : stream
        The entries in order; leaving gives the reservation back.
    level : out
        Entries reserved or waiting.
    """

    def __init__(self, *, shape, credits: int):
        if credits < 1:
            raise ValueError(f"credits must be at least 1, not {credits!r}")
        self.shape = shape
        self.credits = credits
        super().__init__(
            {
                "room": Out(1),
                "take": In(1),
                "push": In(1),
                "payload": In(shape),
                "o": Out(stream.Signature(shape)),
                "level": Out(range(credits + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        # SyncFIFOBuffered needs two entries more than it is ever asked to hold: its output register
        # and the cycle in which the inner queue still counts an entry that has moved there.
        m.submodules.queue = queue = StreamFifo(shape=self.shape, depth_entries=self.credits + 2)
        wiring.connect(m, queue.o, wiring.flipped(self.o))
        m.d.comb += [queue.i.payload.eq(self.payload), queue.i.valid.eq(self.push)]

        free = Signal(range(self.credits + 1), init=self.credits)
        give = Signal()
        m.d.comb += [
            give.eq(self.o.valid & self.o.ready),
            self.room.eq(free != 0),
            self.level.eq(self.credits - free),
        ]
        with m.If(self.take & ~give):
            m.d.sync += free.eq(free - 1)
        with m.Elif(give & ~self.take):
            m.d.sync += free.eq(free + 1)
        # At the clock's edge: between edges the two sides of a wire may differ for a moment.
        m.d.sync += [Assert(~(self.push & ~queue.i.ready)), Assert(~(self.take & ~self.room))]
        return m
