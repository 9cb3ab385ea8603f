from __future__ import annotations

import pytest
from amaranth.hdl import Shape, signed, unsigned

from ember_hw.rtl.multiplier import CYCLES, Multiplier
from ember_hw.rtl.tests.harness import Bench


@pytest.mark.parametrize(
    ("a_shape", "b_shape"),
    [
        (unsigned(8), unsigned(4)),
        (unsigned(17), unsigned(18)),
        (unsigned(32), unsigned(20)),
        (signed(32), unsigned(20)),
        (signed(32), signed(32)),
        (signed(18), signed(17)),
    ],
    ids=str,
)
def test_products_are_exact(a_shape: Shape, b_shape: Shape):
    dut = Multiplier(a=a_shape, b=b_shape)
    bench = Bench(dut, seed=1)

    def operands(shape: Shape) -> list[int]:
        least = -(1 << shape.width - 1) if shape.signed else 0
        most = least + (1 << shape.width) - 1
        corners = [least, least + 1, 0, 1, most - 1, most]
        return corners + [bench.random.randint(least, most) for _ in range(8)]

    pairs = [(a, b) for a in operands(a_shape) for b in operands(b_shape)]
    products = []

    async def drive(ctx):
        # A new pair every cycle; the product shows CYCLES later.
        for a, b in pairs + [(0, 0)] * CYCLES:
            ctx.set(dut.a, a)
            ctx.set(dut.b, b)
            _, _, product = await ctx.tick().sample(dut.product)
            products.append(product)

    bench.process(drive)
    bench.run(1000)
    assert products[CYCLES:] == [a * b for a, b in pairs]
