"""One command a clock: who goes first, and what stands on the pins."""

from __future__ import annotations

import itertools

import pytest
from amaranth.sim import Simulator

from ember_hw.boards.sdram.command_bus import CommandBus
from ember_hw.boards.sdram.pins import Command
from ember_hw.boards.sdram.tests.chips import CLOCK_MHZ, SMALL

pytestmark = pytest.mark.rtl

CLOCKS = SMALL.clocks(CLOCK_MHZ)


def _run(*cycles: dict[str, int | Command]) -> list[tuple[Command, int, int, int, int]]:
    """(command, bank, address) of each clock after the inputs, and the grants in it."""
    dut = CommandBus(chip=SMALL, clocks=CLOCKS)
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    seen: list[tuple[Command, int, int, int, int]] = []

    async def drive(ctx):
        for number, row in enumerate(dut.rows):
            ctx.set(row, 100 + number)
        ctx.set(dut.access_bank, 2)
        ctx.set(dut.access_beat, 3)
        names = ("maintenance", "read", "write", "activate", "precharge")
        for inputs, following in itertools.pairwise(({}, *cycles, {})):
            ctx.set(dut.hold, following.get("hold", 0))
            ctx.set(dut.access_ahead, "read" in following or "write" in following)
            for name in names:
                default = Command.NO_OPERATION if name == "maintenance" else 0
                ctx.set(getattr(dut, name), inputs.get(name, default))
            await ctx.delay(0)
            grants = ctx.get(dut.activate_grant), ctx.get(dut.precharge_grant)
            await ctx.tick()
            pins = Command(ctx.get(dut.command)), ctx.get(dut.bank), ctx.get(dut.address)
            seen.append((*pins, *grants))
        del seen[0]

    simulator.add_testbench(drive)
    simulator.run()
    return seen


ALL = {"activate": 0b1010, "precharge": 0b0101}


def test_access_goes_before_rows():
    read, write = _run({"read": 1, **ALL}, {"write": 1, **ALL})
    assert read == (Command.READ, 2, 24, 0, 0)
    assert write == (Command.WRITE, 2, 24, 0, 0)


def test_activate_goes_before_precharge_and_waits_for_the_one_before():
    first, second, third = _run(ALL, {**ALL, "activate": 0b1000}, {**ALL, "activate": 0b1000})
    assert CLOCKS.trrd == 2
    assert first == (Command.ACTIVATE, 1, 101, 0b0010, 0)
    assert second == (Command.PRECHARGE, 0, 0, 0, 0b0001)
    assert third == (Command.ACTIVATE, 3, 103, 0b1000, 0)


@pytest.mark.parametrize("command", [Command.PRECHARGE, Command.REFRESH])
def test_maintenance_goes_alone(command):
    (seen,) = _run({"hold": 1, "maintenance": command, **ALL})
    assert seen[0] is command
    assert seen[2] >> 10 & 1  # of all banks
    assert seen[3:] == (0, 0)


def test_mode_is_bursts_of_eight_and_the_cas_latency():
    (seen,) = _run({"hold": 1, "maintenance": Command.LOAD_MODE})
    assert seen == (Command.LOAD_MODE, 0, 0b010_0_011, 0, 0)


def test_nothing_happens_while_all_is_held():
    (seen,) = _run({"hold": 1, **ALL})
    assert (seen[0], *seen[3:]) == (Command.NO_OPERATION, 0, 0)
