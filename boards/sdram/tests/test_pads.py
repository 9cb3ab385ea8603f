"""Pads delay by one clock each way; commands reach the pins that they assert."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from amaranth.hdl import Module
from amaranth.lib import io
from amaranth.sim import Simulator

from ember_hw.boards.sdram.pads import SdramPads, SdramPorts
from ember_hw.boards.sdram.pins import Command
from ember_hw.boards.sdram.tests.chips import SMALL

pytestmark = pytest.mark.rtl


@pytest.mark.parametrize("command", list(Command))
def test_command_is_on_its_pins_a_clock_later(command):
    ports = SdramPorts.for_simulation(SMALL)
    dut = SdramPads(chip=SMALL, ports=ports)
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)

    async def drive(ctx):
        ctx.set(dut.pins.command, command)
        ctx.set(dut.pins.address, 0x123)
        ctx.set(dut.pins.data_out, 0xBEEF)
        ctx.set(dut.pins.data_enable, 1)
        ctx.set(ports.dq.i, 0xCAFE)
        assert ctx.get(ports.a.o) == 0
        await ctx.tick()
        pins = [ctx.get(port.o) for port in (ports.ras, ports.cas, ports.we)]
        assert pins == [command.value >> i & 1 for i in (2, 1, 0)]
        assert (ctx.get(ports.a.o), ctx.get(ports.dq.o)) == (0x123, 0xBEEF)
        assert ctx.get(ports.dq.oe) == 0xFFFF
        assert ctx.get(dut.pins.data_in) == 0xCAFE

    simulator.add_testbench(drive)
    simulator.run()


def test_resource_gives_its_ports_and_tied_pins_may_be_absent():
    names = ("ras", "cas", "we", "ba", "a", "dqm", "dq", "cs")
    resource = SimpleNamespace(**{name: name for name in names})
    ports = SdramPorts.of_resource(resource)
    assert (ports.ras, ports.cs, ports.clk_en) == ("ras", "cs", None)


def test_chip_is_always_selected():
    cs = io.SimulationPort("o", 1)
    base = SdramPorts.for_simulation(SMALL)
    ports = SdramPorts(**{**vars(base), "cs": cs})
    m = Module()
    m.submodules.pads = SdramPads(chip=SMALL, ports=ports)
    simulator = Simulator(m)
    simulator.add_clock(1e-6)

    async def look(ctx):
        await ctx.delay(0)
        assert ctx.get(cs.o) == 1

    simulator.add_testbench(look)
    simulator.run()
