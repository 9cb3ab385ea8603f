from __future__ import annotations

from dataclasses import dataclass

import pytest

from ember_hw.rtl.line_store import HALF_BYTES, QUEUE_LINES, READ_CYCLES, LineStore
from ember_hw.rtl.tests.harness import CONFIG, Bench, payloads, stamp

LINE = 64


@dataclass
class Store(Bench):
    """A line store, and a memory that answers its lines whole, in order."""

    seed: int = 0
    lines_per_stream: int = 2
    data_width_bits: int = 64
    latency: int = 4
    index_port_bits: int = 0

    def __post_init__(self):
        self.config = CONFIG.with_changes(
            lines_per_stream=self.lines_per_stream,
            data_width_bits=self.data_width_bits,
            index_port_bits=self.index_port_bits,
        )
        super().__init__(LineStore(config=self.config), seed=self.seed)

    def line(self, number: int) -> bytes:
        """Return a line: stamped words, some of them small numbers of 8 bytes."""
        text = bytearray(stamp(number * LINE, LINE))
        for at in range(0, LINE, 8):
            small = (number + at // 8) % 5 - 2
            if (number + at // 8) % 2:
                text[at : at + 8] = (small << 30).to_bytes(8, "little", signed=True)
        return bytes(text)

    def element(self, line: int, offset: int) -> tuple[int, int]:
        """Return the half word at an offset, and whether the 8 bytes fit in 32 bits, signed."""
        text = self.line(line)
        half = offset - offset % HALF_BYTES
        whole = int.from_bytes(text[offset - offset % 8 :][:8], "little", signed=True)
        data = int.from_bytes(text[half : half + HALF_BYTES], "little")
        return data, int(-(1 << 31) <= whole < 1 << 31)

    def words(self, line: int) -> list[int]:
        """Return a line as the words that a store takes."""
        size = self.config.index_bits // 8
        return [
            int.from_bytes(self.line(line)[at : at + size], "little") for at in range(0, LINE, size)
        ]

    async def memory(self, ctx):
        """Answer every request."""
        dut = self.dut
        cycle, due = 0, []
        while True:
            takes = self.random.random() < 0.7
            ctx.set(dut.request.ready, takes)
            ctx.set(dut.word_valid, 0)
            if due and due[0][0] <= cycle and self.random.random() < 0.8:
                _, word = due.pop(0)
                ctx.set(dut.word_valid, 1)
                ctx.set(dut.word, word)
            _, _, valid, line = await ctx.tick().sample(dut.request.valid, dut.request.payload)
            if valid and takes:
                due += [(cycle + self.latency, word) for word in self.words(line)]
            cycle += 1

    async def queue(self, ctx, lines: list[int], stall: float):
        """Bring lines as the input queue does: a word whenever there is room."""
        dut = self.dut
        for line in lines:
            for word in self.words(line):
                ctx.set(dut.word_valid, 0)
                while self.random.random() < stall or not ctx.get(dut.room):
                    await ctx.tick()
                ctx.set(dut.word_valid, 1)
                ctx.set(dut.word, word)
                await ctx.tick()
        ctx.set(dut.word_valid, 0)

    async def want(self, ctx, lines: list[int]) -> None:
        """Ask for lines, as many as the store says it can queue."""
        for line in lines:
            while ctx.get(self.dut.level) >= QUEUE_LINES - 1 or self.random.random() < 0.3:
                ctx.set(self.dut.wanted_valid, 0)
                await ctx.tick()
            ctx.set(self.dut.wanted, line)
            ctx.set(self.dut.wanted_valid, 1)
            await ctx.tick()
        ctx.set(self.dut.wanted_valid, 0)

    async def use(self, ctx, lines: list[int], reads: int) -> None:
        """Step through lines with some reads of each; data must follow `READ_CYCLES` later."""
        dut = self.dut
        expected: dict[int, int] = {}
        cycle = 0
        work = [(line, n == 0, self.random.randrange(LINE)) for line in lines for n in range(reads)]
        while work or expected:
            line, new, offset = work[0] if work else (0, False, 0)
            ctx.set(dut.offset, offset)
            ctx.set(dut.new, new)
            fires = bool(work) and ctx.get(dut.available) and self.random.random() < 0.8
            ctx.set(dut.advance, fires and new)
            if fires:
                expected[cycle + READ_CYCLES] = self.element(line, offset)
                work.pop(0)
            _, _, *element = await ctx.tick().sample(dut.data, dut.fits)
            if cycle in expected:
                assert tuple(element) == expected.pop(cycle), f"seed {self.seed}, cycle {cycle}"
            cycle += 1
        ctx.set(dut.advance, 0)


SHAPES = [(1, 2, 64, 0), (2, 4, 64, 0), (3, 2, 512, 0), (4, 8, 128, 0), (5, 2, 128, 512)]


@pytest.mark.parametrize(("seed", "lines_per_stream", "width", "port"), SHAPES)
def test_lines_are_read_in_the_order_they_were_wanted(
    seed: int, lines_per_stream: int, width: int, port: int
):
    store = Store(seed, lines_per_stream, width, index_port_bits=port)
    lines = [store.random.randrange(1 << 20) for _ in range(30)]
    requests = store.watch(
        store.dut.request.valid & store.dut.request.ready, store.dut.request.payload
    )

    async def want(ctx):
        await store.want(ctx, lines)

    async def use(ctx):
        await store.use(ctx, lines, reads=3)

    store.process(store.memory, background=True)
    store.process(want)
    store.process(use)
    store.run(5000)
    assert payloads(requests) == lines


@pytest.mark.parametrize(("seed", "lines_per_stream", "width", "port"), SHAPES)
@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_lines_of_the_queue_are_taken_unasked(
    seed: int, lines_per_stream: int, width: int, port: int, stall: float
):
    store = Store(seed, lines_per_stream, width, index_port_bits=port)
    lines = [store.random.randrange(1 << 20) for _ in range(30)]
    requests = store.watch(store.dut.request.valid)

    async def feed(ctx):
        ctx.set(store.dut.from_queue, 1)
        ctx.set(store.dut.request.ready, 1)
        await store.queue(ctx, lines, stall)

    async def want(ctx):
        await ctx.tick().repeat(40)  # the lines are there before they are wanted
        await store.want(ctx, lines)

    async def use(ctx):
        await ctx.tick()
        await store.use(ctx, lines, reads=2)

    store.process(feed)
    store.process(want)
    store.process(use)
    store.run(5000)
    assert not requests


def test_the_queue_fills_every_place_and_waits():
    store = Store(1, 4)
    dut = store.dut

    async def drive(ctx):
        ctx.set(dut.from_queue, 1)
        await ctx.tick()
        ctx.set(dut.word_valid, 1)
        for _ in range(4 * store.config.line_words):
            assert ctx.get(dut.room)
            await ctx.tick()
        ctx.set(dut.word_valid, 0)
        ctx.set(dut.new, 1)
        assert not ctx.get(dut.room)
        # The first advance makes a line current and frees nothing; the second frees it.
        ctx.set(dut.advance, 1)
        await ctx.tick()
        assert not ctx.get(dut.room)
        await ctx.tick()
        ctx.set(dut.advance, 0)
        assert ctx.get(dut.room)

    store.process(drive)
    store.run(100)


def test_lines_of_the_queue_that_nobody_read_are_not_those_of_memory():
    store = Store(1, 4)
    dut = store.dut

    async def drive(ctx):
        ctx.set(dut.from_queue, 1)
        await ctx.tick()
        ctx.set(dut.word_valid, 1)
        await ctx.tick().repeat(3 * store.config.line_words)
        ctx.set(dut.word_valid, 0)
        ctx.set(dut.new, 1)
        assert ctx.get(dut.available)
        ctx.set(dut.from_queue, 0)
        await ctx.tick().repeat(2)
        assert not ctx.get(dut.available)

    store.process(drive)
    store.run(100)


@pytest.mark.parametrize("lines_per_stream", [2, 4])
def test_no_line_is_asked_for_without_a_place(lines_per_stream: int):
    store = Store(1, lines_per_stream)
    store.process(store.memory, background=True)
    requests = store.watch(store.dut.request.valid & store.dut.request.ready)

    async def drive(ctx):
        await store.want(ctx, list(range(8)))
        await ctx.tick().repeat(100)
        assert len(requests) == lines_per_stream
        ctx.set(store.dut.new, 1)
        # The first advance makes a line current and frees nothing; the second frees it.
        for asked in (lines_per_stream, lines_per_stream + 1):
            await ctx.tick().until(store.dut.available)
            ctx.set(store.dut.advance, 1)
            await ctx.tick()
            ctx.set(store.dut.advance, 0)
            await ctx.tick().repeat(20)
            assert len(requests) == asked

    store.process(drive)
    store.run(500)


def test_the_queue_holds_all_it_says():
    store = Store(1, 2)
    store.process(store.memory, background=True)

    async def drive(ctx):
        ctx.set(store.dut.wanted_valid, 1)
        line = 0
        while ctx.get(store.dut.level) < QUEUE_LINES:  # some of them move on to places
            ctx.set(store.dut.wanted, line)
            await ctx.tick()
            line += 1
        ctx.set(store.dut.wanted_valid, 0)
        await store.use(ctx, list(range(line)), reads=1)

    store.process(drive)
    store.run(2000)


def test_a_word_is_there_the_cycle_after_it_came_and_its_line_before_all_of_it():
    store = Store(1, 2)
    dut, words = store.dut, store.words(7)
    size = LINE // len(words)

    async def drive(ctx):
        ctx.set(dut.new, 1)
        for number, word in enumerate(words[:-1]):
            ctx.set(dut.offset, number * size)
            assert not ctx.get(dut.available)
            ctx.set(dut.word_valid, 1)
            ctx.set(dut.word, word)
            await ctx.tick()
            ctx.set(dut.word_valid, 0)
            assert ctx.get(dut.available)
            ctx.set(dut.advance, ctx.get(dut.new))  # of the first word
            await ctx.tick()
            ctx.set(dut.advance, 0)
            ctx.set(dut.new, 0)
            assert not ctx.get(dut.whole)
            for offset in range(0, LINE, size):
                ctx.set(dut.offset, offset)
                assert ctx.get(dut.available) == (offset <= number * size)
        # The line after it does not come before the rest of this one.
        ctx.set(dut.new, 1)
        ctx.set(dut.offset, 0)
        assert not ctx.get(dut.available)
        ctx.set(dut.word_valid, 1)
        await ctx.tick().repeat(2)
        assert ctx.get(dut.whole)
        assert ctx.get(dut.available)

    store.process(drive)
    store.run(100)
