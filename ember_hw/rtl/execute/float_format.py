"""IEEE 754 binary formats: their fields, and what arithmetic needs to know of a number."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Mux, Signal, Value
from amaranth.lib import data


@dataclass(frozen=True)
class FloatFormat:
    """A binary interchange format, or one made like them. Ref: IEEE 754-2019, section 3.4.

    Parameters
    ----------
    name : str
        What messages and tests call it.
    exponent_bits, fraction_bits : int
        Width of the fields below the sign.

    Examples
    --------
    >>> FLOAT32.width_bits, FLOAT32.bias, hex(FLOAT32.quiet_nan)
    (32, 127, '0x7fc00000')
    """

    name: str
    exponent_bits: int
    fraction_bits: int

    @property
    def width_bits(self) -> int:
        """Bits of a number."""
        return 1 + self.exponent_bits + self.fraction_bits

    @property
    def bias(self) -> int:
        """What a stored exponent is more than the true one."""
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def special_exponent(self) -> int:
        """Stored exponent of infinities and NaN: all ones."""
        return (1 << self.exponent_bits) - 1

    @property
    def infinity(self) -> int:
        """Bits of positive infinity."""
        return self.special_exponent << self.fraction_bits

    @property
    def quiet_nan(self) -> int:
        """Bits of the NaN that operations without a NaN operand give: positive, quiet, empty."""
        return self.infinity | (1 << (self.fraction_bits - 1))

    @property
    def layout(self) -> data.StructLayout:
        """Fields of a number, lowest first."""
        return data.StructLayout(
            {"fraction": self.fraction_bits, "exponent": self.exponent_bits, "sign": 1}
        )


FLOAT32 = FloatFormat("fp32", 8, 23)
FLOAT16 = FloatFormat("fp16", 5, 10)
BFLOAT16 = FloatFormat("bf16", 8, 7)


class Unpacked:
    """A number's fields as arithmetic wants them, combinational.

    Parameters
    ----------
    format : FloatFormat
        Its format.
    number : Value
        Its bits.

    Attributes
    ----------
    sign : Value
        1 for negative.
    exponent : Value
        Stored exponent; 1 for denormals, whose weight is that of the least normal ones.
    significand : Value
        Fraction with the hidden bit above it.
    magnitude : Value
        All but the sign: compares like the number itself.
    is_nan, is_infinite : Value
        What it is.
    """

    def __init__(self, format: FloatFormat, number: Value) -> None:
        fraction = number[: format.fraction_bits]
        exponent = number[format.fraction_bits : -1]
        is_normal = exponent.any()
        is_special = exponent.all()
        self.sign = number[-1]
        self.exponent = Cat(exponent[0] | ~is_normal, exponent[1:])
        self.significand = Cat(fraction, is_normal)
        self.magnitude = number[:-1]
        self.is_nan = is_special & fraction.any()
        self.is_infinite = is_special & ~fraction.any()


def count_leading_zeros(m, value: Value, name: str) -> Signal:
    """Return the zeros above the highest one of `value`, up to its width; a tree of halves.

    Parameters
    ----------
    m : Module
        Gets the assignments.
    value : Value
        Any width; ones are thought below it where that isn't a power of two.
    name : str
        Prefix of the signals.
    """
    width_bits = len(value)
    size = 1 << (width_bits - 1).bit_length()
    padded = Cat(Const(1).replicate(size - width_bits), value)
    # Of each part, lowest first: its zeros, and whether it has a one.
    levels: list[tuple[Value, Value]] = []
    for bit in range(size):
        levels.append((Const(0, 0), padded[bit]))
    while len(levels) > 1:
        merged: list[tuple[Value, Value]] = []
        for low, high in zip(levels[::2], levels[1::2], strict=True):
            found = high[1] | low[1]
            zeros = zip(high[0], low[0], strict=True)
            chosen = [(upper & high[1]) | (lower & ~high[1]) for upper, lower in zeros]
            merged.append((Cat(*chosen, ~high[1]), found))
        levels = merged
    count, found = levels[0]
    result = Signal(range(size + 1), name=f"{name}_leading_zeros")
    m.d.comb += result.eq(Cat(count, Const(0, 1)))
    if size == width_bits:
        with m.If(~found):
            m.d.comb += result.eq(size)
    return result


def shift_right_sticky(m, value: Value, amount: Value, name: str) -> Signal:
    """Return `value` shifted to the right, its lowest bit set where a one was shifted out.

    Parameters
    ----------
    m : Module
        Gets the assignments.
    value : Value
        What is shifted; the result has its width.
    amount : Value
        By how much, any number.
    name : str
        Of the result.
    """
    result = Signal(len(value), name=name)
    shifted, lost = value, Const(0, 1)
    for bit in reversed(range(len(amount))):
        step = min(1 << bit, len(value))
        moves = amount[bit]
        lost = lost | (moves & shifted[:step].any())
        moved = Cat(shifted[step:], Const(0, step))
        stage = Signal(len(value), name=f"{name}_by_{1 << bit}")
        m.d.comb += stage.eq(Mux(moves, moved, shifted))
        shifted = stage
    m.d.comb += result.eq(Cat(shifted[0] | lost, shifted[1:]))
    return result


def shift_left(m, value: Value, amount: Value, name: str) -> Value:
    """Return `value` shifted to the left within its width.

    Parameters
    ----------
    m : Module
        Gets the assignments.
    value : Value
        What is shifted; the result has its width.
    amount : Value
        By how much, any number.
    name : str
        Prefix of the signals.
    """
    shifted = value
    for bit in reversed(range(len(amount))):
        step = min(1 << bit, len(value))
        stage = Signal(len(value), name=f"{name}_by_{1 << bit}")
        moved = Cat(Const(0, step), shifted[: len(value) - step])
        m.d.comb += stage.eq(Mux(amount[bit], moved, shifted))
        shifted = stage
    return shifted
