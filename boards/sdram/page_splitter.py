"""Requests cut where a row of the chip ends."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.boards.sdram.chip import SdramChip
from ember_hw.boards.sdram.layouts import (
    LENGTH_BITS,
    page_beat_bits,
    request_layout,
    segment_layout,
)
from ember_hw.rtl.fifos import LUT_MEMORY_ENTRIES, StreamFifo

#: Parts whose rows a bank knows beforehand. More would be of use only if all lay in one bank.
ROWS_AHEAD = 4


class PageSplitter(wiring.Component):
    """Queues the parts of each request, in order, and their rows, bank by bank.

    A part takes two clocks, and a request one more. A part enters its two queues at one time.

    Parameters
    ----------
    chip : SdramChip
    tag_bits : int

    Members
    -------
    request : stream, in
        See `request_layout`.
    segment : stream, out
        See `segment_layout`.
    rows : streams, out
        One a bank: the row that the next part of that bank lies in.
    """

    def __init__(self, *, chip: SdramChip, tag_bits: int):
        self.chip = chip
        self.tag_bits = tag_bits
        super().__init__(
            {
                "request": In(stream.Signature(request_layout(chip, tag_bits))),
                "segment": Out(stream.Signature(segment_layout(chip, tag_bits))),
                "rows": Out(stream.Signature(chip.row_bits)).array(chip.banks),
            }
        )

    def elaborate(self, platform):
        m = Module()
        chip = self.chip
        page_bits = page_beat_bits(chip)
        held = Signal(request_layout(chip, self.tag_bits))  # what is left of the request
        some = Signal()

        first = held.beat[:page_bits]
        bank = held.beat[page_bits : page_bits + chip.bank_bits]
        row = held.beat[page_bits + chip.bank_bits :]
        m.submodules.segments = segments = StreamFifo(
            shape=segment_layout(chip, self.tag_bits), depth_entries=LUT_MEMORY_ENTRIES
        )
        wiring.connect(m, segments.o, wiring.flipped(self.segment))
        shown = Signal()
        moves = Signal()
        has_room = Signal()
        for number, port in enumerate(self.rows):
            m.submodules[f"rows{number}"] = rows = StreamFifo(
                shape=chip.row_bits, depth_entries=ROWS_AHEAD
            )
            wiring.connect(m, rows.o, wiring.flipped(port))
            m.d.comb += [rows.i.payload.eq(row), rows.i.valid.eq(moves & (bank == number))]
            with m.If(bank == number):
                m.d.comb += has_room.eq(rows.i.ready)

        behind = Signal(page_bits)  # beats of the row that follow the first
        fits = Signal()  # the rest lies in this row
        part = segments.i.payload
        m.d.comb += [
            behind.eq(~first),
            moves.eq(shown & has_room & segments.i.ready),
            segments.i.valid.eq(moves),
            part.bank.eq(bank),
            part.beat.eq(first),
            part.length.eq(Mux(fits, held.length, behind)),
            part.write.eq(held.write),
            part.tag.eq(held.tag),
            part.last.eq(fits),
        ]
        # One clock reckons whether the rest fits into the row, the next hands the part on.
        m.d.sync += fits.eq(held.length <= behind)
        m.d.comb += self.request.ready.eq(~some)
        with m.If(~some):
            m.d.sync += [held.eq(self.request.payload), some.eq(self.request.valid)]
        with m.Elif(~shown):
            m.d.sync += shown.eq(1)
        with m.Elif(moves):
            m.d.sync += [
                shown.eq(0),
                some.eq(~fits),
                held.beat.eq(Cat(Const(0, page_bits), held.beat[page_bits:] + 1)),
                held.length.eq((held.length - behind - 1)[:LENGTH_BITS]),
            ]
        return m
