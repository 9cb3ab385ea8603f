"""Widens the numbers of a row to fp32."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.config import AcceleratorConfig
from ember_hw.isa.reduce import RowFormat
from ember_hw.rtl.execute.float_format import FLOAT16, FLOAT32, Unpacked, count_leading_zeros
from ember_hw.rtl.execute.reduce_layouts import lanes
from ember_hw.rtl.layouts import row_beat_layout

_BITS = FLOAT32.width_bits
_SMALL_BITS = FLOAT16.width_bits


class RowWiden(wiring.Component):
    """Gives a row's numbers as fp32, exactly; of a NaN it keeps every bit that it has.

    A beat of fp32 numbers a cycle; a beat of bf16 or fp16 numbers becomes two, or one where it has
    no more than half of its numbers, so such rows come at half as many bytes a cycle. In order; a
    beat leaves a cycle after it came.

    Members
    -------
    format : in
        Of the rows; constant while there are any.
    i : stream, in
        Beats of rows.
    o : stream, out
        The same rows in fp32.
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        payload = row_beat_layout(config)
        super().__init__(
            {
                "format": In(RowFormat),
                "i": In(stream.Signature(payload)),
                "o": Out(stream.Signature(payload)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        beat = self.i.payload
        half_bytes = config.bus_bytes // 2
        is_small = Signal()
        second = Signal()  # half of the beat
        moves = Signal()
        is_done = Signal()  # the beat, with this half
        m.d.comb += [
            is_small.eq(self.format != RowFormat.FP32),
            moves.eq(~self.o.valid | self.o.ready),
            is_done.eq(~is_small | second | (beat.bytes <= half_bytes)),
            self.i.ready.eq(moves & is_done),
        ]
        left_bytes = beat.bytes - Mux(second, half_bytes, 0)
        with m.If(moves):
            m.d.sync += [
                second.eq(self.i.valid & ~is_done),
                self.o.valid.eq(self.i.valid),
                self.o.payload.last.eq(beat.last & is_done),
                self.o.payload.bytes.eq(
                    Mux(~is_small, beat.bytes, Mux(is_done, left_bytes << 1, config.bus_bytes))
                ),
            ]
        half = Mux(second, beat.data[8 * half_bytes :], beat.data[: 8 * half_bytes])
        for lane in range(lanes(config)):
            small = half.word_select(lane, _SMALL_BITS)
            whole = beat.data.word_select(lane, _BITS)
            zeros = count_leading_zeros(m, Unpacked(FLOAT16, small).significand, f"lane{lane}")
            # A small number stands at the top, which is all that bf16 needs.
            number = Signal(_BITS, name=f"number{lane}")
            shift = Signal(len(zeros), name=f"shift{lane}")
            with m.If(moves):
                m.d.sync += shift.eq(zeros)
                m.d.sync += number.eq(
                    Mux(is_small, Cat(Const(0, _BITS - _SMALL_BITS), small), whole)
                )
            m.d.comb += self.o.payload.data.word_select(lane, _BITS).eq(
                Mux(self.format == RowFormat.FP16, widened_fp16(number, shift), number)
            )
        return m


def widened_fp16(number: Value, zeros: Value) -> Value:
    """Return an fp16 number as fp32.

    Parameters
    ----------
    number : Value of 32 bits
        With the fp16 number at the top.
    zeros : Value
        Leading zeros of its significand.
    """
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
