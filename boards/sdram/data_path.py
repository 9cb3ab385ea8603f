"""Words on the data pins from and to beats."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.boards.sdram.chip import BURST_WORDS, SdramClocks
from ember_hw.boards.sdram.layouts import BEAT_BITS, read_beat_layout, written_beat_layout
from ember_hw.boards.sdram.pins import WORD_BYTES
from ember_hw.rtl.fifos import LUT_MEMORY_ENTRIES, ReservedFifo, StreamFifo

_WORD_BITS = 8 * WORD_BYTES

#: READs whose data is on its way, at most.
_READS_UNDER_WAY = 4


class ReadPath(wiring.Component):
    """Gathers the words of each READ into a beat.

    Parameters
    ----------
    clocks : SdramClocks
    tag_bits : int
    pad_clocks : int
        Registers between the pins of the controller and those of the chip, there and back.

    Members
    -------
    read, tag, last : in
        A READ goes into the command register; only while `has_room` is high.
    has_room : out
        Its beat has a place, whether `beat` is taken or not.
    data_in : in
        The data pins.
    beat : stream, out
        See `read_beat_layout`.
    """

    def __init__(self, *, clocks: SdramClocks, tag_bits: int, pad_clocks: int):
        self.clocks = clocks
        self.tag_bits = tag_bits
        self.pad_clocks = pad_clocks
        super().__init__(
            {
                "read": In(1),
                "tag": In(tag_bits),
                "last": In(1),
                "has_room": Out(1),
                "data_in": In(_WORD_BITS),
                "beat": Out(stream.Signature(read_beat_layout(tag_bits))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.beats = beats = ReservedFifo(
            shape=read_beat_layout(self.tag_bits), credits=LUT_MEMORY_ENTRIES
        )
        m.submodules.asked = asked = StreamFifo(
            shape=self.tag_bits + 1, depth_entries=_READS_UNDER_WAY
        )
        words = Signal(BEAT_BITS)
        # From the command register to the clock in which all words are in `words`: the command's
        # register, those of the pads, the chip, and a clock a word.
        on_its_way = Signal(1 + self.pad_clocks + self.clocks.cl + BURST_WORDS)
        arrives = on_its_way[-1]
        m.d.sync += [
            words.eq(Cat(words[_WORD_BITS:], self.data_in)),
            on_its_way.eq(Cat(self.read, on_its_way[:-1])),
        ]
        m.d.comb += [
            self.has_room.eq(beats.room),
            beats.take.eq(self.read),
            beats.push.eq(arrives),
            beats.payload.data.eq(words),
            Cat(beats.payload.tag, beats.payload.last).eq(asked.o.payload),
            asked.i.payload.eq(Cat(self.tag, self.last)),
            asked.i.valid.eq(self.read),
            asked.o.ready.eq(arrives),
        ]
        wiring.connect(m, beats.o, wiring.flipped(self.beat))
        return m


class WritePath(wiring.Component):
    """Puts the words of a beat on the data pins, the first with the WRITE itself.

    Members
    -------
    beat : stream, in
        See `written_beat_layout`; taken in the clock after `write`.
    write : in
        A WRITE goes into the command register; only while `beat` is valid, and never in two clocks
        that follow each other.
    data_out, data_enable, mask : out
        The data pins, from the next clock on.
    """

    def __init__(self):
        super().__init__(
            {
                "beat": In(stream.Signature(written_beat_layout())),
                "write": In(1),
                "data_out": Out(_WORD_BITS),
                "data_enable": Out(1),
                "mask": Out(WORD_BYTES),
            }
        )

    def elaborate(self, platform):
        m = Module()
        words = Signal(BEAT_BITS, reset_less=True)
        kept = Signal(BEAT_BITS // 8, reset_less=True)  # 1: the byte stays as it is
        drives = Signal(BURST_WORDS)
        m.d.comb += [
            self.data_out.eq(words[:_WORD_BITS]),
            self.data_enable.eq(drives[0]),
            self.mask.eq(kept[:WORD_BYTES] & drives[0].replicate(WORD_BYTES)),
        ]
        m.d.sync += [drives.eq(drives >> 1), self.beat.ready.eq(self.write)]
        with m.If(self.write):
            m.d.sync += drives.eq((1 << BURST_WORDS) - 1)
        # Words are there before their WRITE, which so needs to reach no more than `drives`.
        with m.If(drives[1]):
            m.d.sync += [words.eq(words >> _WORD_BITS), kept.eq(kept >> WORD_BYTES)]
        with m.Else():
            m.d.sync += [
                words.eq(self.beat.payload.data),
                kept.eq(~self.beat.payload.bytes),
            ]
        return m
