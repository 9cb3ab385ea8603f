"""The host's registers over Wishbone: one access at a time, errors told."""

from __future__ import annotations

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from ember_hw.boards.ddr3.control import LiteToWishbone, StatusRegisters, WishboneSignature
from ember_hw.rtl.axi import LiteSignature, Response
from ember_hw.rtl.tests.harness import Bench

pytestmark = pytest.mark.rtl


async def _write(bench: Bench, ctx, lite, address: int, value: int) -> Response:
    ctx.set(lite.awaddr, address)
    ctx.set(lite.awvalid, 1)
    while bench.random.random() < 0.5:
        await ctx.tick()
    ctx.set(lite.wdata, value)
    ctx.set(lite.wvalid, 1)
    ready = False
    while not ready:
        _, _, ready, data_ready = await ctx.tick().sample(lite.awready, lite.wready)
        assert ready == data_ready
    ctx.set(lite.awvalid, 0)
    ctx.set(lite.wvalid, 0)
    return await _take(bench, ctx, lite.bvalid, lite.bready, lite.bresp)


async def _read(bench: Bench, ctx, lite, address: int) -> tuple[int, Response]:
    ctx.set(lite.araddr, address)
    ctx.set(lite.arvalid, 1)
    ready = False
    while not ready:
        _, _, ready = await ctx.tick().sample(lite.arready)
    ctx.set(lite.arvalid, 0)
    response = await _take(bench, ctx, lite.rvalid, lite.rready, lite.rresp)
    return ctx.get(lite.rdata), response


async def _take(bench: Bench, ctx, valid, ready, response) -> Response:
    while True:
        takes = bench.random.random() < 0.5
        ctx.set(ready, takes)
        _, _, shown, found = await ctx.tick().sample(valid, response)
        if shown and takes:
            ctx.set(ready, 0)
            return Response(found)


@pytest.mark.parametrize("seed", range(2))
def test_accesses_arrive_once_and_are_answered(seed: int):
    bench = Bench(LiteToWishbone(address_bits=16), seed=seed)
    registers: dict[int, int] = {}
    accesses = []

    async def device(ctx):
        bus = bench.dut.wishbone
        while True:
            ctx.set(bus.ack, 0)
            ctx.set(bus.err, 0)
            _, _, asked, valid, writes, number, value = await ctx.tick().sample(
                bus.stb, bus.cyc, bus.we, bus.adr, bus.dat_w
            )
            if not asked or bench.random.random() < 0.5:
                continue
            assert valid
            accesses.append((writes, number))
            if number >= 0x3000:
                ctx.set(bus.err, 1)
            else:
                if writes:
                    registers[number] = value
                ctx.set(bus.dat_r, registers.get(number, 0))
                ctx.set(bus.ack, 1)
            await ctx.tick()

    async def host(ctx):
        lite = bench.dut.lite
        for i in range(20):
            address = 4 * (100 * i % 0x1000)
            assert await _write(bench, ctx, lite, address, i + 7) is Response.OKAY
            assert await _read(bench, ctx, lite, address) == (i + 7, Response.OKAY)
        assert await _write(bench, ctx, lite, 0xC000, 1) is Response.SLAVE_ERROR
        assert (await _read(bench, ctx, lite, 0xFFFC))[1] is Response.SLAVE_ERROR

    bench.process(device, background=True)
    bench.process(host)
    bench.run(2_000)
    assert len(accesses) == 42
    assert accesses[:2] == [(1, 0), (0, 0)]
    assert accesses[-1] == (0, 0x3FFF)


class _Status(wiring.Component):
    """Bridge and status registers, as on a board with an init CPU."""

    def __init__(self):
        super().__init__({"lite": In(LiteSignature(address_bits=16))})
        self.bridge = LiteToWishbone(address_bits=16)
        self.status = StatusRegisters(address_bits=16)

    def elaborate(self, platform):
        m = Module()
        m.submodules.bridge = self.bridge
        m.submodules.status = self.status
        wiring.connect(m, wiring.flipped(self.lite), self.bridge.lite)
        wiring.connect(m, self.bridge.wishbone, self.status.wishbone)
        return m


def test_status_tells_how_the_init_cpu_ended():
    bench = Bench(_Status())
    found = []

    async def host(ctx):
        lite = bench.dut.lite
        for done, failed in ((0, 0), (1, 0), (1, 1)):
            ctx.set(bench.dut.status.done, done)
            ctx.set(bench.dut.status.failed, failed)
            assert await _write(bench, ctx, lite, 0, 5) is Response.OKAY
            found.append([(await _read(bench, ctx, lite, at))[0] for at in (0, 4, 8)])

    bench.process(host)
    bench.run(500)
    assert found == [[0, 0, 0], [1, 0, 0], [1, 1, 0]]


def test_signatures_compare_by_their_width():
    assert WishboneSignature(address_bits=16) == WishboneSignature(address_bits=16)
    assert WishboneSignature(address_bits=16) != WishboneSignature(address_bits=12)
