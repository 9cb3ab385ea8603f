"""What the queues promise: every entry leaves once, in order, unchanged, and room is honest."""

from __future__ import annotations

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Assume, Const, Cover, Module, Signal, Value

from ember_hw.rtl.fifos import LUT_MEMORY_ENTRIES, ReservedFifo, StreamFifo
from ember_hw.rtl.formal.bench import Bench, Opened


class Followed:
    """One entry of a queue, whichever: followed from its coming to its leaving.

    Parameters
    ----------
    m : Module
    comes, entry : Value
        An entry goes in.
    leaves, front_valid, front : Value
        An entry goes out; what stands there, before it goes.
    entries : int
        Inside at most.
    picks : Value, optional
        Whether the entry that comes is the one to follow. Any, without it.

    Attributes
    ----------
    inside : Signal
        Entries that came and haven't left.
    active, ahead, value : Signal
        The entry is inside; how many leave before it; what it is.
    """

    def __init__(
        self, m: Module, *, comes, entry, leaves, front_valid, front, entries: int, picks=None
    ):
        self.inside = Signal(range(entries + 2))
        self.active = Signal()
        self.ahead = Signal(range(entries + 1))
        self.value = Signal(len(entry))
        m.d.sync += self.inside.eq(self.inside + comes - leaves)
        with m.If(self.active & leaves):
            m.d.sync += [self.ahead.eq(self.ahead - 1), self.active.eq(self.ahead != 0)]
        with m.Elif(~self.active & comes & (AnySeq(1) if picks is None else picks)):
            m.d.sync += [
                self.active.eq(1),
                self.ahead.eq(self.inside - leaves),
                self.value.eq(entry),
            ]
        with m.If(self.active & (self.ahead == 0) & front_valid):
            m.d.comb += Assert(front == self.value)
        m.d.comb += [
            Assert(~leaves | (self.inside != 0)),
            Assert(self.inside <= entries),
            Assert(~self.active | (self.ahead < self.inside)),
        ]


def stream_fifo(fifo: StreamFifo) -> Bench:
    """Return the bench of a `StreamFifo`.

    Each entry leaves once, in order, unchanged; `level` is what is inside; a waiting payload
    doesn't change; an entry is at the output the cycle after it came if none is before it, three
    cycles with a long queue; no word is read in the cycle that writes it. Induction over two cycles
    proves it.
    """
    bench = Bench(fifo)
    m = bench.m
    bench.offer(fifo.i)
    comes, leaves = fifo.i.valid & fifo.i.ready, fifo.o.valid & fifo.o.ready
    front = Value.cast(fifo.o.payload)
    followed = Followed(
        m,
        comes=comes,
        entry=Value.cast(fifo.i.payload),
        leaves=leaves,
        front_valid=fifo.o.valid,
        front=front,
        entries=fifo.depth_entries + 2,
    )
    bench.stays(fifo.o)
    m.d.comb += Assert(fifo.level == followed.inside)

    say_where(m, bench.block, depth=fifo.depth_entries, front_valid=fifo.o.valid, followed=followed)
    if fifo.depth_entries <= LUT_MEMORY_ENTRIES:
        m.d.comb += Assert(fifo.o.valid == (followed.inside != 0))
    else:
        idle = Signal(2)
        with m.If((followed.inside != 0) & ~fifo.o.valid):
            m.d.sync += idle.eq(idle + 1)
            m.d.comb += Assert(idle < 2)
        with m.Else():
            m.d.sync += idle.eq(0)
        m.d.comb += Assert((idle != 1) | bench.block.signal("read_valid") | fifo.o.valid)

    left = Signal()
    m.d.sync += left.eq(left | leaves)
    m.d.comb += [Cover(fifo.i.valid & ~fifo.i.ready), Cover(left & (fifo.level == 0))]
    return bench


def say_where(m: Module, block: Opened, *, depth: int, front_valid, followed: Followed) -> None:
    """Assert where the entries of a `StreamFifo` are: induction starts from any state."""
    memory = block.inner("memory")
    stored, pop = block.signal("stored"), block.signal("pop")
    read_pointer, write_pointer = block.signal("read_pointer"), block.signal("write__addr")
    # The registers behind the memory of a long queue.
    out_valid, read_valid = Const(0), Const(0)
    if is_long := depth > LUT_MEMORY_ENTRIES:
        out_valid, read_valid = front_valid, block.signal("read_valid")
    behind = Signal.like(read_pointer)  # place of the followed entry, if it is in the memory
    m.d.comb += [
        behind.eq(read_pointer + followed.ahead - out_valid - read_valid),
        Assert(stored + out_valid + read_valid == followed.inside),
        Assert(stored <= depth),
        Assert(block.signal("some") == (stored != 0)),
        Assert(block.signal("room") == (stored != depth)),
        Assert((write_pointer - read_pointer - stored)[: len(read_pointer)] == 0),
        Assert(~(pop & block.signal("push") & (read_pointer == write_pointer))),
    ]
    word = memory.look(behind)
    with m.If(followed.active):
        if is_long:
            with m.If(out_valid & (followed.ahead == 0)):
                m.d.comb += Assert(block.signal("out") == followed.value)
            with m.Elif(read_valid & (followed.ahead == out_valid)):
                m.d.comb += Assert(memory.read() == followed.value)
            with m.Else():
                m.d.comb += Assert(word == followed.value)
        else:
            m.d.comb += Assert(word == followed.value)


def reserved_fifo(fifo: ReservedFifo) -> Bench:
    """Return the bench of a `ReservedFifo`.

    If places are taken while `room` and filled after they are taken, the queue has a place for
    every entry, `room` says whether one is free, `level` is what is taken and hasn't left, and
    every entry leaves once, in order, unchanged. Induction over two cycles proves it.
    """
    bench = Bench(fifo)
    m = bench.m
    leaves = fifo.o.valid & fifo.o.ready
    awaited = Signal(range(fifo.credits + 1))  # taken, and not filled yet
    m.d.sync += awaited.eq(awaited + fifo.take - fifo.push)
    m.d.comb += [
        Assume(~fifo.take | fifo.room),
        Assume(~fifo.push | (awaited != 0)),
    ]
    followed = Followed(
        m,
        comes=fifo.push,
        entry=Value.cast(fifo.payload),
        leaves=leaves,
        front_valid=fifo.o.valid,
        front=Value.cast(fifo.o.payload),
        entries=fifo.credits,
    )
    bench.stays(fifo.o)
    m.d.comb += [
        Assert(fifo.level == awaited + followed.inside),
        Assert(fifo.level <= fifo.credits),
        Assert(fifo.room == (fifo.level != fifo.credits)),
    ]
    say_where(
        m,
        bench.block.inner("queue"),
        depth=max(2, fifo.credits),
        front_valid=fifo.o.valid,
        followed=followed,
    )
    m.d.comb += [Cover(fifo.level == fifo.credits), Cover(followed.inside == fifo.credits)]
    return bench
