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
    leave in the order of the places. One beat a cycle in and out; a beat that is awaited leaves
    three cycles after it was put, four if the reading side has just come to it.

    The buffer holds a phase bit beside each beat: the beat is there if the bit is that of the
    current pass through the buffer, so nothing is cleared while reads are in flight. The reading
    side reads on ahead; where a beat was not there yet it goes back and reads that place until it
    is. After a reset all phase bits are written once; `cleared` rises when that is done, `places`
    cycles later.

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
        # While beats are there the position runs ahead of what comes out, `was_read`. Where one is
        # not there it goes back to it and stays, and what the memory brings next is for nothing. A
        # beat that was written while it was read is there the next time: then it need not stay.
        position = Signal.like(self.start)
        was_read = Signal.like(self.start)
        ahead = Signal()
        read_for_nothing = Signal(init=1)
        read_clean = Signal()
        moves = Signal()
        found = Signal()
        missed = Signal()
        m.d.comb += [
            moves.eq(~self.o.valid | self.o.ready),
            read.addr.eq(position),
            read.en.eq(moves),
            # A read of the place that is written in the same cycle gives anything.
            found.eq(
                ~read_for_nothing & read_clean & (read.data[beat_bits] != was_read[place_bits])
            ),
            missed.eq(~read_for_nothing & ~found),
        ]
        with m.If(moves):
            m.d.sync += [
                was_read.eq(position),
                read_clean.eq(~(write.en & (write.addr == position[:place_bits]))),
                read_for_nothing.eq((found & ~ahead) | (missed & ahead) | ~self.cleared),
                self.o.valid.eq(found),
                Value.cast(self.o.payload).eq(read.data[:beat_bits]),
            ]
            with m.If(missed & ahead):
                m.d.sync += [ahead.eq(~read_clean), position.eq(was_read)]
            with m.Elif(found | ahead | (missed & ~read_clean)):
                m.d.sync += [ahead.eq(1), position.eq(position + 1)]
        return m
