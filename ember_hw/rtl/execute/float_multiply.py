"""Multiplication of two floating-point numbers, pipelined over 18 x 18 bit multipliers."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ember_hw.rtl.delay import held
from ember_hw.rtl.execute.float_format import (
    FLOAT32,
    FloatFormat,
    Unpacked,
    count_leading_zeros,
    shift_right_sticky,
)
from ember_hw.rtl.multiplier import Multiplier


class FloatMultiply(wiring.Component):
    """product = a * b, `cycles` later; a new pair every cycle.

    Rounds to nearest, ties to even; denormals are numbers like others. A NaN operand, or zero times
    infinity, gives the format's `quiet_nan`.

    1. Zeros above the significands, which only denormals have, are counted.
    2. They are shifted out; the exponent of the product.
    3. to 5. The product of the significands.
    6. It is shifted to the right where its exponent is below the least one.
    7. It is rounded.

    Ref: IEEE 754-2019, section 5.4.1.

    Parameters
    ----------
    format : FloatFormat
        Of operands and product.

    Members
    -------
    a, b : in
        Operands.
    product : out
        Their product, registered.

    Attributes
    ----------
    cycles : int
        From operands to product.
    """

    def __init__(self, *, format: FloatFormat = FLOAT32):
        self.format = format
        bits = format.width_bits
        significand_bits = format.fraction_bits + 1
        self._multiplier = Multiplier(a=significand_bits, b=significand_bits)
        self.cycles = self._multiplier.cycles + 4
        super().__init__({"a": In(bits), "b": In(bits), "product": Out(bits)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.multiplier = multiplier = self._multiplier
        format = self.format
        significand_bits = format.fraction_bits + 1
        # Signed, for the sum of two exponents less the bias and the zeros of both significands.
        exponent_bits = format.exponent_bits + 3

        def later(name: str, value: Value, cycles: int = 1) -> Value:
            """Return a value some cycles later."""
            for cycle in range(cycles):
                value = held(m, f"{name}_{cycle}", value)
            return value

        # Zeros above the significands.
        a, b = Unpacked(format, self.a), Unpacked(format, self.b)
        a_is_zero, b_is_zero = ~a.magnitude.any(), ~b.magnitude.any()
        is_nan = a.is_nan | b.is_nan | (a.is_infinite & b_is_zero) | (b.is_infinite & a_is_zero)
        rest = self.cycles - 1  # the last cycle reads these
        sign = later("sign", a.sign ^ b.sign, rest)
        nan = later("is_nan", is_nan, rest)
        infinite = later("is_infinite", a.is_infinite | b.is_infinite, rest)
        zero = later("is_zero", a_is_zero | b_is_zero, rest)
        a_zeros = later("a_zeros", count_leading_zeros(m, a.significand, "a"))
        b_zeros = later("b_zeros", count_leading_zeros(m, b.significand, "b"))
        a_significand = later("a_significand", a.significand)
        b_significand = later("b_significand", b.significand)
        exponents = Signal(format.exponent_bits + 1, reset_less=True)
        m.d.sync += exponents.eq(a.exponent + b.exponent)

        # Without them; stored exponent of a product below 2, less one.
        m.d.sync += [
            multiplier.a.eq((a_significand << a_zeros)[:significand_bits]),
            multiplier.b.eq((b_significand << b_zeros)[:significand_bits]),
        ]
        weight = Signal(signed(exponent_bits), reset_less=True)
        m.d.sync += weight.eq(exponents - (a_zeros + b_zeros + (format.bias + 1)))

        # The product; beside it, how far it must be shifted down and what exponent stays.
        product = multiplier.product
        early = later("early", weight, multiplier.cycles - 1)
        shifts, weights = [], []
        for carry in (0, 1):
            actual = Signal(signed(exponent_bits), name=f"actual{carry}")
            m.d.comb += actual.eq(early + carry)
            is_low = actual[-1]
            below = Signal(exponent_bits, name=f"below{carry}")
            m.d.comb += below.eq(-actual)
            shift_bits = (significand_bits + 2).bit_length()
            is_far = below[shift_bits:].any()
            shift = (below[:shift_bits] | is_far.replicate(shift_bits)) & is_low.replicate(
                shift_bits
            )
            shifts.append(later(f"shift{carry}", shift))
            weights.append(
                later(f"weight{carry}", actual[:-1] & ~is_low.replicate(exponent_bits - 1))
            )

        # Shift down: significand, guard and sticky bit.
        has_carry = product[-1]
        low = significand_bits - 2
        window = Mux(
            has_carry,
            Cat(product[: low + 1].any(), product[low + 1 :]),
            Cat(product[:low].any(), product[low:-1]),
        )
        shifted = later(
            "shifted",
            shift_right_sticky(m, window, Mux(has_carry, shifts[1], shifts[0]), "lowered"),
        )
        weight6 = later("weight6", Mux(has_carry, weights[1], weights[0]))

        # Round.
        kept, guard, sticky = shifted[2:], shifted[1], shifted[0]
        rounds = guard & (sticky | kept[0])
        magnitude = Signal(format.fraction_bits + exponent_bits)
        m.d.comb += magnitude.eq(Cat(Const(0, format.fraction_bits), weight6) + kept + rounds)
        overflows = magnitude[format.fraction_bits :] >= format.special_exponent
        with m.If(nan):
            m.d.sync += self.product.eq(format.quiet_nan)
        with m.Elif(zero):
            m.d.sync += self.product.eq(Cat(Const(0, format.width_bits - 1), sign))
        with m.Elif(infinite | overflows):
            m.d.sync += self.product.eq(Cat(Const(format.infinity, format.width_bits - 1), sign))
        with m.Else():
            m.d.sync += self.product.eq(Cat(magnitude[: format.width_bits - 1], sign))
        return m
