"""Brings a loop's steps together with what they loaded: extraction, NEXT values, ALU, exports."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw import isa
from ember_hw.config import LINE_BYTES, VALUE_WIDTH_BITS, AcceleratorConfig
from ember_hw.registers import FaultCode
from ember_hw.rtl import line_store, multiplier
from ember_hw.rtl.control import FaultSignature
from ember_hw.rtl.delay import delay
from ember_hw.rtl.fifos import ReservedFifo
from ember_hw.rtl.layouts import (
    iteration_layout,
    record_layout,
    step_layout,
    token_layout,
    values_layout,
)
from ember_hw.rtl.slots import inherited, select

_WORD_BYTES = 8

# From the line store's answer: word, value, pair, operands; the ALU; and what the queue adds.
_QUEUE_CREDITS = 20

#: Steps that the join has taken while it still needs their frames: the line store's read, word,
#: value, pair, and the cycles until a frame's place is free again.
STEPS = 8


class LinePort(wiring.Signature):
    """The reading side of a `LineStore`, seen from the join."""

    def __init__(self, config: AcceleratorConfig):
        self.config = config
        super().__init__(
            {
                "available": In(1),
                "advance": Out(1),
                "offset": Out(range(LINE_BYTES)),
                "data": In(config.data_width_bits),
            }
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LinePort) and self.config == other.config


class Join(wiring.Component):
    """Turns steps into tokens: each waits for the lines it needs, then its values are computed.

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
        m.submodules.queue = queue = ReservedFifo(
            shape=token_layout(config), credits=_QUEUE_CREDITS
        )
        wiring.connect(m, queue.o, wiring.flipped(self.token))

        step, loads = self.step.payload, self.step.payload.loads
        fire = Signal()
        lines_ready = Signal()
        m.d.comb += [
            lines_ready.eq(
                Cat(
                    ~loads[s].new | self.lines[s].available for s in range(config.streams_per_unit)
                ).all()
            ),
            fire.eq(self.step.valid & lines_ready & (queue.room | step.iteration.ghost)),
            self.step.ready.eq(lines_ready & (queue.room | step.iteration.ghost)),
            queue.take.eq(fire & ~step.iteration.ghost),
        ]
        for s in range(config.streams_per_unit):
            m.d.comb += [
                self.lines[s].advance.eq(fire & loads[s].new),
                self.lines[s].offset.eq(loads[s].offset),
            ]

        # Along with the line store's read, the word and the value.
        cycles = line_store.READ_CYCLES + 2
        valid, delayed = delay(m, "step", fire, step, cycles)
        values = []
        wide = []
        for s in range(config.streams_per_unit):
            at_data = delayed[line_store.READ_CYCLES - 1].loads[s]
            word = Signal(8 * _WORD_BYTES, name=f"word{s}")
            words_per_beat = config.bus_bytes // _WORD_BYTES
            index = at_data.offset[3 : 3 + (words_per_beat - 1).bit_length()]
            m.d.sync += word.eq(self.lines[s].data.word_select(index, 8 * _WORD_BYTES))
            at_word = delayed[line_store.READ_CYCLES].loads[s]
            value, too_wide = self._extract(m, s, word, at_word)
            values.append(value)
            wide.append(too_wide)

        self._report_wide(m, valid[-1], delayed[-1], values, wide)
        paired, pair_token, pair_values, next_value = self._pair(
            m, valid[-1], delayed[-1].iteration, values
        )
        self._compute(m, queue, paired, pair_token, pair_values, next_value)
        return m

    def _extract(self, m: Module, s: int, word, load):
        """Return the element of a word as a value, one cycle later, and whether it did not fit."""
        record = self.streams[s]
        shifted = Signal(8 * _WORD_BYTES, name=f"shifted{s}")
        value = Signal(VALUE_WIDTH_BITS, name=f"value{s}")
        too_wide = Signal(name=f"too_wide{s}")
        m.d.comb += shifted.eq(word >> (load.offset[:3] << 3))
        m.d.sync += too_wide.eq(0)
        with m.Switch(record.size):
            for size in (isa.ElementSize.BYTES_1, isa.ElementSize.BYTES_2):
                width = 8 << int(size)
                with m.Case(size):
                    fill = (record.signed & shifted[width - 1]).replicate(VALUE_WIDTH_BITS - width)
                    m.d.sync += value.eq(Cat(shifted[:width], fill))
            with m.Case(isa.ElementSize.BYTES_4):
                m.d.sync += value.eq(shifted)
            with m.Case(isa.ElementSize.BYTES_8):
                high = shifted[VALUE_WIDTH_BITS - 1 :]
                m.d.sync += [value.eq(shifted), too_wide.eq(load.use & high.any() & ~high.all())]
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
        """Hold an iterating step until the next one brings its NEXT value.

        Returns what leaves, a cycle later.
        """
        config = self.config
        pairs = self.record.pair & (iteration.iterates | iteration.ghost)
        held = Signal()
        held_step = Signal(iteration_layout(config))
        held_values = Signal(data.ArrayLayout(VALUE_WIDTH_BITS, len(values)))
        now = Signal(data.ArrayLayout(VALUE_WIDTH_BITS, len(values)))
        m.d.comb += now.as_value().eq(Cat(*values))

        leaves = Signal()
        out_step = Signal(iteration_layout(config))
        out_values = Signal.like(now)
        next_value = Signal(VALUE_WIDTH_BITS)
        m.d.sync += [leaves.eq(0), next_value.eq(values[0])]
        with m.If(valid & pairs):
            m.d.sync += [
                leaves.eq(held),
                out_step.eq(held_step),
                out_values.eq(held_values),
                held.eq(iteration.iterates),
                held_step.eq(iteration),
                held_values.eq(now),
            ]
        with m.Elif(valid):
            m.d.sync += [leaves.eq(1), out_step.eq(iteration), out_values.eq(now)]
        return leaves, out_step, out_values, next_value

    def _compute(self, m: Module, queue, valid, iteration, values, next_value):
        """Select operands and exports, run the ALU, push the token."""
        config, record = self.config, self.record
        streams = config.streams_per_unit
        alu_slot = 1 + streams
        above = inherited(self.frame.payload, config)
        own: dict[int, object] = {0: iteration.induction}
        own |= {1 + s: values[s] for s in range(streams)}
        m.d.comb += self.frame.ready.eq(valid & iteration.last)

        a = Signal(signed(VALUE_WIDTH_BITS))
        b = Signal(signed(VALUE_WIDTH_BITS))
        b_now = select(m, "alu_b_now", record.alu_b_slot, own | above)
        m.d.sync += [
            a.eq(select(m, "alu_a_now", record.alu_a_slot, own | above)),
            b.eq(Mux(record.alu_b_source == isa.Source.SLOT, b_now, record.alu_immediate)),
        ]

        # A unit that the program does not use hands its inherited values on.
        exports = Signal(values_layout(config))
        from_alu = []
        for i in range(config.exports):
            slot = getattr(record, f"export{i}")
            choice = select(m, f"export{i}_now", slot, own | above | {alu_slot: next_value})
            m.d.sync += exports[i].eq(Mux(record.enable, choice, self.frame.payload[i]))
            from_alu.append(record.enable & ~record.pair & (slot == alu_slot))

        m.submodules.multiplier = product = multiplier.Multiplier(
            a=signed(VALUE_WIDTH_BITS), b=signed(VALUE_WIDTH_BITS)
        )
        m.d.comb += [product.a.eq(a), product.b.eq(b)]
        short = Signal(VALUE_WIDTH_BITS)
        with m.Switch(record.alu_operation):
            with m.Case(isa.AluOperation.ADD):
                m.d.sync += short.eq(a + b)
            with m.Case(isa.AluOperation.SUB):
                m.d.sync += short.eq(a - b)
            with m.Case(isa.AluOperation.SHL):
                m.d.sync += short.eq(a << b[:5])
        short_held = Signal.like(short)
        m.d.sync += short_held.eq(short)
        result = Mux(
            record.alu_operation == isa.AluOperation.MUL,
            product.product[:VALUE_WIDTH_BITS],
            short_held,
        )

        partial = Signal(token_layout(config))
        m.d.comb += partial.exports.eq(exports)
        pushes = Signal()
        events = Signal(config.events)
        m.d.sync += [pushes.eq(valid), events.eq(iteration.events)]
        m.d.comb += partial.events.eq(events)
        pushed, tokens = delay(m, "token", pushes, partial, multiplier.CYCLES)
        m.d.comb += [queue.push.eq(pushed[-1]), queue.payload.events.eq(tokens[-1].events)]
        for i in range(config.exports):
            m.d.comb += queue.payload.exports[i].eq(Mux(from_alu[i], result, tokens[-1].exports[i]))
