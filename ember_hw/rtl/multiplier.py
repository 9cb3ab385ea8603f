"""A pipelined integer multiplier that FPGA multipliers of 18 x 18 bits can hold."""

from __future__ import annotations

from amaranth.hdl import Module, Shape, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

#: Cycles from operands to product.
CYCLES = 2

_CHUNK_BITS = 17  # unsigned digits that fit a signed 18-bit operand


class Multiplier(wiring.Component):
    """product = a * b, exact, `CYCLES` later; a new pair every cycle.

    The first cycle forms the partial products of 17-bit digits, the second adds them.

    Parameters
    ----------
    a, b : shape-like
        Of the operands, signed or not.
    """

    def __init__(self, *, a, b):
        self.a_shape = Shape.cast(a)
        self.b_shape = Shape.cast(b)
        signed_result = self.a_shape.signed or self.b_shape.signed
        self.product_shape = Shape(self.a_shape.width + self.b_shape.width, signed_result)
        super().__init__(
            {
                "a": In(self.a_shape),
                "b": In(self.b_shape),
                "product": Out(self.product_shape),
            }
        )

    def elaborate(self, platform):
        m = Module()
        total = 0
        for i, (a_digit, a_weight) in enumerate(_digits(self.a)):
            for j, (b_digit, b_weight) in enumerate(_digits(self.b)):
                partial = a_digit * b_digit
                held = Signal(partial.shape(), name=f"partial_{i}_{j}")
                m.d.sync += held.eq(partial)
                total = total + (held << (a_weight + b_weight))
        m.d.sync += self.product.eq(total)
        return m


def _digits(operand: Signal):
    """Yield an operand's digits with their weight in bits; only the highest carries the sign."""
    width = len(operand)
    for low in range(0, width, _CHUNK_BITS):
        digit = operand[low : low + _CHUNK_BITS]
        is_highest = low + _CHUNK_BITS >= width
        if is_highest and operand.shape().signed:
            digit = digit.as_signed()
        yield digit, low
