"""Evaluates the bounds of a loop for each entry."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw import isa
from ember_hw.config import VALUE_WIDTH_BITS, AcceleratorConfig
from ember_hw.rtl.fifos import ReservedFifo
from ember_hw.rtl.layouts import entry_layout, record_layout, token_layout
from ember_hw.rtl.slots import inherited, select

_PIPELINE_CYCLES = 3
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
    record : in
        The unit's microcode record.
    parent : stream, in
        Tokens of the unit above.
    entry : stream, out
        Bounds, and the token they belong to.
    """

    def __init__(self, *, config: AcceleratorConfig, level: int):
        if not 0 <= level < config.traversal_units:
            raise ValueError(f"level must be from 0 to {config.traversal_units - 1}, not {level!r}")
        self.config = config
        self.level = level
        super().__init__(
            {
                "record": In(record_layout("unit0", config)),
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
        choices = inherited(token.exports, config)
        lower_slot = select(m, "lower_from_slot", record.lower_slot, choices)
        upper_slot = select(m, "upper_from_slot", record.upper_slot, choices)
        relative = record.upper_source == isa.BoundSource.LOWER_PLUS
        lower = Signal(signed(VALUE_WIDTH_BITS))
        m.d.comb += lower.eq(
            Mux(record.lower_source == isa.Source.SLOT, lower_slot, record.lower_immediate)
        )

        # The distance upper - lower - 1 needs no upper bound where that is the lower bound plus an
        # immediate.
        valid = [Signal(name=f"valid{i}") for i in range(_PIPELINE_CYCLES)]
        tokens = [Signal(token_layout(config), name=f"token{i}") for i in range(_PIPELINE_CYCLES)]
        lowers = [Signal(VALUE_WIDTH_BITS, name=f"lower{i}") for i in range(_PIPELINE_CYCLES)]
        minuend = Signal(signed(VALUE_WIDTH_BITS))
        subtrahend = Signal(signed(VALUE_WIDTH_BITS))
        distance = Signal(signed(VALUE_WIDTH_BITS + 1))
        left = Signal(signed(VALUE_WIDTH_BITS + 2))
        empty = Signal()
        m.d.sync += [
            valid[0].eq(accept),
            tokens[0].eq(token),
            lowers[0].eq(lower),
            minuend.eq(
                Mux(record.upper_source == isa.BoundSource.SLOT, upper_slot, record.upper_immediate)
            ),
            subtrahend.eq(Mux(relative, 0, lower)),
            distance.eq(minuend - subtrahend - 1),
            left.eq(distance - record.step),
            empty.eq(distance < 0),
        ]
        for i in range(1, _PIPELINE_CYCLES):
            m.d.sync += [
                valid[i].eq(valid[i - 1]),
                tokens[i].eq(tokens[i - 1]),
                lowers[i].eq(lowers[i - 1]),
            ]

        parent_iterates = 1
        if self.level:
            bit = isa.event_bit(isa.Event.ITERATE, self.level - 1, config)
            parent_iterates = tokens[-1].events[bit]
        enters = record.enable & parent_iterates
        m.d.comb += [
            queue.push.eq(valid[-1]),
            queue.payload.events.eq(tokens[-1].events),
            queue.payload.exports.eq(tokens[-1].exports),
            queue.payload.lower.eq(lowers[-1]),
            queue.payload.left.eq(left),
            queue.payload.void.eq(~enters),
            queue.payload.empty.eq(enters & empty),
        ]
        return m
