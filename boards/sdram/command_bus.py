"""One command a clock: whose, and on which pins."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ember_hw.boards.sdram.chip import BURST_WORDS, SdramChip, SdramClocks
from ember_hw.boards.sdram.countdown import countdown
from ember_hw.boards.sdram.layouts import page_beat_bits
from ember_hw.boards.sdram.pins import ALL_BANKS_PIN, Command


class CommandBus(wiring.Component):
    """Chooses the next command and holds it in registers.

    Maintenance comes first, then READ or WRITE, then ACTIVATE, then PRECHARGE; among banks the
    lowest. No bank starves: one gets its next part, and so asks again, only as the parts before
    that one are done, and those wait for the others.

    Parameters
    ----------
    chip : SdramChip
    clocks : SdramClocks

    Members
    -------
    maintenance : in
        PRECHARGE of all banks, REFRESH or LOAD_MODE; NO_OPERATION where there is none.
    hold : in
        Nothing but maintenance from the next clock on.
    access_ahead : in
        The next clock has a command of the sequencer.
    read, write, access_bank, access_beat : in
        The sequencer's command; never together with maintenance.
    activate, precharge : in
        The banks' wishes.
    rows : in
        The rows that they want.
    activate_grant, precharge_grant : out
        What they get.
    command, bank, address : out
        The chip's pins, a clock later.
    """

    def __init__(self, *, chip: SdramChip, clocks: SdramClocks):
        self.chip = chip
        self.clocks = clocks
        super().__init__(
            {
                "maintenance": In(Command),
                "hold": In(1),
                "access_ahead": In(1),
                "read": In(1),
                "write": In(1),
                "access_bank": In(chip.bank_bits),
                "access_beat": In(page_beat_bits(chip)),
                "activate": In(chip.banks),
                "precharge": In(chip.banks),
                "rows": In(chip.row_bits).array(chip.banks),
                "activate_grant": Out(chip.banks),
                "precharge_grant": Out(chip.banks),
                "command": Out(Command),
                "bank": Out(chip.bank_bits),
                "address": Out(chip.row_bits),
            }
        )

    def elaborate(self, platform):
        m = Module()
        chip = self.chip
        may_activate = countdown(m, self.activate_grant.any(), self.clocks.trrd, "trrd")
        is_free = Signal()  # for a row's command
        m.d.sync += is_free.eq(~self.hold & ~self.access_ahead)
        m.d.sync += [self.command.eq(self.maintenance), self.address[ALL_BANKS_PIN].eq(1)]
        with m.If(self.maintenance == Command.LOAD_MODE):
            m.d.sync += [self.address.eq(self.mode), self.bank.eq(0)]
        # Columns count words; the all-banks pin would make a READ close its row.
        column = Cat(Const(0, (BURST_WORDS - 1).bit_length()), self.access_beat)
        with m.If(self.read | self.write):
            m.d.sync += [
                self.command.eq(Mux(self.write, Command.WRITE, Command.READ)),
                self.bank.eq(self.access_bank),
                self.address.eq(column),
            ]
        with m.Elif(is_free & may_activate & self.activate.any()):
            for number in reversed(range(chip.banks)):
                with m.If(self.activate[number]):
                    m.d.comb += self.activate_grant.eq(1 << number)
                    m.d.sync += [self.bank.eq(number), self.address.eq(self.rows[number])]
            m.d.sync += self.command.eq(Command.ACTIVATE)
        with m.Elif(is_free & self.precharge.any()):
            for number in reversed(range(chip.banks)):
                with m.If(self.precharge[number]):
                    m.d.comb += self.precharge_grant.eq(1 << number)
                    m.d.sync += self.bank.eq(number)
            m.d.sync += [self.command.eq(Command.PRECHARGE), self.address.eq(0)]
        return m

    @property
    def mode(self) -> int:
        """Content of the mode register: bursts of `BURST_WORDS`, in sequence, CAS latency."""
        return (BURST_WORDS - 1).bit_length() | self.clocks.cl << 4
