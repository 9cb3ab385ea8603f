from __future__ import annotations

from typing import ClassVar

import pytest
from amaranth.hdl import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from ember_hw import registers
from ember_hw.config import AcceleratorConfig
from ember_hw.rtl.cluster import AccessCluster
from ember_hw.rtl.flat_unit import unit_members
from ember_hw.rtl.layouts import tag_bits
from ember_hw.rtl.tests.harness import CONFIG, Bench, refuses

FULL = CONFIG.with_changes(index_port_bits=64, input_queue=1)


class Stub(wiring.Component):
    """A unit with flat ports whose outputs the test drives."""

    made: ClassVar[list[Stub]] = []

    def __init__(self, *, config: AcceleratorConfig):
        super().__init__(unit_members(config))
        self.driven = {
            name: Signal(len(Value.cast(getattr(self, name))), name=f"{name}_driven")
            for name, member in self.signature.members.items()
            if member.flow is Out
        }
        Stub.made.append(self)

    def elaborate(self, platform):
        m = Module()
        for name, signal in self.driven.items():
            m.d.comb += getattr(self, name).eq(signal)
        return m


@pytest.fixture
def stubs():
    Stub.made.clear()
    return Stub.made


def _outer_name(name: str, number: int, config: AcceleratorConfig) -> str:
    """Return the cluster's name of a unit's port that leads through."""
    head, signal = name.rsplit("_", 1)
    if head == "m_axi":
        return f"m_axi{number}_{signal}"
    if config.memory_ports > 1 and head.startswith("m_axi") and head[5:].isdigit():
        return f"m_axi{number * config.memory_ports + int(head[5:])}_{signal}"
    return f"{head}{number}_{signal}"


async def _check_through(ctx, cluster, stubs, names, config):
    """Every port that leads through carries each of its bits, to and from its own unit only."""
    for number, stub in enumerate(stubs):
        for name in names:
            inner = Value.cast(getattr(stub, name))
            outer = Value.cast(getattr(cluster, _outer_name(name, number, config)))
            assert len(inner) == len(outer), name
            source = stub.driven.get(name, outer)
            pattern = (0x9E3779B97F4A7C15 * 0x10001 >> number) & (1 << len(inner)) - 1
            for driven in (pattern | 1, 0):
                ctx.set(source, driven)
                assert (ctx.get(inner), ctx.get(outer)) == (driven, driven), name


@pytest.mark.parametrize(
    ("config", "units", "channels"),
    [
        (CONFIG, 1, 1),
        (FULL, 3, 3),
        (CONFIG.with_changes(memory_ports=2), 2, 4),
        (CONFIG.with_changes(execute="reduce", results="memory"), 2, 2),
    ],
)
def test_private_channels_and_queues_lead_through(
    config: AcceleratorConfig, units: int, channels: int, stubs: list
):
    dut = AccessCluster(
        config=config, units=units, channels=channels, sharing="private", make_unit=Stub
    )
    assert len(dut.m_axi0_arid) == tag_bits(config)
    bench = Bench(dut)

    async def drive(ctx):
        names = [n for n in stubs[0].signature.members if n.startswith(("m_axi", "s_axis"))]
        names.remove("m_axis_aresetn")
        await _check_through(ctx, dut, stubs, names, config)
        for number, stub in enumerate(stubs):
            for name in ("m_axis_aresetn", "irq"):
                ctx.set(stub.driven[name], 1)
                assert ctx.get(getattr(dut, name)) == 1 << number
                ctx.set(stub.driven[name], 0)

    # The simulation elaborates the cluster, which makes the units.
    assert len(stubs) == units
    bench.process(drive)
    bench.run(1)


def test_shared_channels_are_reached_by_every_unit(stubs: list):
    config = FULL.with_changes(memory_ports=2)
    dut = AccessCluster(config=config, units=3, channels=2, sharing="shared", make_unit=Stub)
    bench = Bench(dut)

    async def drive(ctx):
        names = [n for n in stubs[0].signature.members if n.startswith(("m_axis_r", "s_axis"))]
        names += [n for n in stubs[0].signature.members if n.startswith("m_axi_index")]
        await _check_through(ctx, dut, stubs, names, config)
        for channel in range(2):
            ctx.set(getattr(dut, f"m_axi{channel}_arready"), 1)
            for number, stub in enumerate(stubs):
                ctx.set(stub.driven[f"m_axi{channel}_araddr"], 64 * (number + 1))
                ctx.set(stub.driven[f"m_axi{channel}_arvalid"], 1)
                await ctx.tick()
                ctx.set(stub.driven[f"m_axi{channel}_arvalid"], 0)
                assert ctx.get(getattr(dut, f"m_axi{channel}_arvalid"))
                assert ctx.get(getattr(dut, f"m_axi{channel}_araddr")) == 64 * (number + 1)
                tag = ctx.get(getattr(dut, f"m_axi{channel}_arid"))
                assert tag >> tag_bits(config) == number
                ctx.set(getattr(dut, f"m_axi{channel}_rid"), tag)
                ctx.set(getattr(dut, f"m_axi{channel}_rvalid"), 1)
                hears = [ctx.get(getattr(one, f"m_axi{channel}_rvalid")) for one in stubs]
                assert hears == [int(i == number) for i in range(3)]
                await ctx.tick()
                ctx.set(getattr(dut, f"m_axi{channel}_rvalid"), 0)

    bench.process(drive)
    bench.run(20)


def test_registers_of_each_unit_have_their_addresses(stubs: list):
    dut = AccessCluster(config=CONFIG, units=2, channels=2, sharing="private", make_unit=Stub)
    bench = Bench(dut)

    async def drive(ctx):
        for number, stub in enumerate(stubs):
            ctx.set(dut.s_axil_araddr, number << registers.ADDRESS_WIDTH_BITS | 0x14)
            ctx.set(dut.s_axil_arvalid, 1)
            ctx.set(dut.s_axil_rready, 1)
            await ctx.tick()
            ctx.set(dut.s_axil_arvalid, 0)
            assert [ctx.get(one.s_axil_arvalid) for one in stubs] == [number == 0, number == 1]
            assert ctx.get(stub.s_axil_araddr) == 0x14
            ctx.set(stub.driven["s_axil_arready"], 1)
            await ctx.tick()
            ctx.set(stub.driven["s_axil_rdata"], 0xABC + number)
            ctx.set(stub.driven["s_axil_rvalid"], 1)
            assert ctx.get(dut.s_axil_rvalid)
            assert ctx.get(dut.s_axil_rdata) == 0xABC + number
            await ctx.tick()
            ctx.set(stub.driven["s_axil_rvalid"], 0)

    bench.process(drive)
    bench.run(20)


def test_parameters_are_checked():
    good = {"config": CONFIG, "units": 2, "channels": 2, "sharing": "private", "make_unit": Stub}
    with refuses("sharing must be one of private, shared, not 'some'"):
        AccessCluster(**good | {"sharing": "some"})
    for units in (0, 9):
        with refuses(f"units must be from 1 to 8, not {units}"):
            AccessCluster(**good | {"units": units})
    with refuses("channels must be 2 (private, 2 units of 1 memory ports), not 3"):
        AccessCluster(**good | {"channels": 3})
    with refuses("channels must be 1 (shared, 2 units of 1 memory ports), not 2"):
        AccessCluster(**good | {"sharing": "shared"})
