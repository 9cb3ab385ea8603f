from __future__ import annotations

import pytest

from ember_hw import registers
from ember_hw.rtl.axi import Response
from ember_hw.rtl.lite_decoder import LiteDecoder
from ember_hw.rtl.tests.harness import Bench, refuses

UNIT = 1 << registers.ADDRESS_WIDTH_BITS


class Registers(Bench):
    """A decoder; behind it units that hold what is written and take their time."""

    def __init__(self, units: int, *, seed: int = 0, stall: float = 0.5):
        super().__init__(LiteDecoder(units=units), seed=seed)
        self.stall = stall
        self.held: list[dict[int, tuple[int, int]]] = [{} for _ in range(units)]
        for number, port in enumerate(self.dut.units):
            self.process(self._writes(number, port), background=True)
            self.process(self._reads(number, port), background=True)

    async def _wait(self, ctx):
        while self.random.random() < self.stall:
            await ctx.tick()

    def _writes(self, number: int, port):
        async def serve(ctx):
            while True:
                taken = {}
                order = self.random.sample(["aw", "w"], 2)
                for channel in order:
                    await self._wait(ctx)
                    ctx.set(getattr(port, f"{channel}ready"), 1)
                    valid = False
                    while not valid:
                        _, _, valid, *rest = await ctx.tick().sample(
                            getattr(port, f"{channel}valid"), port.awaddr, port.wdata, port.wstrb
                        )
                    ctx.set(getattr(port, f"{channel}ready"), 0)
                    taken[channel] = rest
                self.held[number][taken["aw"][0]] = tuple(taken["w"][1:])
                await self._wait(ctx)
                ctx.set(port.bvalid, 1)
                ctx.set(port.bresp, Response.SLAVE_ERROR if taken["aw"][0] % 8 else Response.OKAY)
                ready = False
                while not ready:
                    _, _, ready = await ctx.tick().sample(port.bready)
                ctx.set(port.bvalid, 0)

        return serve

    def _reads(self, number: int, port):
        async def serve(ctx):
            while True:
                await self._wait(ctx)
                ctx.set(port.arready, 1)
                valid = False
                while not valid:
                    _, _, valid, address = await ctx.tick().sample(port.arvalid, port.araddr)
                ctx.set(port.arready, 0)
                await self._wait(ctx)
                ctx.set(port.rvalid, 1)
                ctx.set(port.rdata, self.held[number].get(address, (0, 0))[0])
                ready = False
                while not ready:
                    _, _, ready = await ctx.tick().sample(port.rready)
                ctx.set(port.rvalid, 0)

        return serve

    async def write(self, ctx, address: int, word: int, strobe: int = 0xF) -> Response:
        bus = self.dut.bus
        for channel in self.random.sample(["aw", "w"], 2):
            await self._wait(ctx)
            ctx.set(bus.awaddr, address)
            ctx.set(bus.wdata, word)
            ctx.set(bus.wstrb, strobe)
            ctx.set(getattr(bus, f"{channel}valid"), 1)
            ready = False
            while not ready:
                _, _, ready = await ctx.tick().sample(getattr(bus, f"{channel}ready"))
            ctx.set(getattr(bus, f"{channel}valid"), 0)
        await self._wait(ctx)
        ctx.set(bus.bready, 1)
        valid = False
        while not valid:
            _, _, valid, response = await ctx.tick().sample(bus.bvalid, bus.bresp)
        ctx.set(bus.bready, 0)
        return Response(response)

    async def read(self, ctx, address: int) -> tuple[Response, int]:
        bus = self.dut.bus
        ctx.set(bus.araddr, address)
        ctx.set(bus.arvalid, 1)
        ready = False
        while not ready:
            _, _, ready = await ctx.tick().sample(bus.arready)
        ctx.set(bus.arvalid, 0)
        await self._wait(ctx)
        ctx.set(bus.rready, 1)
        valid = False
        while not valid:
            _, _, valid, response, word = await ctx.tick().sample(bus.rvalid, bus.rresp, bus.rdata)
        ctx.set(bus.rready, 0)
        return Response(response), word


@pytest.mark.parametrize(("units", "seed"), [(1, 1), (2, 2), (3, 3), (8, 4)])
def test_an_access_goes_to_the_unit_above_the_address(units: int, seed: int):
    bench = Registers(units, seed=seed)
    expected: list[dict[int, tuple[int, int]]] = [{} for _ in range(units)]

    async def writes(ctx):
        for _ in range(25):
            unit, address = bench.random.randrange(units), bench.random.randrange(0, UNIT, 4)
            word, strobe = bench.random.randrange(1 << 32), bench.random.randrange(16)
            response = await bench.write(ctx, unit * UNIT + address, word, strobe)
            assert response == (Response.SLAVE_ERROR if address % 8 else Response.OKAY)
            expected[unit][address] = (word, strobe)
        for unit, held in enumerate(expected):
            for address, (word, _) in held.items():
                assert await bench.read(ctx, unit * UNIT + address) == (Response.OKAY, word)

    bench.process(writes)
    bench.run(3000)
    assert bench.held == expected


def test_a_read_does_not_wait_for_a_write():
    bench = Registers(2, seed=5, stall=0.0)

    async def drive(ctx):
        ctx.set(bench.dut.bus.awaddr, UNIT)
        ctx.set(bench.dut.bus.awvalid, 1)  # and no data
        await ctx.tick()
        ctx.set(bench.dut.bus.awvalid, 0)
        assert await bench.read(ctx, UNIT + 8) == (Response.OKAY, 0)

    bench.process(drive)
    bench.run(50)


def test_a_unit_that_is_not_there_answers_with_an_error():
    bench = Registers(3, seed=6)

    async def drive(ctx):
        assert await bench.write(ctx, 3 * UNIT + 12, 1) == Response.DECODE_ERROR
        assert (await bench.read(ctx, 3 * UNIT))[0] == Response.DECODE_ERROR
        assert await bench.write(ctx, 2 * UNIT, 7) == Response.OKAY

    bench.process(drive)
    bench.run(200)
    assert bench.held == [{}, {}, {0: (7, 15)}]


@pytest.mark.parametrize("units", [0, 9])
def test_units_are_checked(units: int):
    with refuses(f"units must be from 1 to 8, not {units}"):
        LiteDecoder(units=units)
