"""Sends parts of requests through one native port and says where the answers belong."""

from __future__ import annotations

from amaranth.hdl import Assert, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.boards.ddr3.chip import Ddr3Chip
from ember_hw.boards.ddr3.native_port import PLACES, NativePortSignature, part_layout
from ember_hw.rtl.fifos import LUT_MEMORY_ENTRIES, StreamFifo


class BankPort(wiring.Component):
    """Queues the parts for some of the banks, and asks for their beats one by one.

    A beat a cycle at most, without a gap between parts. `LUT_MEMORY_ENTRIES` parts wait, or wait
    for their answers; a part is taken while there is room for it. Answers are never held up: their
    places were reserved before.

    Parameters
    ----------
    chip : Ddr3Chip

    Members
    -------
    part : stream, in
        See `part_layout`.
    port : NativePortSignature
    put, place : out
        The cycle after a beat came from the port, and where it belongs.
    written : out
        Strobe: a beat's data was taken.
    """

    def __init__(self, *, chip: Ddr3Chip):
        self.chip = chip
        super().__init__(
            {
                "part": In(stream.Signature(part_layout(chip))),
                "port": Out(NativePortSignature(address_bits=chip.beat_address_bits)),
                "put": Out(1),
                "place": Out(PLACES.bit_length()),
                "written": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        part, port = self.part.payload, self.port
        page_bits = self.chip.page_beat_bits
        m.submodules.commands = commands = StreamFifo(
            shape=part_layout(self.chip), depth_entries=LUT_MEMORY_ENTRIES
        )
        m.submodules.answers = answers = StreamFifo(
            shape=part_layout(self.chip), depth_entries=LUT_MEMORY_ENTRIES
        )
        m.d.comb += [
            self.part.ready.eq(commands.i.ready & (answers.i.ready | part.write)),
            commands.i.valid.eq(self.part.valid & self.part.ready),
            commands.i.payload.eq(part),
            answers.i.valid.eq(self.part.valid & self.part.ready & ~part.write),
            answers.i.payload.eq(part),
        ]

        left = Signal(page_bits)
        taken = Signal()
        m.d.comb += [
            taken.eq(port.cmd_valid & port.cmd_ready),
            commands.o.ready.eq(~port.cmd_valid | (taken & (left == 0))),
        ]
        with m.If(commands.o.ready):
            m.d.sync += [
                port.cmd_valid.eq(commands.o.valid),
                port.cmd_we.eq(commands.o.payload.write),
                port.cmd_addr.eq(commands.o.payload.beat),
                left.eq(commands.o.payload.length),
            ]
        with m.Elif(taken):
            m.d.sync += [
                port.cmd_addr[:page_bits].eq(port.cmd_addr[:page_bits] + 1),
                left.eq(left - 1),
            ]

        done = Signal(page_bits)  # beats of the oldest part that have come
        m.d.sync += self.put.eq(port.rdata_valid)
        m.d.comb += [
            self.written.eq(port.wdata_ready),
            self.place.eq(answers.o.payload.place + done),
            answers.o.ready.eq(self.put & (done == answers.o.payload.length)),
        ]
        with m.If(answers.o.ready):
            m.d.sync += done.eq(0)
        with m.Elif(self.put):
            m.d.sync += done.eq(done + 1)
        m.d.sync += Assert(~(self.put & ~answers.o.valid))
        return m
