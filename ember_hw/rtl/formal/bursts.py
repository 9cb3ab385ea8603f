"""What the burst splitter promises: legal bursts that are the row's bytes, each once, in order."""

from __future__ import annotations

from amaranth.hdl import Assert, Assume, Cover, Module, Signal

from ember_hw.rtl.burst_splitter import BOUNDARY_BYTES, BurstSplitter
from ember_hw.rtl.formal.bench import Bench


class _Burst:
    """What the burst at the output has to be, from what stood at the input when it was cut."""

    def __init__(self, m: Module, splitter: BurstSplitter):
        came, burst = splitter.descriptor.payload, splitter.burst.payload
        self.at = Signal(len(came.address) + 1)
        self.rest = Signal(len(came.last_byte) + 1)  # bytes of the row from here on
        self.hint = Signal.like(came.hint)
        self.entry = Signal.like(came.entry)
        self.covers = Signal(len(came.last_byte) + 2)
        self.is_cut = Signal()
        self.ends = Signal()  # the row has no further bytes
        self.next_at = Signal.like(self.at)
        self.next_rest = Signal.like(self.rest)
        m.d.comb += [
            self.covers.eq((burst.length + 1) * splitter.config.bus_bytes),
            self.is_cut.eq(
                splitter.descriptor.valid & (~splitter.burst.valid | splitter.burst.ready)
            ),
            self.ends.eq(self.rest <= self.covers),
            self.next_at.eq(self.at + self.covers),
            self.next_rest.eq(self.rest - self.covers),
        ]
        with m.If(self.is_cut):
            m.d.sync += [self.hint.eq(came.hint), self.entry.eq(came.entry)]
            with m.If(splitter.burst.valid & ~self.ends):
                m.d.sync += [self.at.eq(self.next_at), self.rest.eq(self.next_rest)]
            with m.Else():
                m.d.sync += [self.at.eq(came.address), self.rest.eq(came.last_byte + 1)]


def burst_splitter(splitter: BurstSplitter) -> Bench:
    """Return the bench of a `BurstSplitter`.

    Rows begin on a multiple of the bus width and end within the address space. Then each burst has
    1 to `config.max_burst_beats` beats and crosses no multiple of 4096 bytes and none of
    `config.port_interleave_bytes`; each row's bursts follow one another from its first byte on, the
    last one ends it, and with that one the row is taken; nothing is covered twice; `last_bytes`,
    `hint` and `entry` are the row's; a waiting burst doesn't change; where the output is free, a
    row that waits is at it in the next cycle. Induction over one cycle proves it.
    """
    bench = Bench(splitter)
    m, config = bench.m, splitter.config
    came, burst = splitter.descriptor.payload, splitter.burst.payload
    bus_bytes = config.bus_bytes
    beat_shift = (bus_bytes - 1).bit_length()
    top = 1 << config.address_width_bits
    m.d.comb += [
        Assume(came.address[:beat_shift] == 0),
        Assume(came.address + came.last_byte < top),
    ]
    bench.offer(splitter.descriptor)
    bench.stays(splitter.burst)

    row = _Burst(m, splitter)
    leaves = splitter.burst.valid & splitter.burst.ready
    last = Signal(config.address_width_bits + 1)  # the burst's last byte
    crossed = Signal.like(last)
    was_cut, kept, taken = Signal(), Signal(), Signal()
    m.d.sync += [
        was_cut.eq(row.is_cut),
        kept.eq(splitter.burst.valid & ~splitter.burst.ready),
        taken.eq(splitter.descriptor.valid & splitter.descriptor.ready),
    ]
    m.d.comb += [
        last.eq(burst.address + row.covers - 1),
        crossed.eq(burst.address ^ last),
        Assert(splitter.burst.valid == (was_cut | kept)),
        Assert(~was_cut | (taken == row.ends)),
        Assert(~taken | was_cut),
    ]
    with m.If(splitter.burst.valid):
        m.d.comb += [
            Assert(burst.address == row.at),
            Assert(row.rest != 0),
            Assert(burst.row_last == row.ends),
            Assert(burst.hint == row.hint),
            Assert(burst.entry == row.entry),
            Assert(burst.length < config.max_burst_beats),
            Assert(crossed[(BOUNDARY_BYTES - 1).bit_length() :] == 0),
            Assert((crossed >> (config.port_interleave_bytes - 1).bit_length()) == 0),
            Assert(row.at[:beat_shift] == 0),
            Assert(row.at + row.rest <= top),
        ]
        with m.If(burst.row_last):
            m.d.comb += Assert(burst.last_bytes == row.rest - burst.length * bus_bytes)
        with m.Else():
            # What is left of the row, where the splitter keeps it; the row itself still waits.
            next_beat, next_left = (bench.block.signal(n) for n in ("next_beat", "next_left"))
            m.d.comb += [
                Assert(next_beat << beat_shift == row.next_at),
                Assert(next_left == (row.next_rest - 1)[: len(row.rest)] >> beat_shift),
                Assert(splitter.descriptor.valid),
                Assert(came.address + came.last_byte + 1 == row.at + row.rest),
                Assert(came.hint == row.hint),
                Assert(came.entry == row.entry),
            ]
    number = Signal(3)
    m.d.sync += number.eq(number + leaves)
    m.d.comb += [
        Cover(leaves & burst.row_last & (number == 3)),
        Cover(leaves & burst.row_last & (burst.length != 0) & (burst.last_bytes != bus_bytes))
        if config.max_burst_beats > 1 and config.port_interleave_bytes > bus_bytes
        else Cover(leaves & burst.row_last & (burst.last_bytes != bus_bytes)),
    ]
    return bench
