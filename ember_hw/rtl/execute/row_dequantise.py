"""Turns rows of codes into rows of fp32 numbers, by the scale and bias in front of them."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.config import AcceleratorConfig
from ember_hw.isa.reduce import NUMBER_BYTES
from ember_hw.rtl.delay import delay
from ember_hw.rtl.execute.float_combine import Combine, FloatCombine
from ember_hw.rtl.execute.float_convert import FloatFromInteger, FloatWiden
from ember_hw.rtl.execute.float_format import FLOAT16, FLOAT32
from ember_hw.rtl.execute.float_multiply import FloatMultiply
from ember_hw.rtl.execute.reduce_layouts import lanes
from ember_hw.rtl.fifos import LUT_MEMORY_ENTRIES, ReservedFifo
from ember_hw.rtl.layouts import row_beat_layout

_CODE_BITS = 8
_BITS = FLOAT32.width_bits
_HALF_BITS = FLOAT16.width_bits


class RowDequantise(wiring.Component):
    """number = scale * code + bias, each of both operations rounded; see `isa.reduce`.

    `config.int8_lanes` codes a cycle, in order; the scale and the bias take no cycle. A number is
    at the output 16 cycles after its code came. A row without a code becomes one beat of no bytes.

    Backpressure: codes are taken while their numbers have room.

    Members
    -------
    half_scale : in
        Scale and bias are fp16; constant while there are rows.
    i : stream, in
        Beats of rows: scale, bias, codes.
    o : stream, out
        Beats of the same rows in fp32.
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        payload = row_beat_layout(config)
        super().__init__(
            {
                "half_scale": In(1),
                "i": In(stream.Signature(payload)),
                "o": Out(stream.Signature(payload)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        codes = config.int8_lanes  # that go together
        count_shape = range(codes + 1)
        group = data.StructLayout({"numbers": _BITS * codes, "count": count_shape, "last": 1})
        m.submodules.groups = groups = ReservedFifo(shape=group, credits=LUT_MEMORY_ENTRIES)

        # The codes that are next. A beat stays until its last ones are taken; the first beat of a
        # row begins behind scale and bias.
        beat = self.i.payload
        first = Signal(init=1)
        behind = Signal(range(config.bus_bytes + codes))  # codes of this beat that were taken
        header_bytes = Mux(self.half_scale, 4, 8)
        position = Signal(range(config.bus_bytes + codes + 1))
        left = Signal(range(config.bus_bytes + 1))
        count = Signal(count_shape)
        is_done = Signal()
        m.d.comb += [
            position.eq(Mux(first & (behind == 0), header_bytes, behind)),
            left.eq(Mux(beat.bytes > position, beat.bytes - position, 0)),
            count.eq(Mux(left > codes, codes, left)),
            is_done.eq(left <= codes),
            groups.take.eq(self.i.valid & groups.room),
            self.i.ready.eq(groups.room & is_done),
        ]
        factors = Signal(2 * _BITS)  # of the row, scale below bias
        held_factors = Signal.like(factors)
        m.d.comb += factors.eq(Mux(first, beat.data[: 2 * _BITS], held_factors))
        with m.If(self.i.valid & groups.room):
            m.d.sync += [
                behind.eq(Mux(is_done, 0, position + codes)),
                held_factors.eq(factors),
            ]
            with m.If(is_done):
                m.d.sync += first.eq(beat.last)

        # One cycle later.
        taken = Signal()
        held = Signal(
            data.StructLayout(
                {
                    "codes": data.ArrayLayout(_CODE_BITS, codes),
                    "factors": 2 * _BITS,
                    "count": count_shape,
                    "last": 1,
                }
            )
        )
        m.d.sync += [
            taken.eq(groups.take),
            held.codes.eq(beat.data.word_select(position // codes, _CODE_BITS * codes)),
            held.factors.eq(factors),
            held.count.eq(count),
            held.last.eq(beat.last & is_done),
        ]
        self._compute(m, taken, held, groups)
        self._collect(m, groups.o)
        return m

    def _compute(self, m: Module, taken, held, groups) -> None:
        """Convert codes and fp16 factors, multiply, add."""
        conversions = []
        for name, at in (("scale", 0), ("bias", _HALF_BITS)):
            m.submodules[f"{name}_widen"] = widen = FloatWiden(source=FLOAT16)
            m.d.comb += widen.number.eq(held.factors[at : at + _HALF_BITS])
            conversions.append(widen)
        cycles = FloatWiden.cycles
        whole = held.factors
        for cycle in range(cycles):
            later = Signal.like(held.factors, name=f"factors{cycle}")
            m.d.sync += later.eq(whole)
            whole = later
        scale = Mux(self.half_scale, conversions[0].wide, whole[:_BITS])
        bias = Signal(_BITS)
        m.d.comb += bias.eq(Mux(self.half_scale, conversions[1].wide, whole[_BITS:]))

        products = []
        for lane in range(self.config.int8_lanes):
            m.submodules[f"code{lane}"] = code = FloatFromInteger(integer_bits=_CODE_BITS + 1)
            m.submodules[f"multiply{lane}"] = multiply = FloatMultiply()
            m.d.comb += [
                code.integer.eq(held.codes[lane]),
                multiply.a.eq(code.number),
                multiply.b.eq(scale),
            ]
            products.append(multiply)
        for cycle in range(products[0].cycles):
            later = Signal(_BITS, name=f"bias{cycle}")
            m.d.sync += later.eq(bias)
            bias = later
        numbers = []
        for lane, multiply in enumerate(products):
            m.submodules[f"add{lane}"] = add = FloatCombine()
            m.d.comb += [
                add.operation.eq(Combine.SUM),
                add.a.eq(multiply.product),
                add.b.eq(bias),
            ]
            numbers.append(add.result)
        cycles += products[0].cycles + FloatCombine.cycles
        valids, facts = delay(m, "facts", taken, _facts(m, held), cycles)
        m.d.comb += [
            groups.push.eq(valids[-1]),
            groups.payload.numbers.eq(Cat(numbers)),
            groups.payload.count.eq(facts[-1].count),
            groups.payload.last.eq(facts[-1].last),
        ]

    def _collect(self, m: Module, group) -> None:
        """Make beats of groups."""
        codes = self.config.int8_lanes
        parts = lanes(self.config) // codes
        part = Signal(range(parts))
        free = Signal()
        m.d.comb += [
            free.eq(~self.o.valid | self.o.ready),
            group.ready.eq(free),
        ]
        with m.If(free):
            is_full = group.valid & (group.payload.last | (part == parts - 1))
            m.d.sync += self.o.valid.eq(is_full)
            with m.If(group.valid):
                m.d.sync += [
                    part.eq(Mux(is_full, 0, part + 1)),
                    self.o.payload.data.word_select(part, _BITS * codes).eq(group.payload.numbers),
                    self.o.payload.bytes.eq(NUMBER_BYTES * (part * codes + group.payload.count)),
                    self.o.payload.last.eq(group.payload.last),
                ]


def _facts(m: Module, held):
    """Return what goes beside the numbers of a group."""
    facts = Signal(data.StructLayout({"count": len(held.count), "last": 1}))
    m.d.comb += [facts.count.eq(held.count), facts.last.eq(held.last)]
    return facts
