"""Gathers the beats of results into bursts that lie in a region of memory."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.config import AcceleratorConfig
from ember_hw.registers import NO_UNIT, FaultCode
from ember_hw.rtl.execute.reduce_layouts import region_layout
from ember_hw.rtl.faults import FaultSignature
from ember_hw.rtl.fifos import LUT_MEMORY_ENTRIES, StreamFifo
from ember_hw.rtl.layouts import row_beat_layout
from ember_hw.rtl.write_port import write_beats, write_burst_layout


class ResultBursts(wiring.Component):
    """Gives beats their addresses, one behind the other from the region's base on.

    A burst is closed where the next beat lies behind a multiple of its greatest length, so none
    crosses 4 KB, and where it is asked for: `flush`. Only then it is shown, with all of its beats
    behind it. A burst may hold several results, and a result may lie in several.

    One beat a cycle; a flush takes one cycle. A burst is at the output in the cycle after it was
    closed, its beats three cycles after they came.

    Error: a beat with bytes beyond the region is a fault with its address, in each cycle until a
    reset, and not taken.

    Members
    -------
    region : in
        Record ``result``; constant while results come.
    restart : in
        Strobe: the next beat lies at the region's base. No burst is open then.
    beat : stream, in
    flush : in
        Close the burst that is open, if one is; high until `flushed`.
    flushed : out
        It is closed in this cycle, or none is open.
    burst, burst_beat : streams, out
    closes : out
        Strobe: a burst is closed.
    fault : out
        A beat beyond the region.
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        beat = row_beat_layout(config)
        super().__init__(
            {
                "region": In(region_layout(config)),
                "restart": In(1),
                "beat": In(stream.Signature(beat)),
                "flush": In(1),
                "flushed": Out(1),
                "burst": Out(stream.Signature(write_burst_layout(config))),
                "burst_beat": Out(stream.Signature(beat)),
                "closes": Out(1),
                "fault": Out(FaultSignature(config)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        longest = write_beats(config)
        beat_bits = (config.bus_bytes - 1).bit_length()
        burst_bits = (longest - 1).bit_length()
        # A full queue of beats has a burst that is closed: it moves on.
        m.submodules.beats = beats = StreamFifo(
            shape=row_beat_layout(config), depth_entries=max(2, 2 * longest)
        )
        m.submodules.bursts = bursts = StreamFifo(
            shape=write_burst_layout(config), depth_entries=LUT_MEMORY_ENTRIES
        )
        wiring.connect(m, bursts.o, wiring.flipped(self.burst))
        wiring.connect(m, beats.o, wiring.flipped(self.burst_beat))

        # Where the next beat goes, how many whole beats of the region are left there, and whether
        # the part of a beat behind them is.
        number = Signal(config.address_width_bits - beat_bits)
        left = Signal.like(number)
        some_left = Signal()
        tail_left = Signal()
        tail_bytes = self.region.region_bytes[:beat_bits]
        fits = Signal()
        takes = Signal()
        m.d.comb += [
            fits.eq(some_left | (tail_left & (self.beat.payload.bytes <= tail_bytes))),
            self.beat.ready.eq(beats.i.ready & bursts.i.ready & ~self.flush & fits),
            takes.eq(self.beat.valid & self.beat.ready),
            beats.i.valid.eq(takes),
            beats.i.payload.eq(self.beat.payload),
        ]
        with m.If(takes):
            m.d.sync += [
                number.eq(number + 1),
                left.eq(left - 1),
                some_left.eq(some_left & left[1:].any()),
                tail_left.eq(some_left),
            ]
        with m.If(self.restart):
            m.d.sync += [
                number.eq(self.region.base[beat_bits:]),
                left.eq(self.region.region_bytes[beat_bits:]),
                some_left.eq(self.region.region_bytes[beat_bits:].any()),
                tail_left.eq(1),
            ]
        m.d.sync += [
            self.fault.valid.eq(self.beat.valid & ~fits),
            self.fault.payload.code.eq(FaultCode.RESULT_OUT_OF_BOUNDS),
            self.fault.payload.unit.eq(NO_UNIT),
            self.fault.payload.address.eq(number << beat_bits),
        ]

        # The burst that is open lies between two multiples of the longest, as the next beat does.
        count = Signal(range(longest + 1))
        start = Signal(burst_bits)
        begins = Signal()
        m.d.comb += [
            begins.eq(count == 0),
            self.flushed.eq(self.flush & (begins | bursts.i.ready)),
            self.closes.eq(
                Mux(self.flush, ~begins & bursts.i.ready, takes & number[:burst_bits].all())
                if longest > 1
                else takes
            ),
            bursts.i.valid.eq(self.closes),
            bursts.i.payload.length.eq(Mux(self.flush, count - 1, count)),
            bursts.i.payload.address.eq(
                Cat(
                    Const(0, beat_bits),
                    Mux(begins, number[:burst_bits], start),
                    number[burst_bits:],
                )
            ),
        ]
        with m.If(takes & begins):
            m.d.sync += start.eq(number[:burst_bits])
        with m.If(self.closes):
            m.d.sync += count.eq(0)
        with m.Elif(takes):
            m.d.sync += count.eq(count + 1)
        return m
