from __future__ import annotations

import pytest
from amaranth.hdl import Shape, signed, unsigned

from ember_hw.rtl.multiplier import Multiplier
from ember_hw.rtl.tests.harness import Bench, refuses


@pytest.mark.parametrize("width_bits", [0, 41])
def test_a_width_beyond_the_product_is_refused(width_bits: int):
    with refuses(f"width_bits must be from 1 to 40, not {width_bits}"):
        Multiplier(a=signed(32), b=8, width_bits=width_bits)


@pytest.mark.parametrize(
    ("a_shape", "b_shape", "width_bits", "cycles"),
    [
        (unsigned(8), unsigned(4), None, 1),
        (unsigned(17), unsigned(17), None, 1),
        (unsigned(17), unsigned(18), None, 2),
        (unsigned(32), unsigned(17), None, 2),
        (signed(32), unsigned(17), None, 2),
        (signed(32), signed(32), None, 3),
        (signed(18), signed(17), None, 2),
        (signed(32), signed(32), 32, 3),
        (unsigned(32), unsigned(32), 40, 3),
        (signed(32), unsigned(17), 33, 2),
        (signed(32), signed(32), 17, 1),
        (signed(52), unsigned(20), None, 4),
    ],
    ids=str,
)
def test_products_or_their_low_bits_are_exact(
    a_shape: Shape, b_shape: Shape, width_bits: int | None, cycles: int
):
    dut = Multiplier(a=a_shape, b=b_shape, width_bits=width_bits)
    assert dut.cycles == cycles
    bench = Bench(dut, seed=1)

    def operands(shape: Shape) -> list[int]:
        least = -(1 << shape.width - 1) if shape.signed else 0
        most = least + (1 << shape.width) - 1
        corners = [least, least + 1, 0, 1, most - 1, most]
        return corners + [bench.random.randint(least, most) for _ in range(8)]

    pairs = [(a, b) for a in operands(a_shape) for b in operands(b_shape)]
    products = []

    async def drive(ctx):
        # A new pair every cycle; the product shows later.
        for a, b in pairs + [(0, 0)] * dut.cycles:
            ctx.set(dut.a, a)
            ctx.set(dut.b, b)
            _, _, product = await ctx.tick().sample(dut.product)
            products.append(product)

    bench.process(drive)
    bench.run(1000)
    mask = (1 << (width_bits or a_shape.width + b_shape.width)) - 1
    assert [product & mask for product in products[dut.cycles :]] == [
        a * b & mask for a, b in pairs
    ]
