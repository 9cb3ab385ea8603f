from __future__ import annotations

import pytest

from ember_hw.config import AcceleratorConfig
from ember_hw.registers import NO_UNIT, FaultCode
from ember_hw.rtl.execute.result_bursts import ResultBursts
from ember_hw.rtl.tests.harness import CONFIG, Bench, gaps, payloads
from ember_hw.rtl.write_port import write_beats

BUS = CONFIG.bus_bytes
LONGEST = write_beats(CONFIG)


def _beats(sizes) -> list[dict[str, int]]:
    return [{"data": 7 * n + 1, "bytes": size, "last": n % 2} for n, size in enumerate(sizes)]


class _Bursts(Bench):
    """A block that is restarted at a region, and flushed after some beats."""

    def __init__(self, base, region_bytes, groups, *, seed=0, stall=0.0, config=CONFIG):
        self.block = ResultBursts(config=config)
        super().__init__(self.block, seed=seed)
        self.groups, self.stall = groups, stall
        self.region = {"base": base, "region_bytes": region_bytes}
        self.taken = 0
        block = self.block
        forever = {"stall": stall, "forever": True}
        self.bursts = self.receive(block.burst, 0, **forever)
        self.beats = self.receive(block.burst_beat, 0, **forever)
        self.faults = self.watch(block.fault.valid, block.fault.payload)
        self.process(self._feed)

    async def _feed(self, ctx):
        block = self.block
        ctx.set(block.region, self.region)
        ctx.set(block.restart, 1)
        await ctx.tick()
        ctx.set(block.restart, 0)
        for group in self.groups:
            for beat in group:
                while self.random.random() < self.stall:
                    await ctx.tick()
                ctx.set(block.beat.payload, beat)
                ctx.set(block.beat.valid, 1)
                ready, waited = False, 0
                while not ready and waited < 100:
                    _, _, ready = await ctx.tick().sample(block.beat.ready)
                    waited += 1
                ctx.set(block.beat.valid, 0)
                self.taken += ready
            ctx.set(block.flush, 1)
            flushed = False
            while not flushed:
                _, _, flushed = await ctx.tick().sample(block.flushed)
            ctx.set(block.flush, 0)
        await ctx.tick().repeat(200)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("base", [0, 0xFC0 - 3 * BUS, 0x12340 + BUS])
def test_bursts_are_the_beats_in_order_and_cut_where_they_must(seed, base):
    counts = [3, 1, 40, 0, 8, 16, 7]
    groups = [_beats([BUS] * count) for count in counts]
    bench = _Bursts(base, 4096, groups, seed=seed, stall=0.3)
    bench.run(2000)
    expected, beat, total = [], base // BUS, 0
    for count in counts:
        total += count
        while beat < base // BUS + total:
            end = min(beat + LONGEST - beat % LONGEST, base // BUS + total)
            expected.append({"address": beat * BUS, "length": end - beat - 1})
            beat = end
    assert payloads(bench.bursts) == expected
    assert payloads(bench.beats) == [beat for group in groups for beat in group]
    assert bench.faults == []


def test_a_beat_a_cycle():
    bench = _Bursts(0x40, 1 << 16, [_beats([BUS] * 100)])
    bench.run(2000)
    assert gaps(bench.beats) == {1}


@pytest.mark.parametrize(
    ("region_bytes", "sizes", "taken"),
    [
        (0, [4], 0),
        (3 * BUS, [BUS] * 4, 3),
        (3 * BUS - 4, [BUS] * 3, 2),
        (3 * BUS - 4, [BUS, BUS, 4, 4], 3),
        (3 * BUS + 4, [BUS, BUS, BUS, 4, 4], 4),
        (3 * BUS + 4, [4, 4, 4, BUS], 3),
        (4, [4], 1),
        (4, [8], 0),
    ],
)
def test_no_beat_beyond_the_region_is_taken(region_bytes, sizes, taken):
    base = 0x1000 - BUS
    bench = _Bursts(base, region_bytes, [_beats(sizes)])
    bench.run(2000)
    assert bench.taken == taken
    written = sum(burst["length"] + 1 for burst in payloads(bench.bursts))
    assert written == taken
    misfits = [] if taken == len(sizes) else [base + taken * BUS]
    assert payloads(bench.faults)[:1] == [
        {
            "code": FaultCode.RESULT_OUT_OF_BOUNDS,
            "unit": NO_UNIT,
            "stream": 0,
            "address": address,
        }
        for address in misfits
    ]


def test_bursts_of_one_beat():
    config = AcceleratorConfig(data_width_bits=64, max_burst_beats=1)
    bench = _Bursts(8, 4096, [_beats([8] * 5), _beats([4])], config=config)
    bench.run(2000)
    assert payloads(bench.bursts) == [{"address": 8 * n, "length": 0} for n in range(1, 7)]
