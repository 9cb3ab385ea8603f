from __future__ import annotations

from dataclasses import replace

import pytest

from ember_hw.boards.block_memory import BlockMemory
from ember_hw.boards.core import BoardCore
from ember_hw.boards.tests.test_description import BOARD
from ember_hw.config import AcceleratorConfig
from ember_hw.rtl.axi import Response
from ember_hw.rtl.tests.harness import Bench, refuses

CONFIG = AcceleratorConfig.preset("tiny")
BASE, SIZE, BEAT = 0x1000, 0x200, 8


class MemoryBench(Bench):
    """The host writes and reads, the unit reads bursts, both with stalls."""

    def __init__(self, seed: int):
        super().__init__(BlockMemory(config=CONFIG, base=BASE, num_bytes=SIZE), seed=seed)

    async def access(self, ctx, address: int, word: int | None = None) -> tuple[int, int]:
        link = self.dut.link
        ctx.set(link.request.payload.address, address)
        ctx.set(link.request.payload.is_write, word is not None)
        ctx.set(link.request.payload.data, word or 0)
        ctx.set(link.request.valid, 1)
        ready = False
        while not ready:
            _, _, ready = await ctx.tick().sample(link.request.ready)
        ctx.set(link.request.valid, 0)
        answered = False
        while not answered:
            _, _, answered, found, failed = await ctx.tick().sample(
                link.answer_valid, link.answer_data, link.answer_error
            )
        return found, failed

    async def burst(self, ctx, address: int, beats: int, tag: int) -> list[tuple[int, ...]]:
        unit = self.dut.unit
        ctx.set(unit.araddr, address)
        ctx.set(unit.arlen, beats - 1)
        ctx.set(unit.arid, tag)
        ctx.set(unit.arvalid, 1)
        ready = False
        while not ready:
            _, _, ready = await ctx.tick().sample(unit.arready)
        ctx.set(unit.arvalid, 0)
        got: list[tuple[int, ...]] = []
        while len(got) < beats:
            takes = self.random.random() < 0.6
            ctx.set(unit.rready, takes)
            _, _, valid, *beat, response = await ctx.tick().sample(
                unit.rvalid, unit.rdata, unit.rid, unit.rlast, unit.rresp
            )
            if valid and takes:
                got.append((*beat, response.value))
        ctx.set(unit.rready, 0)
        return got


def word_of(address: int) -> int:
    return address * 0x9E3779B97F4A7C15 % (1 << 64)


@pytest.mark.rtl
@pytest.mark.parametrize("seed", range(2))
def test_the_unit_reads_what_the_host_wrote(seed: int) -> None:
    bench = MemoryBench(seed)
    written = []

    async def host(ctx):
        for address in range(BASE, BASE + SIZE, BEAT):
            assert (await bench.access(ctx, address, word_of(address)))[1] == 0
        written.append(True)
        for _ in range(60):
            address = BASE + BEAT * bench.random.randrange(SIZE // BEAT)
            assert await bench.access(ctx, address) == (word_of(address), 0)
            while bench.random.random() < 0.5:
                await ctx.tick()

    async def unit(ctx):
        while not written:
            await ctx.tick()
        for number in range(30):
            first = bench.random.randrange(SIZE // BEAT - 8)
            beats, tag = bench.random.randrange(1, 9), number % 8
            got = await bench.burst(ctx, BASE + BEAT * first, beats, tag)
            assert got == [
                (word_of(BASE + BEAT * (first + i)), tag, int(i == beats - 1), 0)
                for i in range(beats)
            ]

    bench.process(host)
    bench.process(unit)
    bench.run(5_000)


@pytest.mark.rtl
def test_what_lies_outside_is_answered_with_an_error() -> None:
    bench = MemoryBench(0)

    async def run(ctx):
        await bench.access(ctx, BASE, 5)
        for address in (BASE - BEAT, BASE + SIZE, BASE + (1 << 31)):
            assert (await bench.access(ctx, address, 9))[1] == 1
            assert (await bench.access(ctx, address))[1] == 1
        got = await bench.burst(ctx, BASE + SIZE - BEAT, 2, 3)
        responses = [beat[3] for beat in got]
        assert responses == [Response.OKAY.value, Response.DECODE_ERROR.value]
        assert (await bench.access(ctx, BASE))[0] == 5

    bench.process(run)
    bench.run(1_000)


def test_shapes_are_checked() -> None:
    with refuses("num_bytes must be a power of two and at least 16, not 24"):
        BlockMemory(config=CONFIG, base=0, num_bytes=24)
    with refuses("base must be a multiple of num_bytes (512), not 256"):
        BlockMemory(config=CONFIG, base=256, num_bytes=512)


def test_a_board_has_no_input_queue_and_no_results_in_memory() -> None:
    queue = BOARD.config.with_changes(input_queue=1)
    with refuses("input_queue of config 'small' must be 0 on a board, not 1"):
        BoardCore(description=replace(BOARD, config=queue))
    memory = BOARD.config.with_changes(execute="reduce", results="memory")
    with refuses("results of config 'small' must be 'stream' on a board, not 'memory'"):
        BoardCore(description=replace(BOARD, config=memory))
