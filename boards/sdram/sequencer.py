"""READ and WRITE, beat by beat, in the order of the requests."""

from __future__ import annotations

from amaranth.hdl import Array, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.boards.sdram.chip import BURST_WORDS, SdramChip, SdramClocks
from ember_hw.boards.sdram.countdown import clock_ahead, countdown
from ember_hw.boards.sdram.layouts import page_beat_bits, segment_layout


class Sequencer(wiring.Component):
    """Issues a beat's READ or WRITE as soon as its bank is ready and the data pins are free.

    Beats of one direction follow each other without a gap, across banks too. A READ waits for room
    for its beat, a WRITE for its data. Nothing overtakes: tags keep their order, and a read sees
    the writes before it. A clock decides, the next issues the command from a register; so a command
    may go in the first clock of a hold.

    Parameters
    ----------
    chip : SdramChip
    clocks : SdramClocks
    tag_bits : int

    Members
    -------
    segment : stream, in
        See `segment_layout`.
    ready, has_room, has_data : in
        The bank machines' `ready`, bank by bank; the beat of a READ has a place; the data of a
        WRITE is there. Each stays until the command that makes use of it.
    hold : in
        Issue nothing from the next clock on.
    read, write : out
        The command that is issued in this clock.
    ahead : out
        The next clock issues a command.
    bank, beat, tag, last : out
        Its bank; number of its beat within the row; tag; whether it is its request's last.
    done : out
        It is the last of its part.
    """

    def __init__(self, *, chip: SdramChip, clocks: SdramClocks, tag_bits: int):
        self.chip = chip
        self.clocks = clocks
        self.tag_bits = tag_bits
        super().__init__(
            {
                "segment": In(stream.Signature(segment_layout(chip, tag_bits))),
                "ready": In(chip.banks),
                "hold": In(1),
                "has_room": In(1),
                "has_data": In(1),
                "read": Out(1),
                "write": Out(1),
                "ahead": Out(1),
                "bank": Out(chip.bank_bits),
                "beat": Out(page_beat_bits(chip)),
                "tag": Out(tag_bits),
                "last": Out(1),
                "done": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        part = Signal(segment_layout(self.chip, self.tag_bits))
        some = Signal()
        issues = Signal()
        may_access = countdown(m, issues, clock_ahead(BURST_WORDS), "may_access")
        # The chip's last word leaves the pins a clock before ours may drive them.
        turn = self.clocks.cl + 1
        may_write = countdown(m, self.read, clock_ahead(BURST_WORDS + turn), "may_write")
        is_last = Signal()  # beat of the part
        is_free = Signal()
        will_read, will_write = Signal(), Signal()
        m.d.comb += [
            is_free.eq(some & ~self.hold & ~issues & may_access & Array(self.ready)[part.bank]),
            will_read.eq(is_free & ~part.write & self.has_room),
            will_write.eq(is_free & part.write & self.has_data & may_write),
            self.ahead.eq(will_read | will_write),
            issues.eq(self.read | self.write),
            self.bank.eq(part.bank),
            self.beat.eq(part.beat),
            self.tag.eq(part.tag),
            self.last.eq(part.last & is_last),
            self.done.eq(issues & is_last),
            self.segment.ready.eq(~some | self.done),
        ]
        m.d.sync += [self.read.eq(will_read), self.write.eq(will_write)]
        with m.If(self.segment.ready):
            m.d.sync += [
                part.eq(self.segment.payload),
                some.eq(self.segment.valid),
                is_last.eq(self.segment.payload.length == 0),
            ]
        with m.Elif(issues):
            m.d.sync += [
                part.beat.eq(part.beat + 1),
                part.length.eq(part.length - 1),
                is_last.eq(part.length == 1),
            ]
        return m
