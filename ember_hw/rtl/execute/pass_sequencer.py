"""Turns bundles into passes over the accumulator, by the reduce unit's microcode."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.config import VALUE_WIDTH_BITS, AcceleratorConfig
from ember_hw.isa import Source
from ember_hw.isa.reduce import ACCUMULATOR_BEATS, NUMBER_BYTES, ReduceOperation, RowFormat
from ember_hw.rtl.execute.float_format import FLOAT16
from ember_hw.rtl.execute.reduce_layouts import (
    group_numbers,
    header_layout,
    pass_layout,
    step_layout,
)
from ember_hw.rtl.execute.row_widen import widened
from ember_hw.rtl.layouts import bundle_layout

_LENGTH_BITS = 16


class PassSequencer(wiring.Component):
    """For each bundle the passes that its events ask for, in the order of the row entries.

    A row and the emission behind it are one pass. A bundle with at most one pass takes one cycle,
    another as many as it has passes.

    Members
    -------
    header, steps : in
        Microcode records.
    row_events : in
        The events of each row entry.
    bundle : stream, in
    todo : stream, out
        Passes.
    weight : out
        What multiplies the row of the pass that is shown, fp32.
    asks : out
        Strobe: a pass that emits moves on.
    ends : out
        Strobe: the last pass of a request moves on, or there is none.
    misfit : out
        The pass that is shown has a length that is none, or another than what it is combined with.
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        super().__init__(
            {
                "header": In(header_layout(config)),
                "steps": In(step_layout(config)).array(config.row_entries),
                "row_events": In(config.events).array(config.row_entries),
                "bundle": In(stream.Signature(bundle_layout(config))),
                "todo": Out(stream.Signature(pass_layout(config))),
                "weight": Out(VALUE_WIDTH_BITS),
                "asks": Out(1),
                "ends": Out(1),
                "misfit": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        entries = config.row_entries

        # The bundle, and what is left of it.
        loaded = Signal()
        left, rows, emissions = Signal(entries), Signal(entries), Signal(entries)
        scalars = Signal(data.ArrayLayout(VALUE_WIDTH_BITS, config.bundle_scalars))
        is_last = Signal()
        one_left = Signal()
        moves, leaves = Signal(), Signal()
        shown = Signal()  # `todo` may take the next pass
        m.d.comb += [
            one_left.eq((left & (left - 1)) == 0),
            moves.eq(loaded & left.any() & shown),
            leaves.eq(loaded & (~left.any() | (one_left & shown))),
            self.bundle.ready.eq(~loaded | leaves),
            self.ends.eq(leaves & is_last),
        ]
        with m.If(self.bundle.ready):
            events = self.bundle.payload.events
            takes = Cat((chosen & events).any() for chosen in self.row_events)
            emits = Cat((step.emit_events & events).any() for step in self.steps)
            m.d.sync += [
                loaded.eq(self.bundle.valid),
                left.eq(takes | emits),
                rows.eq(takes),
                emissions.eq(emits),
                scalars.eq(self.bundle.payload.scalars),
                is_last.eq(self.bundle.payload.last),
            ]
        with m.Elif(moves):
            m.d.sync += left.eq(left & (left - 1))

        # The next pass.
        following = Signal(pass_layout(config))
        length = Signal(_LENGTH_BITS)
        holds = Signal()  # the accumulator is not empty
        is_long = Signal()
        m.d.comb += length.eq(self.header.length)
        with m.If(self.header.length_source == Source.SLOT):
            scalar = scalars[self.header.length_scalar]
            m.d.comb += [
                length.eq(scalar),
                is_long.eq(scalar[_LENGTH_BITS:].any()),
            ]
        for entry in reversed(range(entries)):
            step = self.steps[entry]
            with m.If(left[entry]):
                m.d.comb += [
                    following.takes_row.eq(rows[entry]),
                    following.emits.eq(emissions[entry]),
                    following.operation.eq(step.operation),
                    following.scaled.eq(step.scaled),
                    *self._summed(following, step),
                ]
        beat_bits = (config.bus_bytes - 1).bit_length()
        before_end = Signal(_LENGTH_BITS)
        # Of what is before the end: whole groups, and bytes in the last one.
        groups, in_last = (
            Signal(range(ACCUMULATOR_BEATS)),
            Signal(range(NUMBER_BYTES * config.lanes)),
        )
        for format in RowFormat:
            bits = (NUMBER_BYTES * group_numbers(config, format) - 1).bit_length()
            if format is RowFormat.FP32:
                m.d.comb += [groups.eq(before_end[bits:]), in_last.eq(before_end[:bits])]
            elif bits != beat_bits:
                with m.If(self.header.format == format):
                    m.d.comb += [groups.eq(before_end[bits:]), in_last.eq(before_end[:bits])]
        is_void = Signal()
        m.d.comb += [
            before_end.eq(length - 1),
            is_void.eq(~following.takes_row & ~holds),
            following.groups.eq(Mux(is_void, 0, groups)),
            following.repeats.eq(Mux(is_void, groups, 0)),
            following.bytes.eq(in_last + 1),
            following.joins.eq(
                holds & ~(following.takes_row & (following.operation == ReduceOperation.COPY))
            ),
        ]
        fits = Signal()
        m.d.comb += fits.eq(
            ~is_long
            & (length != 0)
            & (length[:2] == 0)
            & (before_end[beat_bits:] < ACCUMULATOR_BEATS)
        )

        # The pass that runs. Those that add to what is there must be as long.
        current = self.todo.payload
        m.d.comb += shown.eq(~self.todo.valid | self.todo.ready)
        with m.If(shown):
            m.d.sync += self.todo.valid.eq(moves)
        m.d.comb += self.asks.eq(moves & following.emits)
        with m.If(moves):
            is_other = (following.groups != current.groups) | (following.bytes != current.bytes)
            m.d.sync += [
                current.eq(following),
                holds.eq(~following.emits),
                self.misfit.eq(~fits | (following.joins & is_other)),
            ]
        with m.If(self.ends):
            m.d.sync += holds.eq(0)
        self._weigh(m, scalars, left, moves)
        return m

    def _summed(self, following, step):
        """Return what is told of a row that is summed across."""
        if not self.config.reduce_dot:
            return ()
        return following.place.eq(step.place), following.negated.eq(step.negated)

    def _weigh(self, m: Module, scalars, left, moves) -> None:
        """Widen the weight of the next pass, as `RowWiden` does a row's numbers."""
        chosen = Signal(VALUE_WIDTH_BITS)
        for entry in reversed(range(self.config.row_entries)):
            with m.If(left[entry]):
                m.d.comb += chosen.eq(scalars[self.steps[entry].scalar])
        small = chosen[: FLOAT16.width_bits]
        m.d.comb += self.weight.eq(
            widened(m, "weight", chosen, small, self.header.weight_format, moves)
        )
