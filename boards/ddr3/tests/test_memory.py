"""Reads are split by bank and come in order, whatever the controller's ports do."""

from __future__ import annotations

import pytest

from ember_hw.boards.ddr3.chip import BEAT_BYTES, CHIPS
from ember_hw.boards.ddr3.memory import DdrMemory
from ember_hw.boards.ddr3.native_port import PLACES
from ember_hw.boards.ddr3.tests.memory_setup import CONFIG, SMALL, MemorySetup
from ember_hw.rtl import axi
from ember_hw.rtl.tests.harness import refuses

pytestmark = pytest.mark.rtl

BEATS = SMALL.size_bytes // BEAT_BYTES
PAGE_BEATS = 1 << SMALL.page_beat_bits


def _random_reads(setup: MemorySetup, count: int, most: int = 9) -> list[tuple[int, int, int]]:
    lengths = setup.random.integers(1, most, count)
    firsts = setup.random.integers(0, BEATS - most, count)
    tags = setup.random.integers(0, 16, count)
    return [
        (BEAT_BYTES * int(first), int(length), int(tag))
        for first, length, tag in zip(firsts, lengths, tags, strict=True)
    ]


@pytest.mark.parametrize("ports", [2, 4, 8])
def test_reads_come_in_order_with_their_ids_and_each_bank_has_its_port(ports: int):
    setup = MemorySetup(ports, ports=ports)
    reads = _random_reads(setup, 40)
    seen: list = []
    setup.ask(reads, seen)
    setup.simulator.run()
    assert seen == setup.expected(reads)
    for number, banks in enumerate(setup.ports.banks_seen):
        assert banks == set(range(number, SMALL.banks, ports))
    assert setup.ports.commands == sum(beats for _, beats, _ in reads)


def test_read_over_several_rows_is_cut_and_put_together():
    setup = MemorySetup(5)
    longest = 3 * PAGE_BEATS + 2
    reads = [(BEAT_BYTES * first, longest, 3) for first in (0, 1, PAGE_BEATS - 1, BEATS - longest)]
    seen: list = []
    setup.ask(reads, seen)
    setup.simulator.run()
    assert seen == setup.expected(reads)


def test_unit_that_takes_nothing_loses_nothing():
    setup = MemorySetup(6, stall=0.0, unit_stall=0.9, limit=30_000)
    reads = [(BEAT_BYTES * (16 * (i % 60)), 16, i % 16) for i in range(PLACES // 16 + 4)]
    seen: list = []
    setup.ask(reads, seen)
    setup.simulator.run()
    assert seen == setup.expected(reads)


@pytest.mark.parametrize("beats", [1, 4])
def test_ports_that_never_stall_are_kept_busy(beats: int):
    setup = MemorySetup(7, ports=8, stall=0.0, unit_stall=0.0)
    reads = [(BEAT_BYTES * (PAGE_BEATS * (i % 64) + 4), beats, i % 16) for i in range(400 // beats)]
    seen, cycles = [], []
    setup.ask(reads, seen, cycles)
    setup.simulator.run()
    assert seen == setup.expected(reads)
    # LiteDRAM brings a beat every two cycles.
    assert cycles[-1] - cycles[0] + 1 <= 1.4 * len(cycles)


def test_host_reads_what_it_wrote_while_the_unit_reads():
    setup = MemorySetup(8)
    seen: list = []
    setup.ask([(64 * i, 4, 3) for i in range(30)], seen)
    answers = []

    async def host(ctx):
        for i in range(6):
            address = 0x1800 + 0x110 * i  # of several banks
            await setup.access(ctx, address, data=(i + 1) << 90 | i)
            answers.append(await setup.access(ctx, address))

    setup.simulator.add_testbench(host)
    setup.simulator.run()
    assert answers == [((i + 1) << 90 | i, 0) for i in range(6)]
    assert len(seen) == 120


def test_unit_sees_a_write_once_it_is_answered():
    setup = MemorySetup(9)
    seen = []

    async def host(ctx):
        bus = setup.dut.unit
        ctx.set(bus.rready, 1)
        for i in range(8):
            await setup.access(ctx, 0x40, data=0xABCD + i)
            ctx.set(bus.araddr, 0x40)
            ctx.set(bus.arvalid, 1)
            await ctx.tick().until(bus.arready)
            ctx.set(bus.arvalid, 0)
            (data,) = await ctx.tick().sample(bus.rdata).until(bus.rvalid)
            seen.append(data)

    setup.simulator.add_testbench(host)
    setup.simulator.run()
    assert seen == [0xABCD + i for i in range(8)]


def test_host_that_always_asks_and_unit_that_always_asks_both_go_on():
    setup = MemorySetup(10, stall=0.0, unit_stall=0.0)
    seen: list = []
    setup.ask([(0, 1, 0)] * 150, seen)
    answers = []

    async def host(ctx):
        for _ in range(4):
            answers.append((await setup.access(ctx, 0x100), len(seen)))

    setup.simulator.add_testbench(host)
    setup.simulator.run()
    assert len(seen) == 150
    assert [data for data, _ in answers] == [(setup.ports.beat(0x100), 0)] * 4
    assert answers[-1][1] < 150  # not only after the unit was done


@pytest.mark.parametrize("initialised", [False, True])
def test_where_no_memory_is_accesses_are_errors_and_write_nothing(initialised: bool):
    setup = MemorySetup(11)
    beyond = SMALL.size_bytes if initialised else 0
    before = bytes(setup.ports.content)
    seen: list = []
    reads = [(beyond, 2, 1), (0x100, 1, 2), (1 << 31, 40, 3)]
    answers = []

    async def host(ctx):
        ctx.set(setup.dut.initialised, initialised)
        answers.append(await setup.access(ctx, beyond + 0x40, data=1))
        answers.append(await setup.access(ctx, beyond + 0x40))
        answers.append(await setup.access(ctx, 0x40))

    setup.ask(reads, seen)
    setup.simulator.add_testbench(host)
    setup.simulator.run()
    absent, middle = axi.Response.DECODE_ERROR, (axi.Response.DECODE_ERROR, axi.Response.OKAY)
    assert [(tag, last, response) for tag, _, last, response in seen] == [
        *((1, 0, absent), (1, 1, absent)),
        (2, 1, middle[initialised]),
        *((3, int(i == 39), absent) for i in range(40)),
    ]
    assert [error for _, error in answers] == [1, 1, int(not initialised)]
    assert bytes(setup.ports.content) == before


@pytest.mark.parametrize(
    ("ports", "changes", "message"),
    [
        (4, {"data_width_bits": 64}, "data_width_bits must be 128 with a DDR3 SDRAM, not 64"),
        (4, {"memory_ports": 2}, "memory_ports must be 1 on a board with one memory, not 2"),
        (1, {}, "ports must be a power of two from 2 to 8, not 1"),
        (6, {}, "ports must be a power of two from 2 to 8, not 6"),
        (16, {}, "ports must be a power of two from 2 to 8, not 16"),
    ],
)
def test_what_does_not_fit_is_refused(ports, changes, message):
    with refuses(message):
        DdrMemory(chip=CHIPS["ecpix5"], ports=ports, config=CONFIG.with_changes(**changes))
