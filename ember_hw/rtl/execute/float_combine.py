"""Sum or maximum of two floating-point numbers in four cycles, short enough to accumulate rows."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.rtl.delay import held
from ember_hw.rtl.execute.float_format import (
    FLOAT32,
    FloatFormat,
    Unpacked,
    count_leading_zeros,
    shift_left,
    shift_right_sticky,
)

#: Bits below a significand while it is rounded: guard, round, sticky.
_EXTRA_BITS = 3


class Combine(enum.IntEnum, shape=2):
    """What `FloatCombine` makes of a and b."""

    SUM = 0
    MAXIMUM = 1
    TAKE_A = 2
    TAKE_B = 3


class FloatCombine(wiring.Component):
    """result = a + b, the larger of both, a, or b, `cycles` later; new operands every cycle.

    SUM rounds to nearest, ties to even; denormals are numbers like others. A NaN operand, or
    infinities of different signs, give the format's `quiet_nan`. x + (-x) is +0. MAXIMUM with a NaN
    operand gives `quiet_nan`; +0 is larger than -0. TAKE_A and TAKE_B keep every bit, a NaN's too.

    1. The larger magnitude goes first, or the number that is taken; the distance of the exponents.
    2. The smaller one is shifted into place, and added or subtracted; nothing where one is taken.
    3. Zeros above the result are counted, and beside that it is rounded where it stands: only
       results that need no shift to the left by more than 1 have bits to round.
    4. It is shifted to the left, or the rounded one is taken.

    Ref: IEEE 754-2019, sections 5.4.1 and 9.6; Muller et al., Handbook of Floating-Point
    Arithmetic, section 7.3.

    Parameters
    ----------
    format : FloatFormat
        Of operands and result.

    Members
    -------
    operation : in
        Of a and b.
    a, b : in
        Operands.
    result : out
        Registered.

    Attributes
    ----------
    cycles : int
        From operands to result.
    """

    cycles = 4

    def __init__(self, *, format: FloatFormat = FLOAT32):
        self.format = format
        bits = format.width_bits
        super().__init__(
            {"operation": In(Combine), "a": In(bits), "b": In(bits), "result": Out(bits)}
        )

    def elaborate(self, platform):
        m = Module()
        format = self.format
        significand_bits = format.fraction_bits + 1
        total_bits = significand_bits + _EXTRA_BITS + 1  # with the carry

        # Order.
        a, b = Unpacked(format, self.a), Unpacked(format, self.b)
        a_exponent, b_exponent = a.exponent, b.exponent
        b_is_first, a_is_less = Signal(), Signal()
        takes = Signal()
        distance_of_a = Signal(format.exponent_bits + 1)
        distance_of_b = Signal(format.exponent_bits + 1)
        distance = Signal(format.exponent_bits)
        m.d.comb += [
            takes.eq(self.operation != Combine.SUM),
            a_is_less.eq(a.magnitude < b.magnitude),
            distance_of_a.eq(a_exponent - b_exponent),
            distance_of_b.eq(b_exponent - a_exponent),
            distance.eq(Mux(distance_of_a[-1], distance_of_b, distance_of_a)),
        ]
        with m.Switch(self.operation):
            with m.Case(Combine.SUM):
                m.d.comb += b_is_first.eq(a_is_less)
            with m.Case(Combine.MAXIMUM):
                m.d.comb += b_is_first.eq(Mux(a.sign ^ b.sign, a.sign, a_is_less ^ a.sign))
            with m.Case(Combine.TAKE_B):
                m.d.comb += b_is_first.eq(1)
        shift_bits = (significand_bits + _EXTRA_BITS).bit_length()
        is_far = distance[shift_bits:].any()
        second = Mux(b_is_first, a.significand, b.significand)
        first = held(m, "first", Mux(b_is_first, b.significand, a.significand))
        small = held(m, "small", second & ~takes.replicate(significand_bits))
        shift = held(m, "shift", distance[:shift_bits] | is_far.replicate(shift_bits))
        exponent1 = held(m, "exponent1", Mux(b_is_first, b_exponent, a_exponent))
        sign1 = held(m, "sign1", Mux(b_is_first, b.sign, a.sign))
        subtracts1 = held(m, "subtracts1", (a.sign ^ b.sign) & ~takes)
        is_nan1 = held(m, "is_nan1", (a.is_nan | b.is_nan) & ~self.operation[1])
        # What overflows becomes infinite, but a NaN that is taken stays what it is.
        may_overflow1 = held(m, "may_overflow1", ~self.operation[1])

        # Align and add.
        aligned = shift_right_sticky(m, Cat(Const(0, _EXTRA_BITS), small), shift, "aligned")
        sum1 = Signal(total_bits + 1)
        # One adder: its lowest bit makes the carry that negates.
        m.d.comb += sum1.eq(
            Cat(subtracts1, Const(0, _EXTRA_BITS), first)
            + (Cat(subtracts1, aligned ^ subtracts1.replicate(len(aligned)), subtracts1))
        )
        total = held(m, "total", sum1[1:])
        exponent2 = held(m, "exponent2", exponent1)
        sign2 = held(m, "sign2", sign1)
        subtracts2 = held(m, "subtracts2", subtracts1)
        # Infinities of different signs are as far apart as equal numbers.
        is_infinite1 = exponent1.all()
        is_nan2 = held(m, "is_nan2", is_nan1 | (is_infinite1 & subtracts1 & ~shift.any()))
        is_infinite2 = held(m, "is_infinite2", is_infinite1 & may_overflow1)
        may_overflow2 = held(m, "may_overflow2", may_overflow1)

        # Count, and round as if in place. Only numbers next to each other, of which no bit was lost
        # but one, cancel so far that a shift by more than 1 is needed: what is below is zero then.
        exact2 = total[_EXTRA_BITS - 1 : -1]
        zeros = count_leading_zeros(m, exact2, "total")
        room = Signal(format.exponent_bits)
        m.d.comb += room.eq(exponent2 - 1)
        shifts = Signal(len(zeros))
        m.d.comb += shifts.eq(Mux(room < zeros, room, zeros))
        has_carry = total[-1]
        stays = total[-2] | (exponent2 == 1)
        kept = Signal(significand_bits - 1)
        rounds = Signal()
        # What the kept bits' highest adds to the exponent less two.
        weight = Signal(2)
        with m.If(has_carry):
            low = _EXTRA_BITS + 1
            tail = total[:low]
            m.d.comb += [
                kept.eq(total[low:-1]),
                rounds.eq(tail[-1] & (tail[:-1].any() | total[low])),
                weight.eq(3),
            ]
        with m.Elif(stays):
            low = _EXTRA_BITS
            tail = total[:low]
            m.d.comb += [
                kept.eq(total[low:-2]),
                rounds.eq(tail[-1] & (tail[:-1].any() | total[low])),
                weight.eq(1 + total[-2]),
            ]
        with m.Else():
            low = _EXTRA_BITS - 1
            tail = total[:low]
            m.d.comb += [
                kept.eq(total[low:-3]),
                rounds.eq(tail[-1] & (tail[:-1].any() | total[low])),
                weight.eq(total[-3]),
            ]
        lowest = Signal(format.exponent_bits)
        m.d.comb += lowest.eq(exponent2 - 2)
        magnitude = Signal(format.width_bits)
        m.d.comb += magnitude.eq(
            Cat(rounds, Const(0, format.fraction_bits), lowest) + Cat(rounds, kept, weight)
        )
        rounded = held(m, "rounded", magnitude[1:])
        shift3 = held(m, "shift3", shifts)
        # By more than 1, said without the count.
        is_shifted3 = held(m, "is_shifted3", ~total[-3:].any() & room[1:].any())
        exact3 = held(m, "exact3", exact2)
        exponent3 = held(m, "exponent3", exponent2)
        is_zero = ~has_carry & (zeros == len(exact2))
        is_positive_zero3 = held(m, "is_positive_zero3", subtracts2 & is_zero)
        sign3 = held(m, "sign3", sign2)
        is_nan3 = held(m, "is_nan3", is_nan2)
        is_infinite3 = held(m, "is_infinite3", is_infinite2)
        may_overflow3 = held(m, "may_overflow3", may_overflow2)

        # Shift to the left, which is exact, or take what was rounded.
        shifted = shift_left(m, exact3, shift3, "shifted")
        fraction = shifted[1:-1]
        is_normal = shifted[-1]
        lowered = Signal(format.exponent_bits)
        m.d.comb += lowered.eq(exponent3 - shift3)
        exact = Cat(fraction, lowered & is_normal.replicate(format.exponent_bits))
        overflows = rounded[format.fraction_bits :].all() & may_overflow3
        with m.If(is_nan3):
            m.d.sync += self.result.eq(format.quiet_nan)
        with m.Elif(is_infinite3 | (~is_shifted3 & overflows)):
            m.d.sync += self.result.eq(Cat(Const(format.infinity, format.width_bits - 1), sign3))
        with m.Else():
            m.d.sync += self.result.eq(
                Cat(Mux(is_shifted3, exact, rounded), sign3 & ~is_positive_zero3)
            )
        return m
