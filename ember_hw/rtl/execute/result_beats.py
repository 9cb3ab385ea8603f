"""Lets the groups of results leave beat by beat."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.config import AcceleratorConfig
from ember_hw.isa.reduce import ACCUMULATOR_BEATS, RowFormat
from ember_hw.rtl.execute.reduce_layouts import group_bytes, result_layout
from ember_hw.rtl.layouts import row_beat_layout


class ResultBeats(wiring.Component):
    """Makes beats of groups, which may be wider, and of one group as many as it is repeated.

    A beat a cycle, in order, in the cycle in which its group is there.

    Backpressure: a group is held until its last beat has left.

    Members
    -------
    format : in
        `RowFormat` of the rows that results are made of: it says what a full group holds. Constant
        while there are any.
    i : stream, in
        Groups, and how often each is repeated.
    o : stream, out
        Beats of the same rows.
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        super().__init__(
            {
                "format": In(RowFormat),
                "i": In(stream.Signature(result_layout(config))),
                "o": Out(stream.Signature(row_beat_layout(config))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        group = self.i.payload.group
        repeated = Signal(range(ACCUMULATOR_BEATS))
        is_last = Signal()  # time that the group leaves
        is_done = Signal()  # that time, with this beat
        left = Signal(group.bytes.shape())
        bytes_of_group = group_bytes(config, self.format)
        m.d.comb += [
            is_last.eq(repeated == self.i.payload.repeats),
            left.eq(Mux(is_last, group.bytes, bytes_of_group)),
            self.o.valid.eq(self.i.valid),
            self.o.payload.last.eq(group.last & is_last & is_done),
            self.i.ready.eq(self.o.ready & is_last & is_done),
        ]
        with m.If(self.o.valid & self.o.ready & is_done):
            m.d.sync += repeated.eq(Mux(is_last, 0, repeated + 1))
        self._cut(m, group.data, left, is_done)
        return m

    def _cut(self, m: Module, data: Value, left: Value, is_done: Signal) -> None:
        """Show one beat of a group after the other."""
        config = self.config
        bus_bytes = config.bus_bytes
        parts = config.lanes // config.beat_numbers
        if parts == 1:
            m.d.comb += [
                is_done.eq(1),
                self.o.payload.data.eq(data),
                self.o.payload.bytes.eq(left),
            ]
            return
        part = Signal(range(parts))
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += part.eq(Mux(is_done, 0, part + 1))
        m.d.comb += self.o.payload.data.eq(data.word_select(part, config.data_width_bits))
        with m.Switch(part):
            for number in range(parts):
                with m.Case(number):
                    end = bus_bytes * (number + 1)
                    m.d.comb += [
                        is_done.eq(left <= end),
                        self.o.payload.bytes.eq(
                            Mux(left <= end, left - bus_bytes * number, bus_bytes)
                        ),
                    ]
