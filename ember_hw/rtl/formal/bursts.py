"""What the burst splitter promises: legal bursts that are the row's bytes, each once, in order."""

from __future__ import annotations

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Assume, Cover, Module, Signal

from ember_hw.rtl.burst_splitter import BOUNDARY_BYTES, BurstSplitter
from ember_hw.rtl.formal.bench import Bench


class _Row:
    """A row, whichever: followed from its coming to the leaving of its last burst."""

    def __init__(self, m: Module, splitter: BurstSplitter, *, comes, ends, leaves):
        came, burst = splitter.descriptor.payload, splitter.burst.payload
        bus_bytes = splitter.config.bus_bytes
        self.inside = Signal(2)
        self.active = Signal()
        self.behind = Signal()  # the burst at the output is of the row before
        self.at = Signal(len(came.address) + 1)
        self.rest = Signal(len(came.length))  # bytes whose bursts have not left
        self.hint = Signal.like(came.hint)
        self.entry = Signal.like(came.entry)
        self.covers = Signal(len(came.length) + 1)
        m.d.comb += self.covers.eq((burst.length + 1) * bus_bytes)
        m.d.sync += self.inside.eq(self.inside + comes - ends)
        with m.If(self.active & leaves & ~self.behind):
            m.d.sync += [
                self.at.eq(self.at + self.covers),
                self.rest.eq(self.rest - self.covers),
                self.active.eq(~burst.row_last),
            ]
        with m.If(self.active & ends):
            m.d.sync += self.behind.eq(0)
        with m.If(~self.active & comes & AnySeq(1)):
            m.d.sync += [
                self.active.eq(1),
                self.behind.eq(self.inside - ends != 0),
                self.at.eq(came.address),
                self.rest.eq(came.length),
                self.hint.eq(came.hint),
                self.entry.eq(came.entry),
            ]


def burst_splitter(splitter: BurstSplitter) -> Bench:
    """Return the bench of a `BurstSplitter`.

    Rows begin on a multiple of the bus width, have a byte or more, and end within the address
    space. Then each burst has 1 to `config.max_burst_beats` beats and crosses no multiple of 4096
    bytes and none of `config.port_interleave_bytes`; each row's bursts follow one another from its
    first byte on, the last one ends it, nothing is covered twice; `last_bytes`, `hint` and `entry`
    are the row's; a waiting burst doesn't change. Induction over one cycle proves it.
    """
    bench = Bench(splitter)
    m, config = bench.m, splitter.config
    came, burst = splitter.descriptor.payload, splitter.burst.payload
    bus_bytes = config.bus_bytes
    beat_shift = (bus_bytes - 1).bit_length()
    top = 1 << config.address_width_bits
    m.d.comb += [
        Assume(came.address[:beat_shift] == 0),
        Assume(came.length != 0),
        Assume(came.address + came.length <= top),
    ]
    bench.offer(splitter.descriptor)
    bench.stays(splitter.burst)

    leaves = splitter.burst.valid & splitter.burst.ready
    ends = leaves & burst.row_last
    comes = splitter.descriptor.valid & splitter.descriptor.ready
    row = _Row(m, splitter, comes=comes, ends=ends, leaves=leaves)
    last = Signal(config.address_width_bits + 1)  # the burst's last byte
    crossed = Signal.like(last)
    m.d.comb += [last.eq(burst.address + row.covers - 1), crossed.eq(burst.address ^ last)]
    with m.If(splitter.burst.valid & row.active & ~row.behind):
        m.d.comb += [
            Assert(burst.address == row.at),
            Assert(burst.row_last == (row.rest <= row.covers)),
            Assert(burst.hint == row.hint),
            Assert(burst.entry == row.entry),
            Assert(burst.length < config.max_burst_beats),
            Assert(crossed[(BOUNDARY_BYTES - 1).bit_length() :] == 0),
            Assert((crossed >> (config.port_interleave_bytes - 1).bit_length()) == 0),
        ]
        with m.If(burst.row_last):
            m.d.comb += Assert(burst.last_bytes == row.rest - burst.length * bus_bytes)

    # What is left of the row, where the splitter keeps it.
    inside = bench.block
    loaded, beat, left = (inside.signal(name) for name in ("loaded", "beat", "left"))
    last_bytes = inside.signal("last_bytes")
    begun = Signal()
    at, rest = Signal.like(row.at), Signal.like(row.rest)
    m.d.comb += [
        begun.eq(splitter.burst.valid & ~row.behind),
        at.eq(row.at + begun * row.covers),
        rest.eq(row.rest - begun * row.covers),
        Assert(row.inside == loaded + (splitter.burst.valid & burst.row_last)),
        Assert(~splitter.burst.valid | burst.row_last | loaded),
    ]
    with m.If(row.active):
        m.d.comb += [
            Assert(row.inside > row.behind),
            Assert(~row.behind | (splitter.burst.valid & burst.row_last)),
            Assert(row.rest != 0),
            Assert(row.at + row.rest <= top),
            Assert(row.at[:beat_shift] == 0),
        ]
        with m.If(row.behind | ~splitter.burst.valid | ~burst.row_last):
            m.d.comb += [
                Assert(loaded),
                Assert(beat << beat_shift == at),
                Assert(left == (rest - 1)[: len(rest)] >> beat_shift),
                Assert(last_bytes == (rest - 1)[:beat_shift] + 1),
                Assert(inside.signal("hint") == row.hint),
                Assert(inside.signal("entry") == row.entry),
            ]
    number = Signal(3)
    m.d.sync += number.eq(number + leaves)
    m.d.comb += [
        Cover(ends & row.active & ~row.behind & (number == 3)),
        Cover(ends & (burst.length != 0) & (burst.last_bytes != bus_bytes))
        if config.max_burst_beats > 1 and config.port_interleave_bytes > bus_bytes
        else Cover(ends & (burst.last_bytes != bus_bytes)),
    ]
    return bench
