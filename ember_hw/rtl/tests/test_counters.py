from __future__ import annotations

import pytest

from ember_hw.registers import Counter
from ember_hw.rtl.counters import HIGH_WATER, STALLS, Counters
from ember_hw.rtl.tests.harness import CONFIG, Bench

KINDS = (Counter.ROW_BEATS, Counter.INDEX_BEATS, *STALLS, Counter.STALL_FRONT)


async def _values(ctx, dut: Counters) -> dict[Counter, int]:
    values = {}
    for counter in Counter:
        ctx.set(dut.select, counter)
        await ctx.tick()
        values[counter] = ctx.get(dut.value)
    return values


@pytest.mark.parametrize("seed", [1, 2])
def test_every_cycle_is_counted_once(seed: int):
    dut = Counters(config=CONFIG)
    bench = Bench(dut, seed=seed)
    cycles = 300
    dice = bench.random

    async def drive(ctx):
        expected = dict.fromkeys(Counter, 0)
        ctx.set(dut.start, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        ctx.set(dut.running, 1)
        for cycle in range(cycles):
            row, index = dice.random() < 0.3, dice.random() < 0.2
            stalls = [dice.random() < 0.2 for _ in STALLS]
            ctx.set(dut.row_beat, row)
            ctx.set(dut.index_beat, index)
            ctx.set(dut.stalls, sum(stall << i for i, stall in enumerate(stalls)))
            holds = dict(zip(KINDS, [row, index, *stalls, True], strict=True))
            expected[next(kind for kind in KINDS if holds[kind])] += 1
            # Nothing is delivered, asked for or waits before the second cycle of a program.
            bundle, asked = dice.random() < 0.5, dice.random() < 0.5
            length = dice.randrange(1, 1 << 16)
            levels = [dice.randrange(1 << 16) for _ in HIGH_WATER]
            if cycle:
                ctx.set(dut.bundle, bundle)
                ctx.set(dut.row, asked)
                ctx.set(dut.row_bytes, length)
                expected[Counter.BUNDLES] += bundle
                expected[Counter.ROWS] += asked
                expected[Counter.ROW_BYTES] += asked * length
                for counter, port, level in zip(HIGH_WATER, dut.levels, levels, strict=True):
                    ctx.set(port, level)
                    expected[counter] = max(expected[counter], level)
            await ctx.tick()
        expected[Counter.CYCLES] = cycles
        for port in (dut.running, dut.bundle, dut.row):
            ctx.set(port, 0)
        for port in dut.levels:
            ctx.set(port, 0)
        await ctx.tick()
        # The values stay, whatever happens outside a program.
        ctx.set(dut.row_beat, 1)
        await ctx.tick().repeat(5)
        values = await _values(ctx, dut)
        assert values == expected
        assert values[Counter.CYCLES] == sum(values[kind] for kind in KINDS)

    bench.process(drive)
    bench.run(2000)


def test_a_start_sets_them_to_0():
    dut = Counters(config=CONFIG)
    bench = Bench(dut)

    async def drive(ctx):
        ctx.set(dut.running, 1)
        for port in dut.levels:
            ctx.set(port, 9)
        await ctx.tick().repeat(10)
        for port in dut.levels:
            ctx.set(port, 0)
        ctx.set(dut.running, 0)
        await ctx.tick().repeat(2)
        assert (await _values(ctx, dut))[Counter.CYCLES] == 10
        ctx.set(dut.start, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        assert set((await _values(ctx, dut)).values()) == {0}

    bench.process(drive)
    bench.run(200)
