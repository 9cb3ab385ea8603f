"""Initialisation step by step, then a refresh each interval, whatever holds it up."""

from __future__ import annotations

import itertools

import pytest
from amaranth.sim import Simulator

from ember_hw.boards.sdram.maintenance import POWER_UP_REFRESHES, Maintenance
from ember_hw.boards.sdram.pins import Command
from ember_hw.boards.sdram.tests.chips import CLOCK_MHZ, SMALL

pytestmark = pytest.mark.rtl

CLOCKS = SMALL.clocks(CLOCK_MHZ)
BEGIN = CLOCKS.power_up + 1


def _run(cycles: int, *, busy: range = range(0)) -> tuple[list[tuple[int, Command]], list[int]]:
    """Commands with their cycles, and cycles in which nothing was held; `busy`: not to close."""
    dut = Maintenance(clocks=CLOCKS)
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    commands: list[tuple[int, Command]] = []
    free: list[int] = []

    async def watch(ctx):
        for cycle in range(cycles):
            ctx.set(dut.may_close, cycle not in busy)
            command = Command(ctx.get(dut.command))
            if command is not Command.NO_OPERATION:
                commands.append((cycle, command))
            assert ctx.get(dut.close) == (command is Command.PRECHARGE)
            if not ctx.get(dut.hold):
                free.append(cycle)
                assert ctx.get(dut.initialised)
            await ctx.tick()

    simulator.add_testbench(watch)
    simulator.run()
    return commands, free


def test_initialisation_has_its_order_and_its_pauses():
    commands, free = _run(BEGIN + 150)
    refresh = BEGIN + CLOCKS.trp
    mode = refresh + POWER_UP_REFRESHES * CLOCKS.trfc
    assert commands == [
        (BEGIN, Command.PRECHARGE),
        *((refresh + i * CLOCKS.trfc, Command.REFRESH) for i in range(POWER_UP_REFRESHES)),
        (mode, Command.LOAD_MODE),
    ]
    assert free[0] == mode + CLOCKS.tmrd


def test_refreshes_keep_their_interval():
    commands, _ = _run(BEGIN + 1200)
    refreshes = [cycle for cycle, command in commands if command is Command.REFRESH]
    refreshes = refreshes[POWER_UP_REFRESHES:]
    assert len(refreshes) == 5
    assert {b - a for a, b in itertools.pairwise(refreshes)} == {CLOCKS.trefi}


def test_refresh_that_waits_does_not_shift_the_next():
    quiet, _ = _run(BEGIN + 700)
    mode = next(cycle for cycle, command in quiet if command is Command.LOAD_MODE)
    late, free = _run(BEGIN + 700, busy=range(mode + 150, mode + 250))
    last = [cycle for cycle, command in quiet if command is Command.REFRESH][-1]
    assert late[-1] == (last, Command.REFRESH)
    closes = [cycle for cycle, command in late if command is Command.PRECHARGE]
    assert closes[1] == mode + 251
    assert not set(free) & set(range(mode + CLOCKS.trefi + 2, mode + 250))
