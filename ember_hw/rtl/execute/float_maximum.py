"""The larger of two floating-point numbers, in one cycle."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ember_hw.rtl.execute.float_format import FLOAT32, FloatFormat, Unpacked


class FloatMaximum(wiring.Component):
    """maximum = a if a > b else b, one cycle later; a new pair every cycle.

    A NaN operand gives the format's `quiet_nan`; +0 is larger than -0. Ref: IEEE 754-2019, section
    9.6, maximum.

    Parameters
    ----------
    format : FloatFormat
        Of operands and result.

    Members
    -------
    a, b : in
        Operands.
    maximum : out
        The larger one, registered.

    Attributes
    ----------
    cycles : int
        From operands to maximum.
    """

    cycles = 1

    def __init__(self, *, format: FloatFormat = FLOAT32):
        self.format = format
        bits = format.width_bits
        super().__init__({"a": In(bits), "b": In(bits), "maximum": Out(bits)})

    def elaborate(self, platform):
        m = Module()
        a, b = Unpacked(self.format, self.a), Unpacked(self.format, self.b)
        a_is_below = Signal()
        with m.If(a.sign ^ b.sign):
            m.d.comb += a_is_below.eq(a.sign)
        with m.Else():
            m.d.comb += a_is_below.eq((a.magnitude < b.magnitude) ^ a.sign)
        with m.If(a.is_nan | b.is_nan):
            m.d.sync += self.maximum.eq(self.format.quiet_nan)
        with m.Elif(a_is_below):
            m.d.sync += self.maximum.eq(self.b)
        with m.Else():
            m.d.sync += self.maximum.eq(self.a)
        return m
