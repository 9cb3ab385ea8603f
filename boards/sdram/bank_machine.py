"""One bank of the chip: which row is open, and when its next command may come."""

from __future__ import annotations

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.boards.sdram.chip import BURST_WORDS, SdramChip, SdramClocks
from ember_hw.boards.sdram.countdown import clock_ahead, countdown


class BankMachine(wiring.Component):
    """Opens the row that the bank's next part lies in, as early as the bank's limits allow.

    It asks for ACTIVATE and PRECHARGE and goes on when it was granted them. A row stays open until
    another one is wanted, or all are closed for a refresh. Who may issue a command knows so from
    registers: the limits are reckoned a clock ahead.

    Parameters
    ----------
    chip : SdramChip
    clocks : SdramClocks

    Members
    -------
    row : stream, in
        Rows of the bank's parts, in their order; one is taken when its part is done.
    done : in
        The last READ or WRITE of a part is issued.
    read, write : in
        A READ or WRITE of this bank is issued.
    ready : out
        The wanted row is open and may be read or written from the next clock on.
    activate, precharge : out
        Asks for a command.
    wanted_row : out
        The row that `activate` is for.
    activate_grant, precharge_grant : in
        The command is issued; only where it was asked for.
    may_close : out
        PRECHARGE is allowed, or needless; not yet true of commands of the clock before.
    close : in
        All banks are closed; only while `may_close` is high, and two clocks or more after the last
        command.
    """

    def __init__(self, *, chip: SdramChip, clocks: SdramClocks):
        self.chip = chip
        self.clocks = clocks
        super().__init__(
            {
                "row": In(stream.Signature(chip.row_bits)),
                "done": In(1),
                "read": In(1),
                "write": In(1),
                "ready": Out(1),
                "activate": Out(1),
                "precharge": Out(1),
                "wanted_row": Out(chip.row_bits),
                "activate_grant": In(1),
                "precharge_grant": In(1),
                "may_close": Out(1),
                "close": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        clocks = self.clocks
        closed = self.precharge_grant | self.close

        def limit(start: Value, clocks: int, name: str) -> Value:
            return countdown(m, start, clock_ahead(clocks), name)

        may_access = limit(self.activate_grant, clocks.trcd, "trcd")
        is_open_long_enough = limit(self.activate_grant, clocks.tras, "tras")
        may_reopen = limit(self.activate_grant, clocks.trc, "trc")
        is_closed_long_enough = limit(closed, clocks.trp, "trp")
        has_read = limit(self.read, BURST_WORDS, "read")
        has_written = limit(self.write, BURST_WORDS - 1 + clocks.twr, "write")
        may_close = is_open_long_enough & has_read & has_written
        m.d.comb += self.row.ready.eq(self.done)
        m.d.sync += [
            self.may_close.eq(may_close),
            self.wanted_row.eq(self.row.payload),
            self.activate.eq(0),
            self.precharge.eq(0),
        ]

        open_row = Signal(self.chip.row_bits)
        is_same = Signal()
        with m.FSM(name="bank"):
            with m.State("WAIT_CLOSED"):
                with m.If(self.activate_grant):
                    m.d.sync += open_row.eq(self.wanted_row)
                    m.next = "SERVE"
                with m.Else():
                    m.d.sync += self.activate.eq(
                        self.row.valid & is_closed_long_enough & may_reopen
                    )
            with m.State("SERVE"):
                m.d.comb += self.ready.eq(may_access)
                with m.If(self.close):
                    m.next = "WAIT_CLOSED"
                with m.Elif(self.done):
                    m.next = "COMPARE"
            with m.State("COMPARE"):
                m.d.sync += is_same.eq(self.row.payload == open_row)
                with m.If(self.close):
                    m.next = "WAIT_CLOSED"
                with m.Elif(self.row.valid):
                    m.next = "DECIDE"
            with m.State("DECIDE"):
                with m.If(self.close):
                    m.next = "WAIT_CLOSED"
                with m.Elif(is_same):
                    m.next = "SERVE"
                with m.Else():
                    m.next = "CLOSE"
            with m.State("CLOSE"):
                with m.If(self.close | self.precharge_grant):
                    m.next = "WAIT_CLOSED"
                with m.Else():
                    m.d.sync += self.precharge.eq(may_close)
        return m
