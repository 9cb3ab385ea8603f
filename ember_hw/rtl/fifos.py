"""Queues between the blocks: small ones in LUT memory, long ones in block memory.

Neither kind reads an entry in the cycle that writes it, so no memory needs a bypass. Long ones end
in a register, since block memory is slow; LUT memory is as fast as a LUT, so short ones don't, and
a consumer that is a register takes the place of theirs.
"""

from __future__ import annotations

from amaranth.hdl import Assert, Module, Shape, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

#: Attributes of a memory that is never read where it is written in the same cycle. Yosys would
#: build a bypass around block memory otherwise, of more logic than the queue.
NO_BYPASS = {"no_rw_check": 1}

#: Entries that a LUT memory holds without a multiplexer behind it.
LUT_MEMORY_ENTRIES = 16


class StreamFifo(wiring.Component):
    """A queue from stream to stream.

    One entry a cycle in and out, in order. An entry can leave the cycle after it came, three cycles
    if the queue is longer than `LUT_MEMORY_ENTRIES`.

    Parameters
    ----------
    shape : shape-like
        Payload.
    depth_entries : int
        Entries the memory holds, 2 or more; the registers behind a long one hold two more.

    Members
    -------
    i, o : stream
    level : out
        Entries inside, those in the registers included.
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
                "level": Out(range(depth_entries + 3)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        depth = self.depth_entries
        is_small = depth <= LUT_MEMORY_ENTRIES
        m.submodules.memory = memory = Memory(
            shape=Shape.cast(self.shape).width,
            depth=1 << (depth - 1).bit_length(),
            init=[],
            attrs=NO_BYPASS,
        )
        write = memory.write_port()
        read = memory.read_port(domain="comb" if is_small else "sync")

        stored = Signal(range(depth + 1))  # entries in the memory
        some = Signal()
        room = Signal(init=1)
        push = Signal()
        pop = Signal()  # from the memory
        m.d.comb += [
            self.i.ready.eq(room),
            push.eq(self.i.valid & room),
            write.data.eq(self.i.payload),
            write.en.eq(push),
        ]
        m.d.sync += write.addr.eq(write.addr + push)
        # What both may become is compared before it is known which: `pop` comes late.
        with m.If(push & ~pop):
            m.d.sync += [stored.eq(stored + 1), some.eq(1), room.eq(stored != depth - 1)]
        with m.Elif(pop & ~push):
            m.d.sync += [stored.eq(stored - 1), some.eq(stored != 1), room.eq(1)]
        read_pointer = Signal.like(read.addr)
        m.d.sync += read_pointer.eq(read_pointer + pop)
        m.d.comb += read.addr.eq(read_pointer)

        if is_small:
            m.d.comb += [
                Value.cast(self.o.payload).eq(read.data),
                self.o.valid.eq(some),
                pop.eq(some & self.o.ready),
                self.level.eq(stored),
            ]
        else:
            out = Signal(Shape.cast(self.shape).width, reset_less=True)
            moves = Signal()  # the output register takes an entry
            read_valid = Signal()  # the memory's output is an entry
            m.d.comb += [
                Value.cast(self.o.payload).eq(out),
                moves.eq(~self.o.valid | self.o.ready),
                pop.eq(some & (~read_valid | moves)),
                read.en.eq(pop),
            ]
            with m.If(moves):
                m.d.sync += [out.eq(read.data), self.o.valid.eq(read_valid)]
            with m.If(pop):
                m.d.sync += read_valid.eq(1)
            with m.Elif(moves):
                m.d.sync += read_valid.eq(0)
            m.d.sync += self.level.eq(self.level + push - (self.o.valid & self.o.ready))
        return m


class ReservedFifo(wiring.Component):
    """A queue behind a pipeline that cannot stall: room is reserved where work enters it.

    Parameters
    ----------
    shape : shape-like
        Payload.
    credits : int
        Entries that may be reserved or waiting at one time. One entry a cycle needs one more than
        the cycles from `take` to the entry's leaving.

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
                "room": Out(1, init=1),
                "take": In(1),
                "push": In(1),
                "payload": In(shape),
                "o": Out(stream.Signature(shape)),
                "level": Out(range(credits + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = StreamFifo(
            shape=self.shape, depth_entries=max(2, self.credits)
        )
        wiring.connect(m, queue.o, wiring.flipped(self.o))
        m.d.comb += [queue.i.payload.eq(self.payload), queue.i.valid.eq(self.push)]

        give = Signal()
        m.d.comb += give.eq(self.o.valid & self.o.ready)
        with m.If(self.take & ~give):
            m.d.sync += [
                self.level.eq(self.level + 1),
                self.room.eq(self.level != self.credits - 1),
            ]
        with m.Elif(give & ~self.take):
            m.d.sync += [self.level.eq(self.level - 1), self.room.eq(1)]
        # At the clock's edge: between edges the two sides of a wire may differ for a moment.
        m.d.sync += [Assert(~(self.push & ~queue.i.ready)), Assert(~(self.take & ~self.room))]
        return m
