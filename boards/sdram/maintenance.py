"""What a chip needs beside its accesses: initialisation after power-up, and refreshes."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ember_hw.boards.sdram.chip import SdramClocks
from ember_hw.boards.sdram.pins import Command

#: REFRESHes between power-up and the mode register.
POWER_UP_REFRESHES = 8


class Maintenance(wiring.Component):
    """Initialises the chip, then refreshes it whenever a refresh falls due.

    A clock decides, the next issues the command from a register.

    Parameters
    ----------
    clocks : SdramClocks

    Members
    -------
    hold : out
        No other command may be issued, but for its first clock, whose command was decided before:
        before initialisation and around a refresh.
    may_close : in
        All banks may be closed; a clock late.
    command : out
        PRECHARGE (of all banks), REFRESH, LOAD_MODE, or NO_OPERATION.
    close : out
        `command` is PRECHARGE.
    initialised : out
        High from the end of the initialisation.
    """

    def __init__(self, *, clocks: SdramClocks):
        self.clocks = clocks
        super().__init__(
            {
                "hold": Out(1, init=1),
                "may_close": In(1),
                "command": Out(Command),
                "close": Out(1),
                "initialised": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        clocks = self.clocks
        longest = max(clocks.power_up, clocks.trfc, clocks.trp, clocks.tmrd)
        waits = Signal(range(longest), init=clocks.power_up - 1)
        is_over = Signal()

        def wait(limit_clocks: int) -> None:
            """Let the next state issue its command `limit_clocks` after this one's."""
            m.d.sync += [
                waits.eq(max(0, limit_clocks - 2)),
                is_over.eq(limit_clocks < 2),
            ]

        with m.If(~is_over):
            m.d.sync += [waits.eq(waits - 1), is_over.eq(waits == 0)]

        # A refresh is due each interval, whenever the one before it went.
        interval = Signal(range(clocks.trefi))
        due = Signal()
        with m.If(self.initialised):
            with m.If(interval == clocks.trefi - 1):
                m.d.sync += [interval.eq(0), due.eq(1)]
            with m.Else():
                m.d.sync += interval.eq(interval + 1)

        refreshes_left = Signal(range(POWER_UP_REFRESHES))
        m.d.sync += [self.command.eq(Command.NO_OPERATION), self.close.eq(0)]
        with m.FSM(name="maintenance"):
            with m.State("POWER_UP"):
                with m.If(is_over):
                    m.d.sync += [self.command.eq(Command.PRECHARGE), self.close.eq(1)]
                    wait(clocks.trp)
                    m.d.sync += refreshes_left.eq(POWER_UP_REFRESHES - 1)
                    m.next = "REFRESH"
            with m.State("REFRESH"):
                with m.If(is_over):
                    m.d.sync += self.command.eq(Command.REFRESH)
                    wait(clocks.trfc)
                    with m.If(self.initialised):
                        m.next = "RECOVER"
                    with m.Elif(refreshes_left == 0):
                        m.next = "LOAD_MODE"
                    with m.Else():
                        m.d.sync += refreshes_left.eq(refreshes_left - 1)
            with m.State("LOAD_MODE"):
                with m.If(is_over):
                    m.d.sync += self.command.eq(Command.LOAD_MODE)
                    wait(clocks.tmrd)
                    m.d.sync += self.initialised.eq(1)
                    m.next = "RECOVER"
            with m.State("RECOVER"):
                with m.If(is_over):
                    m.d.sync += self.hold.eq(0)
                    m.next = "RUN"
            with m.State("RUN"):
                with m.If(due):
                    m.d.sync += [due.eq(0), self.hold.eq(1)]
                    m.next = "LAST_COMMAND"
            with m.State("LAST_COMMAND"):
                m.next = "SETTLE"
            with m.State("SETTLE"):
                m.next = "CLOSE"
            with m.State("CLOSE"):
                # The command of the clock in which `hold` rose shows in `may_close` by now.
                with m.If(self.may_close):
                    m.d.sync += [self.command.eq(Command.PRECHARGE), self.close.eq(1)]
                    wait(clocks.trp)
                    m.next = "REFRESH"
        return m
