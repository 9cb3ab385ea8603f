from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from ember_hw.registers import FaultCode
from ember_hw.rtl.axi import Response
from ember_hw.rtl.line_store import QUEUE_LINES, READ_CYCLES, LineStore
from ember_hw.rtl.tests.harness import CONFIG, Bench, payloads, stamp

LINE = 64


@dataclass
class Store(Bench):
    """A line store, and a memory that answers its lines whole, in order."""

    seed: int = 0
    lines_per_stream: int = 2
    data_width_bits: int = 64
    latency: int = 4
    errors: dict[tuple[int, int], Response] = field(default_factory=dict)

    def __post_init__(self):
        self.config = CONFIG.with_changes(
            lines_per_stream=self.lines_per_stream, data_width_bits=self.data_width_bits
        )
        super().__init__(LineStore(config=self.config, level=1, index=0), seed=self.seed)
        self.process(self._memory, background=True)

    async def _memory(self, ctx):
        dut, bus = self.dut, self.config.bus_bytes
        cycle, due = 0, []
        while True:
            takes = self.random.random() < 0.7
            ctx.set(dut.request.ready, takes)
            ctx.set(dut.beat_valid, 0)
            if due and due[0][0] <= cycle and self.random.random() < 0.8:
                _, line, beat = due.pop(0)
                ctx.set(dut.beat_valid, 1)
                data = stamp(line * LINE + beat * bus, bus)
                ctx.set(dut.beat_data, int.from_bytes(data, "little"))
                ctx.set(dut.beat_last, beat == LINE // bus - 1)
                ctx.set(dut.beat_response, self.errors.get((line, beat), Response.OKAY))
            _, _, valid, line = await ctx.tick().sample(dut.request.valid, dut.request.payload)
            if valid and takes:
                due += [(cycle + self.latency, line, beat) for beat in range(LINE // bus)]
            cycle += 1

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
        dut, bus = self.dut, self.config.bus_bytes
        expected: dict[int, int] = {}
        cycle = 0
        work = [(line, n == 0) for line in lines for n in range(reads)]
        while work or expected:
            line, new = work[0] if work else (0, False)
            fires = (
                bool(work) and (not new or ctx.get(dut.available)) and self.random.random() < 0.8
            )
            ctx.set(dut.advance, fires and new)
            if fires:
                offset = self.random.randrange(LINE)
                ctx.set(dut.offset, offset)
                beat = line * LINE + offset - offset % bus
                expected[cycle + READ_CYCLES] = int.from_bytes(stamp(beat, bus), "little")
                work.pop(0)
            _, _, data = await ctx.tick().sample(dut.data)
            if cycle in expected:
                assert data == expected.pop(cycle), f"seed {self.seed}, cycle {cycle}"
            cycle += 1
        ctx.set(dut.advance, 0)


@pytest.mark.parametrize(
    ("seed", "lines_per_stream", "width"), [(1, 2, 64), (2, 4, 64), (3, 2, 512), (4, 8, 128)]
)
def test_lines_are_read_in_the_order_they_were_wanted(seed: int, lines_per_stream: int, width: int):
    store = Store(seed, lines_per_stream, width)
    lines = [store.random.randrange(1 << 20) for _ in range(30)]
    requests = store.watch(
        store.dut.request.valid & store.dut.request.ready, store.dut.request.payload
    )

    async def want(ctx):
        await store.want(ctx, lines)

    async def use(ctx):
        await store.use(ctx, lines, reads=3)

    store.process(want)
    store.process(use)
    store.run(5000)
    assert payloads(requests) == lines


@pytest.mark.parametrize("lines_per_stream", [2, 4])
def test_no_line_is_asked_for_without_a_place(lines_per_stream: int):
    store = Store(1, lines_per_stream)
    requests = store.watch(store.dut.request.valid & store.dut.request.ready)

    async def drive(ctx):
        await store.want(ctx, list(range(8)))
        await ctx.tick().repeat(100)
        assert len(requests) == lines_per_stream
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

    async def drive(ctx):
        ctx.set(store.dut.wanted_valid, 1)
        for line in range(QUEUE_LINES + 2):  # two of them move on to places
            ctx.set(store.dut.wanted, line)
            if ctx.get(store.dut.level) == QUEUE_LINES:
                break
            await ctx.tick()
        ctx.set(store.dut.wanted_valid, 0)
        await store.use(ctx, list(range(QUEUE_LINES)), reads=1)

    store.process(drive)
    store.run(2000)


@pytest.mark.parametrize(
    ("response", "code"),
    [
        (Response.SLAVE_ERROR, FaultCode.READ_SLAVE_ERROR),
        (Response.DECODE_ERROR, FaultCode.READ_DECODE_ERROR),
    ],
)
@pytest.mark.parametrize("beat", [0, 3, 7])
def test_an_error_of_any_beat_names_its_line(response: Response, code: FaultCode, beat: int):
    lines = [5, 9, 0x3_FFFF, 12]
    store = Store(2, 2, errors={(0x3_FFFF, beat): response})
    faults = store.watch(store.dut.fault.valid, store.dut.fault.payload)

    async def want(ctx):
        await store.want(ctx, lines)

    async def use(ctx):
        await store.use(ctx, lines, reads=1)

    store.process(want)
    store.process(use)
    store.run(1000)
    expected = {"code": code, "unit": 1, "stream": 0, "address": 0x3_FFFF * LINE}
    assert payloads(faults) == [expected]
