"""Conversions between number formats, in one or two cycles."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ember_hw.rtl.execute.float_format import (
    FLOAT32,
    FloatFormat,
    Unpacked,
    count_leading_zeros,
    shift_right_sticky,
)


class FloatWiden(wiring.Component):
    """wide = number, exactly, two cycles later; a new number every cycle.

    A NaN gives the wide format's `quiet_nan`.

    Parameters
    ----------
    source : FloatFormat
        Of the number, its fields no wider than those of `target`.
    target : FloatFormat
        Of the result.

    Members
    -------
    number : in
        In the source's format.
    wide : out
        In the target's, registered.

    Attributes
    ----------
    cycles : int
        From number to wide.

    Raises
    ------
    ValueError
        `source` has numbers that `target` can't hold.
    """

    cycles = 2

    def __init__(self, *, source: FloatFormat, target: FloatFormat = FLOAT32):
        if source.exponent_bits > target.exponent_bits or (
            source.fraction_bits > target.fraction_bits
        ):
            raise ValueError(
                f"source must be a format that {target.name} holds exactly, not {source.name}"
            )
        self.source = source
        self.target = target
        super().__init__({"number": In(source.width_bits), "wide": Out(target.width_bits)})

    def elaborate(self, platform):
        m = Module()
        source, target = self.source, self.target
        number = Unpacked(source, self.number)
        zeros = Signal(range(source.fraction_bits + 2), reset_less=True)
        fields = Signal(source.layout, reset_less=True)
        m.d.sync += [
            zeros.eq(count_leading_zeros(m, number.significand, "number")),
            fields.eq(self.number),
        ]
        held = Unpacked(source, fields.as_value())
        extra_bits = target.fraction_bits - source.fraction_bits
        fraction, exponent = Signal(target.fraction_bits), Signal(target.exponent_bits)
        if source.exponent_bits == target.exponent_bits:
            m.d.comb += [
                fraction.eq(Cat(Const(0, extra_bits), fields.fraction)),
                exponent.eq(fields.exponent),
            ]
        else:
            shifted = (held.significand << zeros)[: source.fraction_bits]
            m.d.comb += fraction.eq(Cat(Const(0, extra_bits), shifted))
            with m.If(held.magnitude.any()):
                m.d.comb += exponent.eq(held.exponent - zeros + (target.bias - source.bias))
        with m.If(held.is_nan):
            m.d.sync += self.wide.eq(target.quiet_nan)
        with m.Elif(held.is_infinite):
            m.d.sync += self.wide.eq(Cat(Const(target.infinity, target.width_bits - 1), held.sign))
        with m.Else():
            m.d.sync += self.wide.eq(Cat(fraction, exponent, held.sign))
        return m


class FloatNarrow(wiring.Component):
    """narrow = number, two cycles later; a new number every cycle.

    Rounds to nearest, ties to even; what is too large becomes infinity, what is too small a
    denormal or zero. A NaN gives the narrow format's `quiet_nan`.

    Parameters
    ----------
    source : FloatFormat
        Of the number.
    target : FloatFormat
        Of the result: at least two fraction bits fewer.

    Members
    -------
    number : in
        In the source's format.
    narrow : out
        In the target's, registered.

    Attributes
    ----------
    cycles : int
        From number to narrow.

    Raises
    ------
    ValueError
        `target` isn't narrower than `source`.
    """

    cycles = 2

    def __init__(self, *, source: FloatFormat = FLOAT32, target: FloatFormat):
        if target.exponent_bits > source.exponent_bits or (
            target.fraction_bits > source.fraction_bits - 2
        ):
            raise ValueError(f"target must be narrower than {source.name}, not {target.name}")
        self.source = source
        self.target = target
        super().__init__({"number": In(source.width_bits), "narrow": Out(target.width_bits)})

    def elaborate(self, platform):
        m = Module()
        source, target = self.source, self.target
        number = Unpacked(source, self.number)
        rebias = source.bias - target.bias

        # Exponent, and how far the significand goes down where that is below the least one.
        low_bits = source.fraction_bits - target.fraction_bits - 1
        window = Cat(number.significand[:low_bits].any(), number.significand[low_bits:])
        shift_bits = (target.fraction_bits + 2).bit_length()
        below = Signal(source.exponent_bits + 1)
        is_low = Signal()
        m.d.comb += [
            below.eq(rebias + 1 - number.exponent),
            is_low.eq(number.exponent < rebias + 1),
        ]
        is_far = below[shift_bits:].any()
        shift = (below[:shift_bits] | is_far.replicate(shift_bits)) & is_low.replicate(shift_bits)
        significand = Signal(len(window), reset_less=True)
        weight = Signal(source.exponent_bits, reset_less=True)  # stored exponent, less one
        sign, is_nan, is_infinite = Signal(), Signal(), Signal()
        m.d.sync += [
            significand.eq(shift_right_sticky(m, window, shift, "lowered")),
            weight.eq(Mux(is_low, 0, number.exponent - (rebias + 1))),
            sign.eq(number.sign),
            is_nan.eq(number.is_nan),
            is_infinite.eq(number.is_infinite),
        ]

        # Round.
        kept, guard, sticky = significand[2:], significand[1], significand[0]
        magnitude = Signal(target.fraction_bits + source.exponent_bits + 1)
        m.d.comb += magnitude.eq(
            Cat(Const(0, target.fraction_bits), weight) + kept + (guard & (sticky | kept[0]))
        )
        overflows = magnitude[target.fraction_bits :] >= target.special_exponent
        with m.If(is_nan):
            m.d.sync += self.narrow.eq(target.quiet_nan)
        with m.Elif(is_infinite | overflows):
            m.d.sync += self.narrow.eq(Cat(Const(target.infinity, target.width_bits - 1), sign))
        with m.Else():
            m.d.sync += self.narrow.eq(Cat(magnitude[: target.width_bits - 1], sign))
        return m


class FloatFromInteger(wiring.Component):
    """number = integer, exactly, two cycles later; a new integer every cycle.

    Parameters
    ----------
    integer : shape-like
        Of the integer, signed or not: at most one bit more than the format's fraction.
    format : FloatFormat
        Of the number.

    Members
    -------
    integer : in
        An integer.
    number : out
        Registered.

    Attributes
    ----------
    cycles : int
        From integer to number.

    Raises
    ------
    ValueError
        The format doesn't hold every integer of that width.
    """

    cycles = 2

    def __init__(self, *, integer=signed(8), format: FloatFormat = FLOAT32):
        self.integer_shape = Shape.cast(integer)
        self.format = format
        width_bits = self.integer_shape.width
        if not 1 <= width_bits <= format.fraction_bits + 1:
            raise ValueError(
                f"width of integer must be from 1 to {format.fraction_bits + 1} bits, "
                f"not {width_bits!r}"
            )
        super().__init__({"integer": In(self.integer_shape), "number": Out(format.width_bits)})

    def elaborate(self, platform):
        m = Module()
        format, bits = self.format, self.integer_shape.width
        sign, magnitude, zeros = Signal(), Signal(bits), Signal(range(bits + 1))
        absolute = Signal(bits)
        is_negative = self.integer[-1] if self.integer_shape.signed else Const(0)
        m.d.comb += absolute.eq(abs(self.integer))
        m.d.sync += [
            sign.eq(is_negative),
            magnitude.eq(absolute),
            zeros.eq(count_leading_zeros(m, absolute, "absolute")),
        ]
        shifted = Signal(bits)
        m.d.comb += shifted.eq(magnitude << zeros)
        fraction = Cat(Const(0, format.fraction_bits - (bits - 1)), shifted[:-1])
        exponent = Signal(format.exponent_bits)
        with m.If(magnitude.any()):
            m.d.comb += exponent.eq(format.bias + bits - 1 - zeros)
        m.d.sync += self.number.eq(Cat(fraction, exponent, sign))
        return m
