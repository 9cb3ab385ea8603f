"""The memory serves access unit and host across the clock domains, in the order it took them."""

from __future__ import annotations

import numpy as np
import pytest
from amaranth.sim import Simulator

from ember_hw.boards.sdram.memory import SdramMemory
from ember_hw.boards.sdram.model import ChipModel
from ember_hw.boards.sdram.pins import Command
from ember_hw.boards.sdram.tests.chips import CLOCK_MHZ, SMALL
from ember_hw.config import AcceleratorConfig
from ember_hw.rtl import axi
from ember_hw.rtl.tests.harness import refuses

pytestmark = pytest.mark.rtl

CONFIG = AcceleratorConfig.preset("small").with_changes(address_width_bits=32)
BEYOND = SMALL.size_bytes


class _Setup:
    """Memory, chip and two clocks, the chip's twice the unit's."""

    def __init__(self, seed: int):
        self.random = np.random.default_rng(seed)
        self.dut = SdramMemory(chip=SMALL, clock_mhz=CLOCK_MHZ, config=CONFIG, pad_clocks=0)
        self.model = ChipModel(SMALL, SMALL.clocks(CLOCK_MHZ))
        self.model.words[:] = self.random.integers(0, 1 << 16, len(self.model.words))
        self.simulator = Simulator(self.dut)
        self.simulator.add_clock(20e-9)
        self.simulator.add_clock(10e-9, phase=7e-9, domain="sdram")
        self.simulator.add_testbench(self._chip, background=True)
        self.simulator.add_testbench(self._limit, background=True)

    async def _chip(self, ctx):
        pins = self.dut.pins
        async for _ in ctx.tick("sdram"):
            word = self.model.edge(
                Command(ctx.get(pins.command)),
                bank=ctx.get(pins.bank),
                address=ctx.get(pins.address),
                mask=ctx.get(pins.mask),
                data=ctx.get(pins.data_out) if ctx.get(pins.data_enable) else None,
            )
            ctx.set(pins.data_in, word)

    async def _limit(self, ctx):
        for _ in range(6000):
            await ctx.tick()
        raise AssertionError("not done after 6000 cycles")

    def beat(self, address: int) -> int:
        return int.from_bytes(self.model.words[address // 2 :][:8].tobytes(), "little")

    def ask(self, reads: list[tuple[int, int, int]], seen: list[tuple[int, int, int, int]]):
        """Send reads (address, beats, id) and note the beats (id, data, last, response)."""

        async def sender(ctx):
            bus = self.dut.unit
            for address, beats, tag in reads:
                ctx.set(bus.araddr, address)
                ctx.set(bus.arlen, beats - 1)
                ctx.set(bus.arid, tag)
                ctx.set(bus.arvalid, 1)
                await ctx.tick().until(bus.arready)
                ctx.set(bus.arvalid, 0)

        async def receiver(ctx):
            bus = self.dut.unit
            while len(seen) < sum(beats for _, beats, _ in reads):
                ctx.set(bus.rready, int(self.random.integers(2)))
                ready = ctx.get(bus.rready)
                _, _, valid, *beat = await ctx.tick().sample(
                    bus.rvalid, bus.rid, bus.rdata, bus.rlast, bus.rresp
                )
                if valid and ready:
                    seen.append((beat[0], beat[1], beat[2], axi.Response(beat[3])))

        self.simulator.add_testbench(sender)
        self.simulator.add_testbench(receiver)

    async def access(self, ctx, address: int, data: int | None = None) -> tuple[int, int]:
        """Access a beat as the host does; returns data and error."""
        port = self.dut.link
        request = {"address": address, "is_write": data is not None, "data": data or 0}
        ctx.set(port.request.payload, request)
        ctx.set(port.request.valid, 1)
        await ctx.tick().until(port.request.ready)
        ctx.set(port.request.valid, 0)
        while not ctx.get(port.answer_valid):
            await ctx.tick()
        answer = ctx.get(port.answer_data), ctx.get(port.answer_error)
        await ctx.tick()
        return answer


def test_reads_of_the_unit_come_in_order_with_their_ids():
    setup = _Setup(1)
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
    setup = _Setup(2)
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
    setup = _Setup(3)
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
    setup = _Setup(4)
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
