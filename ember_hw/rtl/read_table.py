"""Remembers each read in flight: what its beats are for, and how many of them have come."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ember_hw.rtl.fifos import NO_BYPASS


class ReadTable(wiring.Component):
    """Notes one read a cycle, and looks up one beat a cycle, a cycle later.

    Reads of one tag return in the order in which they were asked for, each with `beat_last` on its
    last beat; beats of different tags mix. What stands here of a read is kept from `ask` until
    `reads_per_tag` further reads of its tag have been asked for: the caller asks for no more than
    that many at a time.

    Parameters
    ----------
    tags : int
        Values of a tag, 2 or more.
    reads_per_tag : int
        Reads of one tag in flight at most, a power of two.
    read_beats : int
        Beats of the longest read.
    note : shape-like
        What is noted of a read.

    Members
    -------
    ask, ask_tag, ask_note : in
        A read is asked for.
    beat, beat_tag, beat_last : in
        A beat came back.
    note, count : out
        Of the beat of the cycle before: the note of its read, and that read's beats before it.
    cleared : out
        Ready after a reset, `tags` cycles after it.
    """

    def __init__(self, *, tags: int, reads_per_tag: int, read_beats: int, note):
        if tags < 2:
            raise ValueError(f"tags must be at least 2, not {tags!r}")
        if reads_per_tag < 1 or reads_per_tag & (reads_per_tag - 1):
            raise ValueError(f"reads_per_tag must be a power of two, not {reads_per_tag!r}")
        if read_beats < 1:
            raise ValueError(f"read_beats must be at least 1, not {read_beats!r}")
        self.tags = tags
        self.reads_per_tag = reads_per_tag
        self.read_beats = read_beats
        self.note_shape = note
        super().__init__(
            {
                "ask": In(1),
                "ask_tag": In(range(tags)),
                "ask_note": In(note),
                "beat": In(1),
                "beat_tag": In(range(tags)),
                "beat_last": In(1),
                "note": Out(note),
                "count": Out(range(read_beats)),
                "cleared": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        tag_bits = (self.tags - 1).bit_length()
        read_bits = (self.reads_per_tag - 1).bit_length()
        count_bits = len(self.count)

        clearing = Signal(range(self.tags + 1))
        m.d.comb += self.cleared.eq(clearing == self.tags)
        with m.If(~self.cleared):
            m.d.sync += clearing.eq(clearing + 1)

        def state(name: str, width: int, tag, moves, after):
            """Keep a number for each tag: return it, and write what `after` makes of it."""
            if width == 0:
                return Const(0, 0)
            m.submodules[name] = memory = Memory(shape=width, depth=self.tags, init=[])
            write, read = memory.write_port(), memory.read_port(domain="comb")
            m.d.comb += [
                read.addr.eq(tag),
                write.addr.eq(Mux(self.cleared, tag, clearing)),
                write.data.eq(Mux(self.cleared, after(read.data), 0)),
                write.en.eq(moves | ~self.cleared),
            ]
            return read.data

        # Reads asked for of each tag; reads that have come, and beats of the one that comes.
        asked = state("asked", read_bits, self.ask_tag, self.ask, lambda reads: reads + 1)
        come = state(
            "come",
            read_bits + count_bits,
            self.beat_tag,
            self.beat,
            lambda now: Mux(
                self.beat_last,
                (now[count_bits:] + 1) << count_bits,
                Cat((now[:count_bits] + 1)[:count_bits], now[count_bits:]),
            ),
        )
        m.submodules.notes = notes = Memory(
            shape=self.note_shape,
            depth=1 << (tag_bits + read_bits),
            init=[],
            attrs=NO_BYPASS,
        )
        write, read = notes.write_port(), notes.read_port()
        m.d.comb += [
            write.addr.eq(Cat(self.ask_tag, asked)),
            write.data.eq(self.ask_note),
            write.en.eq(self.ask),
            read.addr.eq(Cat(self.beat_tag, come[count_bits:])),
            read.en.eq(1),
            self.note.eq(read.data),
        ]
        m.d.sync += self.count.eq(come[:count_bits])
        return m
