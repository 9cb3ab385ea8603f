"""The controller of one SDR SDRAM: every block, wired."""

from __future__ import annotations

from amaranth.hdl import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.boards.sdram.bank_machine import BankMachine
from ember_hw.boards.sdram.chip import SdramChip
from ember_hw.boards.sdram.command_bus import CommandBus
from ember_hw.boards.sdram.data_path import ReadPath, WritePath
from ember_hw.boards.sdram.layouts import read_beat_layout, request_layout, written_beat_layout
from ember_hw.boards.sdram.maintenance import Maintenance
from ember_hw.boards.sdram.page_splitter import PageSplitter
from ember_hw.boards.sdram.pins import SdramPins
from ember_hw.boards.sdram.sequencer import Sequencer


class SdramController(wiring.Component):
    """Reads and writes beats of 16 bytes, in the order of the requests.

    A request is a burst of beats. Data moves in order, so nothing needs to be sorted; rows are
    opened out of order: while one bank moves data, the others close and open what the parts queued
    behind it need. Reads of open rows follow each other without a gap; up to 16 beats are under
    way or wait to be taken. A refresh goes when it falls due, after the beat that is on the pins.

    One clock domain, `sync`; it is the chip's clock, too.

    Parameters
    ----------
    chip : SdramChip
    clock_mhz : float
        Of `sync`.
    tag_bits : int
        Width of a request's tag, which its beats bear.
    pad_clocks : int
        Registers between `pins` and the chip, there and back: 2 with `SdramPads`.

    Members
    -------
    request : stream, in
        See `request_layout`. A beat's number is its byte address over 16; higher bits than the chip
        has are the caller's concern.
    write_data : stream, in
        See `written_beat_layout`: the beats of the writes, in order; it may come late.
    response : stream, out
        See `read_beat_layout`: the beats of the reads, in order. Backpressure holds READs back.
    initialised : out
        The chip takes commands. Requests before that wait.
    pins : SdramPins
    """

    def __init__(
        self, *, chip: SdramChip, clock_mhz: float, tag_bits: int = 1, pad_clocks: int = 2
    ):
        if tag_bits < 1:
            raise ValueError(f"tag_bits must be at least 1, not {tag_bits!r}")
        if pad_clocks < 0:
            raise ValueError(f"pad_clocks must be at least 0, not {pad_clocks!r}")
        self.chip = chip
        self.clocks = chip.clocks(clock_mhz)
        self.tag_bits = tag_bits
        self.pad_clocks = pad_clocks
        super().__init__(
            {
                "request": In(stream.Signature(request_layout(chip, tag_bits))),
                "write_data": In(stream.Signature(written_beat_layout())),
                "response": Out(stream.Signature(read_beat_layout(tag_bits))),
                "initialised": Out(1),
                "pins": Out(SdramPins(chip)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        chip, clocks, tag_bits = self.chip, self.clocks, self.tag_bits
        m.submodules.splitter = splitter = PageSplitter(chip=chip, tag_bits=tag_bits)
        m.submodules.sequencer = sequencer = Sequencer(chip=chip, clocks=clocks, tag_bits=tag_bits)
        m.submodules.maintenance = maintenance = Maintenance(clocks=clocks)
        m.submodules.bus = bus = CommandBus(chip=chip, clocks=clocks)
        m.submodules.reads = reads = ReadPath(
            clocks=clocks, tag_bits=tag_bits, pad_clocks=self.pad_clocks
        )
        m.submodules.writes = writes = WritePath()
        banks: list[BankMachine] = []
        for number in range(chip.banks):
            machine = BankMachine(chip=chip, clocks=clocks)
            m.submodules[f"bank{number}"] = machine
            banks.append(machine)

        wiring.connect(m, wiring.flipped(self.request), splitter.request)
        wiring.connect(m, splitter.segment, sequencer.segment)
        wiring.connect(m, wiring.flipped(self.write_data), writes.beat)
        wiring.connect(m, reads.beat, wiring.flipped(self.response))
        for number, machine in enumerate(banks):
            wiring.connect(m, splitter.rows[number], machine.row)
            is_chosen = sequencer.bank == number
            m.d.comb += [
                bus.rows[number].eq(machine.wanted_row),
                machine.activate_grant.eq(bus.activate_grant[number]),
                machine.precharge_grant.eq(bus.precharge_grant[number]),
                machine.close.eq(maintenance.close),
                machine.read.eq(sequencer.read & is_chosen),
                machine.write.eq(sequencer.write & is_chosen),
                machine.done.eq(sequencer.done & is_chosen),
            ]
        m.d.comb += [
            bus.activate.eq(Cat(machine.activate for machine in banks)),
            bus.precharge.eq(Cat(machine.precharge for machine in banks)),
            sequencer.ready.eq(Cat(machine.ready for machine in banks)),
            maintenance.may_close.eq(Cat(machine.may_close for machine in banks).all()),
            self.initialised.eq(maintenance.initialised),
            bus.maintenance.eq(maintenance.command),
            bus.hold.eq(maintenance.hold),
            bus.access_ahead.eq(sequencer.ahead),
            sequencer.hold.eq(maintenance.hold),
            sequencer.has_room.eq(reads.has_room),
            sequencer.has_data.eq(writes.beat.valid),
            bus.read.eq(sequencer.read),
            bus.write.eq(sequencer.write),
            bus.access_bank.eq(sequencer.bank),
            bus.access_beat.eq(sequencer.beat),
            reads.read.eq(sequencer.read),
            reads.tag.eq(sequencer.tag),
            reads.last.eq(sequencer.last),
            reads.data_in.eq(self.pins.data_in),
            writes.write.eq(sequencer.write),
            self.pins.command.eq(bus.command),
            self.pins.bank.eq(bus.bank),
            self.pins.address.eq(bus.address),
            self.pins.mask.eq(writes.mask),
            self.pins.data_out.eq(writes.data_out),
            self.pins.data_enable.eq(writes.data_enable),
        ]
        return m
