"""Evaluates, for each entry of a loop, what stays the same until the next one."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw import isa
from ember_hw.config import VALUE_WIDTH_BITS, AcceleratorConfig
from ember_hw.rtl.fifos import ReservedFifo
from ember_hw.rtl.layouts import entry_layout, record_layout, token_layout
from ember_hw.rtl.multiplier import Multiplier
from ember_hw.rtl.slots import select

_QUEUE_CREDITS = 16


class Bounds(wiring.Component):
    """Turns each token of the unit above into one entry of this unit's loop.

    One token a cycle in, one entry a cycle out, five cycles from one to the other, in order. The
    pipeline does not stall: a token is accepted when its entry has a place.

    Parameters
    ----------
    config : AcceleratorConfig
    level : int
        Of the unit; 0 is the outermost.

    Members
    -------
    record, streams : in
        The unit's microcode records.
    parent : stream, in
        Tokens of the unit above.
    entry : stream, out
        Bounds, windows of the streams, and the parent's events.
    """

    def __init__(self, *, config: AcceleratorConfig, level: int):
        if not 0 <= level < config.traversal_units:
            raise ValueError(f"level must be from 0 to {config.traversal_units - 1}, not {level!r}")
        self.config = config
        self.level = level
        super().__init__(
            {
                "record": In(record_layout("unit0", config)),
                "streams": In(record_layout("unit0.stream0", config)).array(
                    config.streams_per_unit
                ),
                "parent": In(stream.Signature(token_layout(config))),
                "entry": Out(stream.Signature(entry_layout(config))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config, record = self.config, self.record
        m.submodules.queue = queue = ReservedFifo(
            shape=entry_layout(config), credits=_QUEUE_CREDITS
        )
        wiring.connect(m, queue.o, wiring.flipped(self.entry))
        accept = Signal()
        m.d.comb += [
            self.parent.ready.eq(queue.room),
            accept.eq(self.parent.valid & self.parent.ready),
            queue.take.eq(accept),
        ]
        token = self.parent.payload
        multipliers = []
        for s, stream_record in enumerate(self.streams):
            multiplier = Multiplier(a=signed(VALUE_WIDTH_BITS), b=len(stream_record.outer_pitch))
            m.submodules[f"multiplier{s}"] = multiplier
            multipliers.append(multiplier)
            outer = Signal(signed(VALUE_WIDTH_BITS), name=f"outer{s}", reset_less=True)
            m.d.sync += outer.eq(select(stream_record.outer_export, token.exports))
            with m.If(~stream_record.outer_enable):
                m.d.sync += outer.eq(0)
            m.d.comb += [
                multiplier.a.eq(outer),
                multiplier.b.eq(stream_record.outer_pitch),
            ]

        # 1: operands; up to the products' end the loop's length has time.
        stages = 2 + multipliers[0].cycles
        valid = [Signal(name=f"valid{i}") for i in range(stages)]
        events = [Signal(config.events, name=f"events{i}", reset_less=True) for i in range(stages)]
        m.d.sync += [valid[0].eq(accept), events[0].eq(token.events)]
        for i in range(1, stages):
            m.d.sync += [valid[i].eq(valid[i - 1]), events[i].eq(events[i - 1])]

        lower = [
            Signal(signed(VALUE_WIDTH_BITS), name=f"lower{i}", reset_less=True)
            for i in range(stages)
        ]
        upper = Signal(signed(VALUE_WIDTH_BITS), reset_less=True)
        distance = Signal(signed(VALUE_WIDTH_BITS + 1), reset_less=True)
        left = [
            Signal(signed(VALUE_WIDTH_BITS + 2), name=f"left{i}", reset_less=True)
            for i in range(2, stages)
        ]
        empty = [Signal(name=f"empty{i}", reset_less=True) for i in range(2, stages)]
        # The distance upper - lower - 1 needs no lower bound where the upper one is relative to it.
        subtrahend = Signal(signed(VALUE_WIDTH_BITS), reset_less=True)
        first_lower = Signal(signed(VALUE_WIDTH_BITS))
        m.d.comb += first_lower.eq(
            Mux(
                record.lower_source == isa.Source.SLOT,
                select(record.lower_export, token.exports),
                record.lower_immediate,
            )
        )
        m.d.sync += [
            lower[0].eq(first_lower),
            subtrahend.eq(first_lower),
            upper.eq(
                Mux(
                    record.upper_source == isa.BoundSource.SLOT,
                    select(record.upper_export, token.exports),
                    record.upper_immediate,
                )
            ),
            distance.eq(upper - subtrahend - 1),
            left[0].eq(distance - record.step),
            empty[0].eq(distance < 0),
        ]
        with m.If(record.upper_source == isa.BoundSource.LOWER_PLUS):
            m.d.sync += subtrahend.eq(0)
        for i in range(1, stages):
            m.d.sync += lower[i].eq(lower[i - 1])
        for held in (left, empty):
            for i in range(1, len(held)):
                m.d.sync += held[i].eq(held[i - 1])

        for s, stream_record in enumerate(self.streams):
            product = multipliers[s].product
            window = Signal(signed(len(product) + 1), name=f"window{s}", reset_less=True)
            m.d.sync += window.eq(product + stream_record.first)
            sign = window[len(queue.payload.windows[s].start) - 1 :]
            m.d.comb += [
                queue.payload.windows[s].start.eq(window),
                queue.payload.windows[s].lost.eq(sign.any() & ~sign.all()),
            ]

        parent_iterates = 1
        if self.level:
            bit = isa.event_bit(isa.Event.ITERATE, self.level - 1, config)
            parent_iterates = events[-1][bit]
        enters = record.enable & parent_iterates
        m.d.comb += [
            queue.push.eq(valid[-1]),
            queue.payload.events.eq(events[-1]),
            queue.payload.lower.eq(lower[-1]),
            queue.payload.left.eq(left[-1]),
            queue.payload.void.eq(~enters),
            queue.payload.empty.eq(enters & empty[-1]),
        ]
        return m
