"""Brings a loop's steps together with what they loaded: extraction, NEXT values, ALU, exports."""

from __future__ import annotations

from amaranth.hdl import Assert, Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw import isa
from ember_hw.config import LINE_BYTES, VALUE_WIDTH_BITS, AcceleratorConfig
from ember_hw.registers import FaultCode
from ember_hw.rtl import line_store
from ember_hw.rtl.delay import delay
from ember_hw.rtl.faults import FaultSignature
from ember_hw.rtl.fifos import LUT_MEMORY_ENTRIES, StreamFifo
from ember_hw.rtl.layouts import (
    iteration_layout,
    record_layout,
    step_layout,
    token_layout,
    values_layout,
)
from ember_hw.rtl.multiplier import Multiplier
from ember_hw.rtl.slots import select, select_registered

_HALF_BITS = 32  # what a line store is read by


class LinePort(wiring.Signature):
    """The reading side of a `LineStore`, seen from the join."""

    def __init__(self, config: AcceleratorConfig):
        self.config = config
        super().__init__(
            {
                "offset": Out(range(LINE_BYTES)),
                "new": Out(1),
                "available": In(1),
                "advance": Out(1),
                "data": In(_HALF_BITS),
                "fits": In(1),
            }
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LinePort) and self.config == other.config


class Join(wiring.Component):
    """Turns steps into tokens: each waits for what it loads, then its values are computed.

    One step a cycle, in order; a token has a place before its step is taken, so the pipeline does
    not stall. In pair mode a step leaves when the next one has its stream 0, and ghost steps do not
    leave.

    Members
    -------
    record, streams : in
        Microcode records of the unit and its streams.
    step : stream, in
        Steps of the loop.
    lines : ports to the streams' line stores
    frame : stream, in
        Inherited values of each loop entry; taken with the entry's last token.
    token : stream, out
        Events and exports.
    fault : out
        An 8-byte element that does not fit in 32 bits.
    """

    def __init__(self, *, config: AcceleratorConfig, level: int):
        self.config = config
        self.level = level
        streams = config.streams_per_unit
        super().__init__(
            {
                "record": In(record_layout("unit0", config)),
                "streams": In(record_layout("unit0.stream0", config)).array(streams),
                "step": In(stream.Signature(step_layout(config))),
                "lines": Out(LinePort(config)).array(streams),
                "frame": In(stream.Signature(values_layout(config))),
                "token": Out(stream.Signature(token_layout(config))),
                "fault": Out(FaultSignature(config)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        step, loads = self.step.payload, self.step.payload.loads
        fire = Signal()
        leaves = Signal()  # a token leaves the unit
        lines_ready = Signal()
        takes = Signal()
        # A token has a place before its step is taken.
        inside = Signal(range(LUT_MEMORY_ENTRIES + 1))
        room = Signal(init=1)
        m.d.comb += [
            lines_ready.eq(
                Cat(
                    ~loads[s].use | self.lines[s].available for s in range(config.streams_per_unit)
                ).all()
            ),
            self.step.ready.eq(lines_ready & (room | step.iteration.ghost)),
            fire.eq(self.step.valid & self.step.ready),
            takes.eq(fire & ~step.iteration.ghost),
        ]
        with m.If(takes & ~leaves):
            m.d.sync += [inside.eq(inside + 1), room.eq(inside != LUT_MEMORY_ENTRIES - 1)]
        with m.Elif(leaves & ~takes):
            m.d.sync += [inside.eq(inside - 1), room.eq(1)]
        for s in range(config.streams_per_unit):
            m.d.comb += [
                self.lines[s].offset.eq(loads[s].offset),
                self.lines[s].new.eq(loads[s].new),
                self.lines[s].advance.eq(fire & loads[s].new),
            ]

        # Along with the line store's read and the extraction.
        valid, delayed = delay(m, "step", fire, step, line_store.READ_CYCLES + 1)
        values = []
        wide = []
        for s in range(config.streams_per_unit):
            load = delayed[line_store.READ_CYCLES - 1].loads[s]
            value, too_wide = self._extract(m, s, load)
            values.append(value)
            wide.append(too_wide)

        self._report_wide(m, valid[-1], delayed[-1], values, wide)
        paired, pair_token, pair_values, next_value = self._pair(
            m, valid[-1], delayed[-1].iteration, values
        )
        m.d.comb += leaves.eq(self.token.valid & self.token.ready)
        self._compute(m, paired, pair_token, pair_values, next_value)
        return m

    def _extract(self, m: Module, s: int, load):
        """Return the element within a line's half word as a value, and whether it did not fit.

        Elements are aligned to their size, so the offset's low bits need not be masked by it.
        """
        record, half = self.streams[s], self.lines[s].data
        value = Signal(VALUE_WIDTH_BITS, name=f"value{s}", reset_less=True)
        too_wide = Signal(name=f"too_wide{s}", reset_less=True)
        quarter = Mux(load.offset[1], half[16:], half[:16])
        byte = Mux(load.offset[0], quarter[8:], quarter[:8])
        is_byte = record.size == isa.ElementSize.BYTES_1
        is_short = is_byte | (record.size == isa.ElementSize.BYTES_2)
        sign = Signal(name=f"sign{s}")
        m.d.comb += sign.eq(record.signed & Mux(is_byte, byte[-1], quarter[-1]))
        m.d.sync += [
            value.eq(
                Cat(
                    byte,
                    Mux(is_byte, sign.replicate(8), quarter[8:]),
                    Mux(is_short, sign.replicate(16), half[16:]),
                )
            ),
            too_wide.eq(load.use & (record.size == isa.ElementSize.BYTES_8) & ~self.lines[s].fits),
        ]
        return value, too_wide

    def _report_wide(self, m: Module, valid, step, values, wide):
        m.d.sync += self.fault.valid.eq(0)
        for s in reversed(range(self.config.streams_per_unit)):
            with m.If(valid & wide[s]):
                m.d.sync += [
                    self.fault.valid.eq(1),
                    self.fault.payload.code.eq(FaultCode.VALUE_TOO_WIDE),
                    self.fault.payload.unit.eq(self.level),
                    self.fault.payload.stream.eq(s),
                    self.fault.payload.address.eq(values[s]),
                ]

    def _pair(self, m: Module, valid, iteration, values):
        """Hold an iterating step until the next one brings its NEXT value. Return what leaves."""
        config = self.config
        pairs = self.record.pair & (iteration.iterates | iteration.ghost)
        held = Signal()
        held_step = Signal(iteration_layout(config), reset_less=True)
        held_values = Signal(data.ArrayLayout(VALUE_WIDTH_BITS, len(values)), reset_less=True)
        now = Signal(data.ArrayLayout(VALUE_WIDTH_BITS, len(values)))
        m.d.comb += now.as_value().eq(Cat(*values))

        leaves = Signal()
        out_step = Signal(iteration_layout(config))
        out_values = Signal.like(now)
        with m.If(valid & pairs):
            m.d.sync += [
                held.eq(iteration.iterates),
                held_step.eq(iteration),
                held_values.eq(now),
            ]
        with m.If(pairs):
            m.d.comb += [
                leaves.eq(valid & held),
                out_step.eq(held_step),
                out_values.eq(held_values),
            ]
        with m.Else():
            m.d.comb += [leaves.eq(valid), out_step.eq(iteration), out_values.eq(now)]
        return leaves, out_step, out_values, values[0]

    def _compute(self, m: Module, valid, iteration, values, next_value):
        """Select operands and exports, run the ALU, bring both together as the token."""
        config, record = self.config, self.record
        above = list(self.frame.payload)
        own = [iteration.induction, *values]
        m.d.comb += self.frame.ready.eq(valid & iteration.last)

        # What is known now waits in one queue, the ALU's result comes to another.
        m.submodules.early = early = StreamFifo(
            shape=token_layout(config), depth_entries=LUT_MEMORY_ENTRIES
        )
        m.submodules.late = late = StreamFifo(
            shape=VALUE_WIDTH_BITS, depth_entries=LUT_MEMORY_ENTRIES
        )
        events = Signal(config.events, reset_less=True)
        pushes = Signal()
        m.d.sync += [pushes.eq(valid), events.eq(iteration.events)]
        m.d.comb += [early.i.valid.eq(pushes), early.i.payload.events.eq(events)]
        for i in range(config.exports):
            m.d.comb += early.i.payload.exports[i].eq(
                select_registered(m, f"export{i}", getattr(record, f"export{i}"), [above[i], *own])
            )

        a = Signal(signed(VALUE_WIDTH_BITS), reset_less=True)
        b = Signal(signed(VALUE_WIDTH_BITS), reset_less=True)
        next_held = Signal(VALUE_WIDTH_BITS, reset_less=True)
        from_slot = record.alu_b_source == isa.Source.SLOT
        m.d.sync += [
            a.eq(select(record.alu_a_slot, own)),
            b.eq(Mux(from_slot, select(record.alu_b_slot, own + above), record.alu_immediate)),
            next_held.eq(next_value),
        ]
        m.submodules.multiplier = multiplier = Multiplier(
            a=signed(VALUE_WIDTH_BITS), b=signed(VALUE_WIDTH_BITS), width_bits=VALUE_WIDTH_BITS
        )
        m.d.comb += [multiplier.a.eq(a), multiplier.b.eq(b)]
        # One adder for all: a - b is a + ~b + 1, the 1 being a carry from below.
        inverts_a = record.alu_operation == isa.AluOperation.RSUB
        inverts_b = record.alu_operation == isa.AluOperation.SUB
        carry = inverts_a | inverts_b
        total = Cat(carry, a ^ inverts_a.replicate(VALUE_WIDTH_BITS)) + Cat(
            carry, b ^ inverts_b.replicate(VALUE_WIDTH_BITS)
        )
        total_held = Signal(VALUE_WIDTH_BITS, reset_less=True)
        m.d.sync += total_held.eq(total[1:])
        # Only programs that use the adder wait for it, and only those that multiply for the
        # multiplier. What NEXT gives, or nobody uses, is known at once.
        uses_alu = Signal()
        multiplies = Signal()
        from_alu = [getattr(record, f"export{i}") == len(own) + 1 for i in range(config.exports)]
        m.d.sync += [
            uses_alu.eq(~record.pair & Cat(*from_alu).any()),
            multiplies.eq(record.alu_operation == isa.AluOperation.MUL),
        ]
        pushed, _ = delay(m, "pushed", pushes, Const(0, 0), multiplier.cycles)
        with m.If(~uses_alu):
            m.d.comb += [late.i.valid.eq(pushes), late.i.payload.eq(next_held)]
        with m.Elif(multiplies):
            m.d.comb += [late.i.valid.eq(pushed[-1]), late.i.payload.eq(multiplier.product)]
        with m.Else():
            m.d.comb += [late.i.valid.eq(pushed[0]), late.i.payload.eq(total_held)]

        m.d.comb += [
            self.token.valid.eq(late.o.valid),
            late.o.ready.eq(self.token.ready),
            early.o.ready.eq(self.token.valid & self.token.ready),
            self.token.payload.events.eq(early.o.payload.events),
        ]
        for i in range(config.exports):
            m.d.comb += self.token.payload.exports[i].eq(
                Mux(from_alu[i], late.o.payload, early.o.payload.exports[i])
            )
        # At the clock's edge: between edges the two sides of a wire may differ for a moment.
        m.d.sync += [
            Assert(~(late.o.valid & ~early.o.valid)),
            Assert(~(pushes & ~early.i.ready)),
            Assert(~(late.i.valid & ~late.i.ready)),
        ]
