from __future__ import annotations

import numpy as np
import pytest

from ember_hw.rtl.execute.float_format import BFLOAT16, FLOAT16, FLOAT32
from ember_hw.rtl.execute.row_scale import RowScale
from ember_hw.rtl.execute.tests.reduce_cases import any_numbers
from ember_hw.rtl.tests.harness import Bench, refuses

LANES = 2


def _products(numbers, weight):
    with np.errstate(all="ignore"):
        products = numbers * np.array(weight, np.uint32).view(np.float32)
    bits = products.view(np.uint32).copy()
    bits[np.isnan(products)] = 0x7FC00000
    return bits.tolist()


def test_lanes_are_counted_from_one():
    with refuses("lanes must be at least 1, not 0"):
        RowScale(lanes=0, control=8)


def test_numbers_have_the_exponents_of_fp32():
    with refuses("source must have the exponents of fp32, not be fp16"):
        RowScale(lanes=1, control=8, source=FLOAT16)


@pytest.mark.parametrize("source", [FLOAT32, BFLOAT16])
def test_products_come_in_order_and_those_with_denormals_later(source):
    dut = RowScale(lanes=LANES, control=8, source=source)
    bench = Bench(dut, seed=3)
    random = np.random.default_rng(3)
    rows = any_numbers(random, (60, LANES), 0.05)
    rows.view(np.uint32)[...] &= -1 << (32 - source.width_bits) & 0xFFFF_FFFF
    weights = any_numbers(random, 60, 0.05).view(np.uint32)
    # Plain numbers first, so that the cycles of a beat are known.
    rows[:8], weights[:8] = 1.5, 0x3F400000
    launched, numbers, taken = [], [], []

    async def send(ctx):
        for beat, (row, weight) in enumerate(zip(rows, weights, strict=True)):
            narrow = row if source is FLOAT32 else row.view(np.uint16)[1::2]
            ctx.set(dut.numbers, int.from_bytes(narrow.tobytes(), "little"))
            ctx.set(dut.weight, int(weight))
            ctx.set(dut.scaled, 1)
            ctx.set(dut.control, beat)
            while not ctx.get(dut.room):
                await ctx.tick()
            ctx.set(dut.take, 1)
            await ctx.tick()
            ctx.set(dut.take, 0)
        while ctx.get(dut.busy):
            await ctx.tick()
        await ctx.tick().repeat(2)

    async def watch(ctx):
        cycle, follows = 0, False
        while True:
            _, _, take, launch, beat, data = await ctx.tick().sample(
                dut.take, dut.launch, dut.launched, dut.scaled_numbers
            )
            taken.extend([cycle] * take)
            if follows:
                text = data.to_bytes(4 * LANES, "little")
                numbers.append(np.frombuffer(text, np.uint32).tolist())
            if launch:
                launched.append((cycle, beat))
            follows = launch
            cycle += 1

    bench.process(send)
    bench.process(watch, background=True)
    bench.run(2000)
    assert [beat for _, beat in launched] == list(range(60))
    assert {cycle - taken[beat] for cycle, beat in launched[:8]} == {dut.scaled_cycles}
    assert numbers == [_products(row, weight) for row, weight in zip(rows, weights, strict=True)]
    assert taken[-1] - taken[0] > 59  # some have turned
