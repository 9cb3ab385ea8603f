"""Widens the numbers of a row to fp32."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.config import AcceleratorConfig
from ember_hw.isa.reduce import NUMBER_BYTES, RowFormat
from ember_hw.rtl.execute.float_format import FLOAT16, FLOAT32, Unpacked, count_leading_zeros
from ember_hw.rtl.execute.reduce_layouts import group_layout, group_numbers
from ember_hw.rtl.layouts import row_beat_layout

_BITS = FLOAT32.width_bits
_SMALL_BITS = FLOAT16.width_bits


class RowWiden(wiring.Component):
    """Gives a row's numbers as fp32, exactly; of a NaN it keeps every bit that it has.

    A beat a cycle, a group of each. A beat of bf16 or fp16 numbers holds twice as many as one of
    fp32: where there are no more lanes than for those it becomes two groups, or one where it has
    no more than half of its numbers, and such rows come at half as many bytes a cycle. In order; a
    group leaves a cycle after its beat came. Lanes that have no number are 0.

    Members
    -------
    format : in
        Of the rows; constant while there are any.
    i : stream, in
        Beats of rows.
    o : stream, out
        Groups of the same rows in fp32.
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        super().__init__(
            {
                "format": In(RowFormat),
                "i": In(stream.Signature(row_beat_layout(config))),
                "o": Out(stream.Signature(group_layout(config))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        beat = self.i.payload
        is_small = Signal()
        moves = Signal()
        is_done = Signal()  # the beat, with this group
        m.d.comb += [
            is_small.eq(self.format != RowFormat.FP32),
            moves.eq(~self.o.valid | self.o.ready),
            self.i.ready.eq(moves & is_done),
        ]
        numbers = group_numbers(config, RowFormat.FP16)
        bytes_of_group = numbers * _SMALL_BITS // 8
        if bytes_of_group < config.bus_bytes:
            second = Signal()  # half of the beat
            m.d.comb += is_done.eq(~is_small | second | (beat.bytes <= bytes_of_group))
            with m.If(moves):
                m.d.sync += second.eq(self.i.valid & ~is_done)
            small = beat.data.word_select(second, _SMALL_BITS * numbers)
            left_bytes = beat.bytes - Mux(second, bytes_of_group, 0)
        else:
            m.d.comb += is_done.eq(1)
            small, left_bytes = beat.data, beat.bytes
        small_bytes = Mux(is_done, left_bytes << 1, NUMBER_BYTES * numbers)
        with m.If(moves):
            m.d.sync += [
                self.o.valid.eq(self.i.valid),
                self.o.payload.last.eq(beat.last & is_done),
                self.o.payload.bytes.eq(Mux(is_small, small_bytes, beat.bytes)),
            ]
        for lane in range(numbers):
            whole = Const(0, _BITS)
            if lane < config.beat_numbers:
                whole = beat.data.word_select(lane, _BITS)
            half = small.word_select(lane, _SMALL_BITS)
            m.d.comb += self.o.payload.data.word_select(lane, _BITS).eq(
                widened(m, f"lane{lane}", whole, half, self.format, moves)
            )
        return m


def widened(m: Module, name: str, whole: Value, small: Value, format: Value, moves: Value) -> Value:
    """Return a number as fp32, a cycle later.

    Parameters
    ----------
    m : Module
        Gets the assignments.
    name : str
        Prefix of the signals.
    whole, small : Value of 32 and 16 bits
        The number, where it is fp32 and where it is not.
    format : Value
        A `RowFormat`, constant, but for INT8.
    moves : Value
        The number of this cycle is taken, or else the one before is held.
    """
    zeros = count_leading_zeros(m, Unpacked(FLOAT16, small).significand, name)
    # A small number stands at the top, which is all that bf16 needs.
    number = Signal(_BITS, name=f"{name}_number", reset_less=True)
    shift = Signal(len(zeros), name=f"{name}_shift", reset_less=True)
    at_top = Cat(Const(0, _BITS - _SMALL_BITS), small)
    with m.If(moves):
        m.d.sync += [
            shift.eq(zeros),
            number.eq(Mux(format == RowFormat.FP32, whole, at_top)),
        ]
    return Mux(format == RowFormat.FP16, _of_fp16(number, shift), number)


def _of_fp16(number: Value, zeros: Value) -> Value:
    """Return what is left to do for fp16: another exponent, no denormals."""
    small = Unpacked(FLOAT16, number[_BITS - _SMALL_BITS :])
    fraction = (small.significand << zeros)[: FLOAT16.fraction_bits]
    exponent = small.exponent - zeros + (FLOAT32.bias - FLOAT16.bias)
    is_special = small.is_nan | small.is_infinite
    exponent = (exponent | is_special.replicate(FLOAT32.exponent_bits)) & (
        small.magnitude.any().replicate(FLOAT32.exponent_bits)
    )
    below = FLOAT32.fraction_bits - FLOAT16.fraction_bits
    fields = (Const(0, below), fraction, exponent[: FLOAT32.exponent_bits], small.sign)
    return Value.cast(Cat(*fields))
