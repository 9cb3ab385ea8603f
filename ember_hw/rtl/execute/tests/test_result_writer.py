from __future__ import annotations

import pytest

from ember_hw.config import AcceleratorConfig
from ember_hw.rtl.axi import Response
from ember_hw.rtl.execute.result_writer import ResultWriter
from ember_hw.rtl.tests.harness import Bench, stamp
from ember_hw.rtl.tests.write_memory import WriteMemory

CONFIG = AcceleratorConfig.preset("small").with_changes(execute="reduce", results="memory")
BUS = CONFIG.bus_bytes
BASE = 0x7_0F00


class _Writer(Bench):
    """A writer that is fed the results of some requests, each so many whole beats."""

    def __init__(self, requests, *, seed=0, stall=0.0, **memory):
        self.writer = writer = ResultWriter(config=CONFIG)
        super().__init__(writer, seed=seed)
        self.requests, self.stall = requests, stall
        self.memory = WriteMemory(self, BUS, stall=stall, **memory)
        self.ended: list[tuple[int, int]] = []  # cycle, bursts that memory has answered
        self.faults = self.watch(writer.memory_fault.valid, writer.memory_fault.payload)
        self.process(self.memory.serve(writer.axi), background=True)
        self.process(self._watch_ends, background=True)
        self.process(self._feed)

    async def _watch_ends(self, ctx):
        cycle = 0
        while True:
            _, _, ended = await ctx.tick().sample(self.writer.ended)
            if ended:
                answered = len(self.memory.bursts) - len(self.memory.owed)
                self.ended.append((cycle, answered))
            cycle += 1

    async def _feed(self, ctx):
        writer = self.writer
        ctx.set(writer.region, {"base": BASE, "region_bytes": 1 << 16})
        ctx.set(writer.restart, 1)
        await ctx.tick()
        ctx.set(writer.restart, 0)
        number = 0
        for beats in self.requests:
            for beat in range(beats):
                while self.random.random() < self.stall:
                    await ctx.tick()
                data = int.from_bytes(stamp(BASE + number * BUS, BUS), "little")
                payload = {"data": data, "bytes": BUS, "last": int(beat == beats - 1)}
                ctx.set(writer.result.payload, payload)
                ctx.set(writer.result.valid, 1)
                await ctx.tick().until(writer.result.ready)
                ctx.set(writer.result.valid, 0)
                number += 1
            ctx.set(writer.left, 1)
            await ctx.tick()
            ctx.set(writer.left, 0)
        while len(self.ended) < len(self.requests):
            await ctx.tick()


@pytest.mark.parametrize("latency", [1, 100, 220])
def test_a_beat_a_cycle_whatever_the_latency(latency):
    bench = _Writer([600], latency=(latency, latency))
    bench.run(2000)
    cycles = bench.memory.beat_cycles
    assert len(cycles) == 600
    # The last burst of all is not full.
    assert cycles[-1] - cycles[0] <= 600 + 16
    assert bench.memory.read(BASE, 600 * BUS) == stamp(BASE, 600 * BUS)
    assert max(beats for _, beats in bench.memory.bursts) == 16


@pytest.mark.parametrize("seed", range(3))
def test_a_request_has_ended_when_its_writes_are_answered(seed):
    requests = [3, 0, 17, 1, 1, 40, 0]
    bench = _Writer(requests, seed=seed, stall=0.3, latency=(1, 60))
    bench.run(4000)
    written = [address // BUS + beats for address, beats in bench.memory.bursts]
    due = 0
    for beats, (_, answered) in zip(requests, bench.ended, strict=True):
        due += beats
        assert due == 0 or written[answered - 1] >= BASE // BUS + due


def test_no_end_before_the_fault_of_the_last_write():
    bench = _Writer([5], errors={BASE: Response.SLAVE_ERROR.value})
    bench.run(200)
    assert len(bench.faults) == 1
    # `Control` sees a fault a cycle later, and then no end counts.
    assert bench.ended[0][0] > bench.faults[0].cycle
