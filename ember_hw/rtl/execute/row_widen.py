"""Widens the numbers of a row to fp32."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, EnableInserter, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.config import AcceleratorConfig
from ember_hw.isa.reduce import RowFormat
from ember_hw.rtl.execute.float_convert import FloatWiden
from ember_hw.rtl.execute.float_format import BFLOAT16, FLOAT16, FLOAT32
from ember_hw.rtl.execute.reduce_layouts import lanes
from ember_hw.rtl.layouts import row_beat_layout

_BITS = FLOAT32.width_bits
_SMALL_BITS = FLOAT16.width_bits


class RowWiden(wiring.Component):
    """Gives a row's numbers as fp32: exactly, but that a NaN of fp16 becomes the quiet one.

    A beat of fp32 numbers a cycle; a beat of bf16 or fp16 numbers becomes two, or one where it has
    no more than half of its numbers, so such rows come at half as many bytes a cycle. In order; a
    beat leaves two cycles after it came.

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
        count = lanes(config)
        half_bytes = config.bus_bytes // 2
        is_small = Signal()
        second = Signal()  # half of the beat
        moves = Signal()
        is_done = Signal()  # the beat, with this half
        m.d.comb += [
            is_small.eq(self.format != RowFormat.FP32),
            moves.eq(~self.o.valid | self.o.ready),
            is_done.eq(~is_small | second | (self.i.payload.bytes <= half_bytes)),
            self.i.ready.eq(moves & is_done),
        ]
        with m.If(moves & self.i.valid):
            m.d.sync += second.eq(~is_done)

        # What is widened, and beside it what only moves.
        data = self.i.payload.data
        half = Mux(second, data[8 * half_bytes :], data[: 8 * half_bytes])
        first_valid, first_last = Signal(), Signal()
        first_bytes, first_data = Signal.like(self.i.payload.bytes), Signal.like(data)
        left_bytes = self.i.payload.bytes - Mux(second, half_bytes, 0)
        widened = []
        for lane in range(count):
            widen = EnableInserter(moves)(FloatWiden(source=FLOAT16))
            m.submodules[f"widen{lane}"] = widen
            small = half.word_select(lane, _SMALL_BITS)
            m.d.comb += widen.number.eq(small)
            widened.append(widen.wide)
            whole = data.word_select(lane, _BITS)
            raised = Cat(Const(0, _BITS - BFLOAT16.width_bits), small)
            with m.If(moves):
                m.d.sync += first_data.word_select(lane, _BITS).eq(Mux(is_small, raised, whole))
        moved_data = Signal.like(data)
        with m.If(moves):
            m.d.sync += [
                first_valid.eq(self.i.valid),
                first_last.eq(self.i.payload.last & is_done),
                first_bytes.eq(
                    Mux(
                        is_small,
                        Mux(is_done, left_bytes << 1, config.bus_bytes),
                        self.i.payload.bytes,
                    )
                ),
                self.o.valid.eq(first_valid),
                self.o.payload.last.eq(first_last),
                self.o.payload.bytes.eq(first_bytes),
                moved_data.eq(first_data),
            ]
        m.d.comb += self.o.payload.data.eq(
            Mux(self.format == RowFormat.FP16, Cat(widened), moved_data)
        )
        return m
