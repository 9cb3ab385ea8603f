"""A bank opens what is wanted, keeps it open while it can, and holds every limit of its own."""

from __future__ import annotations

import pytest
from amaranth.sim import Simulator

from ember_hw.boards.sdram.bank_machine import BankMachine
from ember_hw.boards.sdram.chip import BURST_WORDS
from ember_hw.boards.sdram.tests.chips import CLOCK_MHZ, SMALL

pytestmark = pytest.mark.rtl

CLOCKS = SMALL.clocks(CLOCK_MHZ)


class _Bank:
    """A bank whose wishes are granted at once, and the cycles of what it does.

    It is read or written in the clock after it was ready, and closed two clocks or more after the
    last command.
    """

    def __init__(self, rows: list[int], *, access: str = "read", close_at: int = -1):
        self.dut = BankMachine(chip=SMALL, clocks=CLOCKS)
        self.rows = list(rows)
        self.access = access
        self.close_at = close_at
        self.events: list[tuple[int, str]] = []
        simulator = Simulator(self.dut)
        simulator.add_clock(1e-6)
        simulator.add_testbench(self._drive)
        simulator.run()

    async def _drive(self, ctx):
        dut = self.dut
        was_ready = is_quiet = False
        for cycle in range(200):
            ctx.set(dut.row.valid, bool(self.rows))
            ctx.set(dut.row.payload, self.rows[0] if self.rows else 0)
            wants_close = self.close_at >= 0 and cycle >= self.close_at
            closes = wants_close and is_quiet and ctx.get(dut.may_close)
            if closes:
                self.close_at = -1
            activates, precharges, accesses = (
                wish and not wants_close
                for wish in (ctx.get(dut.activate), ctx.get(dut.precharge), was_ready)
            )
            assert not activates or ctx.get(dut.wanted_row) == self.rows[0]
            ctx.set(dut.close, closes)
            ctx.set(dut.activate_grant, activates)
            ctx.set(dut.precharge_grant, precharges)
            for signal in (getattr(dut, self.access), dut.done):
                ctx.set(signal, accesses)
            happens = {
                "close": closes,
                f"activate {self.rows[0] if self.rows else '-'}": activates,
                "precharge": precharges,
                self.access: accesses,
            }
            self.events += [(cycle, name) for name, does in happens.items() if does]
            is_quiet = wants_close
            was_ready = ctx.get(dut.ready) and not accesses and not wants_close
            await ctx.tick()
            if accesses:
                self.rows.pop(0)

    @property
    def names(self) -> list[str]:
        return [name for _, name in self.events]

    def clocks(self, first: str, then: str) -> int:
        """Clocks from the first event of a name to the next of another."""
        begin = next(cycle for cycle, name in self.events if name == first)
        return next(cycle for cycle, name in self.events if name == then and cycle > begin) - begin


def test_row_is_open_trcd_after_activate():
    bank = _Bank([7])
    assert bank.names == ["activate 7", "read"]
    assert bank.clocks("activate 7", "read") == CLOCKS.trcd


def test_same_row_stays_open():
    assert _Bank([7, 7, 7]).names == ["activate 7", "read", "read", "read"]


@pytest.mark.parametrize(
    ("access", "least"), [("read", BURST_WORDS), ("write", BURST_WORDS - 1 + CLOCKS.twr)]
)
def test_other_row_waits_for_the_burst_and_trp(access, least):
    bank = _Bank([7, 8], access=access)
    assert bank.names == ["activate 7", access, "precharge", "activate 8", access]
    assert bank.clocks(access, "precharge") == least
    assert bank.clocks("precharge", "activate 8") == CLOCKS.trp


def test_refresh_closes_and_the_row_opens_again():
    bank = _Bank([7, 7, 9], close_at=8)
    assert bank.names == ["activate 7", "read", "read", "close", "activate 9", "read"]
    assert bank.clocks("close", "activate 9") >= CLOCKS.trp


def test_closing_waits_for_tras():
    bank = _Bank([7], close_at=2)
    assert bank.clocks("activate 7", "close") >= CLOCKS.tras
