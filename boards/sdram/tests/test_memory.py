"""The memory serves access unit and host across the clock domains, in the order it took them."""

from __future__ import annotations

import pytest

from ember_hw.boards.sdram.memory import SdramMemory
from ember_hw.boards.sdram.tests.chips import CLOCK_MHZ, SMALL
from ember_hw.boards.sdram.tests.memory_setup import CONFIG, MemorySetup
from ember_hw.rtl import axi
from ember_hw.rtl.tests.harness import refuses

pytestmark = pytest.mark.rtl

BEYOND = SMALL.size_bytes


def test_reads_of_the_unit_come_in_order_with_their_ids():
    setup = MemorySetup(1)
    reads = [(int(setup.random.integers(1 << 10)) * 64, int(n), i % 16) for i, n in
             enumerate(setup.random.integers(1, 9, 20))]  # fmt: skip
    seen: list = []
    setup.ask(reads, seen)
    setup.simulator.run()
    assert seen == [
        (tag, setup.beat(address + 16 * i), int(i == beats - 1), axi.Response.OKAY)
        for address, beats, tag in reads
        for i in range(beats)
    ]
    assert setup.model.violations() == []


def test_host_reads_what_it_wrote_while_the_unit_reads():
    setup = MemorySetup(2)
    seen: list = []
    setup.ask([(64 * i, 4, 3) for i in range(40)], seen)
    answers = []

    async def host(ctx):
        for i in range(6):
            address = 0x8000 + 16 * i
            await setup.access(ctx, address, data=(i + 1) << 90 | i)
            answers.append(await setup.access(ctx, address))

    setup.simulator.add_testbench(host)
    setup.simulator.run()
    assert answers == [((i + 1) << 90 | i, 0) for i in range(6)]
    assert len(seen) == 160
    assert setup.model.violations() == []


def test_unit_sees_a_write_once_it_is_answered():
    setup = MemorySetup(3)
    seen = []

    async def host(ctx):
        await setup.access(ctx, 0x40, data=0xABCD)
        bus = setup.dut.unit
        ctx.set(bus.rready, 1)
        ctx.set(bus.araddr, 0x40)
        ctx.set(bus.arvalid, 1)
        await ctx.tick().until(bus.arready)
        ctx.set(bus.arvalid, 0)
        (data,) = await ctx.tick().sample(bus.rdata).until(bus.rvalid)
        seen.append(data)

    setup.simulator.add_testbench(host)
    setup.simulator.run()
    assert seen == [0xABCD]


def test_addresses_beyond_the_chip_are_errors_and_write_nothing():
    setup = MemorySetup(4)
    before = setup.model.words.copy()
    seen: list = []
    setup.ask([(BEYOND, 2, 1), (BEYOND - 16, 1, 2)], seen)
    answers = []

    async def host(ctx):
        answers.append(await setup.access(ctx, BEYOND + 0x40, data=1))
        answers.append(await setup.access(ctx, 1 << 31))
        answers.append(await setup.access(ctx, 0x40))

    setup.simulator.add_testbench(host)
    setup.simulator.run()
    assert [(tag, last, response) for tag, _, last, response in seen] == [
        (1, 0, axi.Response.DECODE_ERROR),
        (1, 1, axi.Response.DECODE_ERROR),
        (2, 1, axi.Response.OKAY),
    ]
    assert [error for _, error in answers] == [1, 1, 0]
    assert answers[2][0] == setup.beat(0x40)
    assert (setup.model.words == before).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data_width_bits": 64}, "data_width_bits must be 128 with an SDR SDRAM, not 64"),
        ({"memory_ports": 2}, "memory_ports must be 1 on a board with one memory, not 2"),
        (
            {"index_port_bits": 64},
            "index_port_bits must be 0 on a board with one memory port, not 64",
        ),
    ],
)
def test_config_that_does_not_fit_is_refused(changes, message):
    with refuses(message):
        SdramMemory(chip=SMALL, clock_mhz=CLOCK_MHZ, config=CONFIG.with_changes(**changes))
