"""Gives rows of every format as fp32."""

from __future__ import annotations

from amaranth.hdl import Module, Mux
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.config import AcceleratorConfig
from ember_hw.isa.reduce import RowFormat
from ember_hw.rtl.execute.reduce_layouts import group_layout, header_layout
from ember_hw.rtl.execute.row_dequantise import RowDequantise
from ember_hw.rtl.execute.row_widen import RowWiden
from ember_hw.rtl.layouts import row_beat_layout


class RowNumbers(wiring.Component):
    """Leads rows through `RowWiden`, those of codes through `RowDequantise` where there is one.

    That is with `config.int8_rows`.

    Members
    -------
    header : in
        Record ``reduce``; constant while there are rows.
    i : stream, in
        Beats of rows.
    o : stream, out
        Groups of the same rows in fp32.
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        super().__init__(
            {
                "header": In(header_layout(config)),
                "i": In(stream.Signature(row_beat_layout(config))),
                "o": Out(stream.Signature(group_layout(config))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.widen = widen = RowWiden(config=self.config)
        m.d.comb += widen.format.eq(self.header.format)
        if not self.config.int8_rows:
            wiring.connect(m, wiring.flipped(self.i), widen.i)
            wiring.connect(m, widen.o, wiring.flipped(self.o))
            return m
        m.submodules.dequantise = dequantise = RowDequantise(config=self.config)
        is_coded = self.header.format == RowFormat.INT8
        m.d.comb += [
            dequantise.half_scale.eq(self.header.half_scale),
            widen.i.payload.eq(self.i.payload),
            dequantise.i.payload.eq(self.i.payload),
            widen.i.valid.eq(self.i.valid & ~is_coded),
            dequantise.i.valid.eq(self.i.valid & is_coded),
            self.i.ready.eq(Mux(is_coded, dequantise.i.ready, widen.i.ready)),
            self.o.payload.eq(
                Mux(
                    is_coded,
                    dequantise.o.payload.as_value(),
                    widen.o.payload.as_value(),
                )
            ),
            self.o.valid.eq(Mux(is_coded, dequantise.o.valid, widen.o.valid)),
            widen.o.ready.eq(self.o.ready & ~is_coded),
            dequantise.o.ready.eq(self.o.ready & is_coded),
        ]
        return m
