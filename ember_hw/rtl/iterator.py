"""Counts through the iterations of a loop."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw import isa
from ember_hw.config import VALUE_WIDTH_BITS, AcceleratorConfig
from ember_hw.rtl.layouts import entry_layout, iteration_layout, record_layout


class Iterator(wiring.Component):
    """Turns each entry of a loop into its steps.

    One step a cycle; the next entry's first step follows the last step of the one before without a
    bubble, in pair mode after one ghost step. An empty or void entry is one step. A step leaves in
    every cycle where `room` is high and an entry is loaded; there is no other backpressure.

    Members
    -------
    record : in
        The unit's microcode record.
    entry : stream, in
        Loop entries.
    room : in
        Everything behind can take a step.
    valid, iteration, windows : out
        The step, with the windows of its entry.
    """

    def __init__(self, *, config: AcceleratorConfig, level: int):
        if not 0 <= level < config.traversal_units:
            raise ValueError(f"level must be from 0 to {config.traversal_units - 1}, not {level!r}")
        self.config = config
        self.level = level
        super().__init__(
            {
                "record": In(record_layout("unit0", config)),
                "entry": In(stream.Signature(entry_layout(config))),
                "room": In(1),
                "valid": Out(1),
                "iteration": Out(iteration_layout(config)),
                "windows": Out(entry_layout(config)["windows"].shape),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config, record = self.config, self.record
        loaded = Signal()
        current = Signal(entry_layout(config))
        induction = Signal(VALUE_WIDTH_BITS)
        left = Signal(signed(VALUE_WIDTH_BITS + 2))
        first = Signal()
        ghost = Signal()

        iterates = Signal()
        last = Signal()  # the last step with an event
        done = Signal()  # the last step of any kind
        m.d.comb += [
            iterates.eq(~current.void & ~current.empty & ~ghost),
            last.eq(~ghost & ((left < 0) | ~iterates)),
            done.eq(ghost | (last & ~(record.pair & iterates))),
            self.valid.eq(loaded & self.room),
            self.entry.ready.eq(~loaded | (self.valid & done)),
        ]
        with m.If(self.entry.ready):
            m.d.sync += [
                loaded.eq(self.entry.valid),
                current.eq(self.entry.payload),
                induction.eq(self.entry.payload.lower),
                left.eq(self.entry.payload.left),
                first.eq(1),
                ghost.eq(0),
            ]
        with m.Elif(self.valid):
            m.d.sync += [
                induction.eq(induction + record.step),
                left.eq(left - record.step),
                first.eq(0),
                ghost.eq(last),
            ]

        # Begins and iterates of the levels above ride on the entry's first step, their ends on its
        # last.
        def mask(*events: isa.Event) -> int:
            return isa.event_mask([(e, k) for e in events for k in range(self.level)], config)

        opening = mask(isa.Event.BEGIN, isa.Event.ITERATE)
        closing = mask(isa.Event.END)
        own = {e: 1 << isa.event_bit(e, self.level, config) for e in isa.Event}
        entered = ~current.void & ~ghost
        m.d.comb += [
            self.iteration.events.eq(
                Mux(first & ~ghost, current.events & opening, 0)
                | Mux(last, current.events & closing, 0)
                | Mux(entered & first, own[isa.Event.BEGIN], 0)
                | Mux(iterates, own[isa.Event.ITERATE], 0)
                | Mux(entered & last, own[isa.Event.END], 0)
            ),
            self.iteration.induction.eq(induction),
            self.iteration.iterates.eq(iterates),
            self.iteration.ghost.eq(ghost),
            self.iteration.last.eq(last),
            self.windows.eq(current.windows),
        ]
        return m
