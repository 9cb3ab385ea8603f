"""Puts beats that return in any order into the order in which they were asked for."""

from __future__ import annotations

from amaranth.hdl import Assert, Cat, Module, Mux, Shape, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ember_hw.rtl.credits import Credits, add, check
from ember_hw.rtl.fifos import NO_BYPASS


class ReorderBuffer(wiring.Component):
    """A queue whose places are filled in any order.

    `take` reserves places for a burst; its beats are put there one by one, whenever they come; they
    leave in the order of the places. One beat a cycle in and out; a beat leaves three to five
    cycles after it was put.

    The buffer holds a phase bit beside each beat: the beat is there if the bit is that of the
    current pass through the buffer, so nothing is cleared while reads are in flight. The reading
    side reads on ahead, and goes back where a beat was not there yet. After a reset all phase bits
    are written once; `cleared` rises when that is done, `places` cycles later.

    Parameters
    ----------
    shape : shape-like
        A beat.
    places : int
        Beats reserved or waiting at most, a power of two.
    burst_beats : int
        Beats of the longest burst, `places` at most.

    Members
    -------
    length : in; fits : out
        A burst's beats less one, and whether it may be taken now.
    take : in
        Reserve its places; only while `fits` and `cleared`.
    start : out
        The first of them: a position, whose top bit is the pass through the buffer.
    put, position, beat : in
        A beat, and where it belongs: a reserved position, each exactly once.
    o : stream, out
    used : out
        Places reserved or waiting.
    cleared : out
        Ready after a reset.
    """

    def __init__(self, *, shape, places: int, burst_beats: int):
        check(places, burst_beats)
        self.shape = shape
        self.places = places
        self.burst_beats = burst_beats
        position_shape = (places - 1).bit_length() + 1
        super().__init__(
            {
                "length": In(range(max(2, burst_beats))),
                "fits": Out(1),
                "take": In(1),
                "start": Out(position_shape),
                "put": In(1),
                "position": In(position_shape),
                "beat": In(shape),
                "o": Out(stream.Signature(shape)),
                "used": Out(range(places + 1)),
                "cleared": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        place_bits = len(self.start) - 1
        m.submodules.credits = credits = Credits(places=self.places, burst_beats=self.burst_beats)
        m.d.comb += [
            credits.length.eq(self.length),
            credits.take.eq(self.take),
            credits.give.eq(self.o.valid & self.o.ready),
            self.fits.eq(credits.fits),
            self.used.eq(credits.used),
        ]
        with m.If(self.take):
            m.d.sync += self.start.eq(add(self.start, self.length, 1))
        m.d.sync += [Assert(~(self.take & ~self.cleared)), Assert(~(self.put & ~self.cleared))]

        beat_bits = Shape.cast(self.shape).width
        m.submodules.beats = beats = Memory(
            shape=beat_bits + 1, depth=self.places, init=[], attrs=NO_BYPASS
        )
        write, read = beats.write_port(), beats.read_port()

        # The phase of the first pass is 1, so a cleared place is one of a pass before.
        clearing = Signal(range(self.places + 1))
        with m.If(~self.cleared):
            m.d.sync += clearing.eq(clearing + 1)
        m.d.comb += [
            self.cleared.eq(clearing[place_bits]),
            write.addr.eq(Mux(self.cleared, self.position[:place_bits], clearing)),
            write.data.eq(Cat(Value.cast(self.beat), ~self.position[place_bits] & self.cleared)),
            write.en.eq(self.put | ~self.cleared),
        ]

        # Reading: the position goes to the memory, the beat comes out of it, and is at the output.
        # `missed` says of the beat that would be at the output that it was not there: those behind
        # it are read for nothing, and the position goes back to it.
        position = Signal.like(self.start)
        moves = Signal()
        read_for_nothing = Signal(init=1)
        read_clean = Signal()
        read_phase = Signal()
        there = Signal()
        missed = Signal()
        m.d.comb += [
            moves.eq(~self.o.valid | self.o.ready),
            read.addr.eq(position),
            read.en.eq(moves),
            # A read of the place that is written in the same cycle gives anything.
            there.eq(read_clean & (read.data[beat_bits] == read_phase)),
        ]
        with m.If(moves):
            m.d.sync += [
                position.eq(position + Mux(missed, -2, self.cleared)),
                read_for_nothing.eq(missed | ~self.cleared),
                read_clean.eq(~(write.en & (write.addr == position[:place_bits]))),
                read_phase.eq(~position[place_bits]),
                self.o.valid.eq(~read_for_nothing & ~missed & there),
                missed.eq(~read_for_nothing & ~missed & ~there),
                Value.cast(self.o.payload).eq(read.data[:beat_bits]),
            ]
        return m
