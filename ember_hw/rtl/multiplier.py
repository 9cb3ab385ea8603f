"""A pipelined integer multiplier that FPGA multipliers of 18 x 18 bits can hold."""

from __future__ import annotations

from amaranth.hdl import Module, Shape, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

_CHUNK_BITS = 17  # unsigned digits that fit a signed 18-bit operand


class Multiplier(wiring.Component):
    """product = a * b, or its low bits, `cycles` later; a new pair every cycle.

    The first cycle forms the partial products of 17-bit digits, each further one adds pairs of
    them: a register behind every adder.

    Parameters
    ----------
    a, b : shape-like
        Of the operands, signed or not.
    width_bits : int or None
        Low bits of the product that are wanted; None: all.
    """

    def __init__(self, *, a, b, width_bits: int | None = None):
        self.a_shape = Shape.cast(a)
        self.b_shape = Shape.cast(b)
        full = self.a_shape.width + self.b_shape.width
        if width_bits is not None and not 1 <= width_bits <= full:
            raise ValueError(f"width_bits must be from 1 to {full}, not {width_bits!r}")
        is_signed = self.a_shape.signed or self.b_shape.signed
        self.product_shape = Shape(width_bits or full, is_signed)
        super().__init__(
            {
                "a": In(self.a_shape),
                "b": In(self.b_shape),
                "product": Out(self.product_shape),
            }
        )

    @property
    def cycles(self) -> int:
        """Cycles from operands to product."""
        return 1 + (len(self._digit_pairs()) - 1).bit_length()

    def _digit_pairs(self):
        """Return the pairs of digits whose product reaches the wanted bits, lowest weight first."""
        pairs = [(i, j) for i in _digits(self.a_shape.width) for j in _digits(self.b_shape.width)]
        wanted = self.product_shape.width
        return sorted((pair for pair in pairs if sum(pair) < wanted), key=sum, reverse=True)

    def elaborate(self, platform):
        m = Module()
        terms = []
        for i, j in self._digit_pairs():
            digits = _digit(self.a, i) * _digit(self.b, j)
            width = min(len(digits), self.product_shape.width - i - j)
            shape = Shape(width, digits.shape().signed)
            term = Signal(shape, name=f"partial_{i}_{j}", reset_less=True)
            m.d.sync += term.eq(digits)
            terms.append((term, i + j))
        stage = 0
        while len(terms) > 1:
            sums = []
            for k in range(0, len(terms) - 1, 2):
                (low, low_weight), (high, high_weight) = sorted(
                    terms[k : k + 2], key=lambda term: term[1]
                )
                total = low + (high << (high_weight - low_weight))
                width = min(len(total), self.product_shape.width - low_weight)
                added = Signal(
                    Shape(width, total.shape().signed), name=f"sum{stage}_{k}", reset_less=True
                )
                m.d.sync += added.eq(total)
                sums.append((added, low_weight))
            if len(terms) % 2:
                held = Signal.like(terms[-1][0], name=f"held{stage}", reset_less=True)
                m.d.sync += held.eq(terms[-1][0])
                sums.append((held, terms[-1][1]))
            terms = sums
            stage += 1
        m.d.comb += self.product.eq(terms[0][0] << terms[0][1])
        return m


def _digits(width: int) -> range:
    """Return the weights, in bits, of an operand's digits."""
    return range(0, width, _CHUNK_BITS)


def _digit(operand: Signal, low: int):
    """Return an operand's digit; only the highest carries the sign."""
    digit = operand[low : low + _CHUNK_BITS]
    is_highest = low + _CHUNK_BITS >= len(operand)
    return digit.as_signed() if is_highest and operand.shape().signed else digit
