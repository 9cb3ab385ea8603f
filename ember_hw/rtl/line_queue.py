"""Beats of index lines that wait to become words, where the port is wider than a line store."""

from __future__ import annotations

from amaranth.hdl import Assert, Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ember_hw.rtl.wide_memory import WideMemory


class LineQueue(wiring.Component):
    """Takes a beat a cycle and gives a word a cycle, in order, without backpressure.

    A word leaves three cycles after its beat came, if none waits before it. If none waits at all a
    beat's first word leaves a cycle after it came, without the memory.

    Parameters
    ----------
    beat_bits, word_bits : int
        Widths in and out; a power of two of words is a beat.
    depth_beats : int
        Beats that wait at most, a power of two, 2 or more: the caller asks for no more.
    streams : int
        Streams that the beats belong to.

    Members
    -------
    beat_valid, beat, beat_stream : in
        A beat, and its stream.
    word_valid, word : out
        One bit for each stream: the word is this one's.
    """

    def __init__(self, *, beat_bits: int, word_bits: int, depth_beats: int, streams: int):
        if depth_beats < 2 or depth_beats & (depth_beats - 1):
            raise ValueError(f"depth_beats must be a power of two, 2 or more, not {depth_beats!r}")
        self.beat_bits = beat_bits
        self.word_bits = word_bits
        self.depth_beats = depth_beats
        self.streams = streams
        super().__init__(
            {
                "beat_valid": In(1),
                "beat": In(beat_bits),
                "beat_stream": In(range(max(2, streams))),
                "word_valid": Out(streams),
                "word": Out(word_bits),
            }
        )

    def elaborate(self, platform):
        m = Module()
        words = self.beat_bits // self.word_bits
        word_select_bits = (words - 1).bit_length()
        beat_select_bits = (self.depth_beats - 1).bit_length()

        # Each word carries its stream: the memory blocks have bits to spare.
        m.submodules.memory = memory = WideMemory(
            word_bits=self.word_bits + len(self.beat_stream),
            group_words=words,
            groups=self.depth_beats,
        )
        # Beats written, and words read; the top bits tell an empty queue from a full one.
        written = Signal(beat_select_bits + 1)
        read = Signal(beat_select_bits + 1 + word_select_bits)
        reads = Signal()
        come = Signal()  # the memory's output is a word
        passes = Signal()  # the beat's first word does not wait
        beat_read = read[word_select_bits:]
        m.d.comb += [
            reads.eq(beat_read != written),
            passes.eq(self.beat_valid & ~reads & ~come),
            memory.write.eq(self.beat_valid),
            memory.write_group.eq(written),
            memory.write_data.eq(
                Cat(
                    Cat(self.beat.word_select(i, self.word_bits), self.beat_stream)
                    for i in range(words)
                )
            ),
            memory.read.eq(1),
            memory.read_word.eq(read),
        ]
        with m.If(self.beat_valid):
            m.d.sync += written.eq(written + 1)
        with m.If(reads | passes):
            m.d.sync += read.eq(read + 1)

        word = Cat(self.beat[: self.word_bits], self.beat_stream)
        word_stream = Mux(passes, self.beat_stream, memory.read_data[self.word_bits :])
        m.d.sync += [come.eq(reads), self.word.eq(Mux(passes, word, memory.read_data))]
        for number in range(self.streams):
            m.d.sync += self.word_valid[number].eq((come | passes) & (word_stream == number))
        waiting = Signal(beat_select_bits + 1)
        m.d.comb += waiting.eq(written - beat_read)
        m.d.sync += Assert(~(self.beat_valid & (waiting == self.depth_beats)))
        return m
