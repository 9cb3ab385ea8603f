"""Turns rows of codes into rows of fp32 numbers, by the scale and bias in front of them."""

from __future__ import annotations

from amaranth.hdl import Cat, EnableInserter, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.config import AcceleratorConfig
from ember_hw.isa.reduce import NUMBER_BYTES
from ember_hw.rtl.delay import delay
from ember_hw.rtl.execute.code_align import CodeAlign
from ember_hw.rtl.execute.float_combine import Combine, FloatCombine
from ember_hw.rtl.execute.float_convert import FloatFromInteger, FloatWiden
from ember_hw.rtl.execute.float_format import BFLOAT16, FLOAT16, FLOAT32
from ember_hw.rtl.execute.reduce_layouts import CODE_BITS, coded_layout, group_layout
from ember_hw.rtl.execute.row_scale import RowScale
from ember_hw.rtl.fifos import LUT_MEMORY_ENTRIES, ReservedFifo
from ember_hw.rtl.layouts import row_beat_layout

_BITS = FLOAT32.width_bits
_HALF_BITS = FLOAT16.width_bits


class RowDequantise(wiring.Component):
    """number = scale * code + bias, each of both operations rounded; see `isa.reduce`.

    A group of `config.lanes` codes a cycle, a beat of them at most, in order; scale and bias take
    no cycle. The codes of a group with a scale that is a denormal number take more, see `RowScale`.
    A group is at the output 15 cycles after its codes came. A row without a code becomes one group
    of no bytes.

    Backpressure: codes are taken while their numbers have room.

    Members
    -------
    half_scale : in
        Scale and bias are fp16; constant while there are rows.
    i : stream, in
        Beats of rows: scale, bias, codes.
    o : stream, out
        Groups of the same rows in fp32.
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        super().__init__(
            {
                "half_scale": In(1),
                "i": In(stream.Signature(row_beat_layout(config))),
                "o": Out(stream.Signature(group_layout(config))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        lanes = self.config.lanes
        m.submodules.align = align = CodeAlign(config=self.config)
        wiring.connect(m, wiring.flipped(self.i), align.i)
        m.d.comb += align.half_scale.eq(self.half_scale)
        m.submodules.groups = groups = ReservedFifo(
            shape=group_layout(self.config), credits=LUT_MEMORY_ENTRIES
        )
        wiring.connect(m, groups.o, wiring.flipped(self.o))
        control = data.StructLayout({"count": range(lanes + 1), "last": 1, "bias": _BITS})
        m.submodules.scale = scale = RowScale(lanes=lanes, control=control, source=BFLOAT16)
        moves = scale.room

        # A beat, held while its parts are taken, so that scale and bias of the next row come.
        has_beat, is_free = Signal(), Signal()
        beat = Signal(coded_layout(self.config))
        m.d.comb += align.o.ready.eq(is_free)
        with m.If(is_free):
            m.d.sync += [has_beat.eq(align.o.valid), beat.eq(align.o.payload)]

        # The codes that are next: a part of it.
        parts = self.config.bus_bytes // lanes
        part = Signal(range(parts))
        left = Signal(range(self.config.bus_bytes + 1))
        is_done = Signal()
        m.d.comb += [
            left.eq(beat.count - part * lanes),
            is_done.eq(left <= lanes),
            groups.take.eq(has_beat & groups.room & moves),
            is_free.eq(~has_beat | (groups.take & is_done)),
        ]
        with m.If(groups.take):
            m.d.sync += part.eq(Mux(is_done, 0, part + 1))
        taken = Signal()
        codes = Signal(CODE_BITS * lanes)
        held = Signal(
            data.StructLayout({"factors": 2 * _BITS, "count": range(lanes + 1), "last": 1})
        )
        with m.If(moves):
            m.d.sync += [
                taken.eq(groups.take),
                codes.eq(beat.codes.as_value().word_select(part, CODE_BITS * lanes)),
                held.factors.eq(beat.factors),
                held.count.eq(Mux(is_done, left, lanes)),
                held.last.eq(beat.last & is_done),
            ]
        self._convert(m, scale, taken, codes, held)

        # Add.
        valids, launched = delay(
            m, "launched", scale.launch, scale.launched, 1 + FloatCombine.cycles
        )
        numbers = []
        for lane in range(lanes):
            m.submodules[f"add{lane}"] = add = FloatCombine()
            m.d.comb += [
                add.operation.eq(Combine.SUM),
                add.a.eq(scale.scaled_numbers.word_select(lane, _BITS)),
                add.b.eq(launched[0].bias),
            ]
            numbers.append(add.result)
        m.d.comb += [
            groups.push.eq(valids[-1]),
            groups.payload.data.eq(Cat(numbers)),
            groups.payload.bytes.eq(NUMBER_BYTES * launched[-1].count),
            groups.payload.last.eq(launched[-1].last),
        ]
        return m

    def _convert(self, m: Module, scale: RowScale, taken, codes, held) -> None:
        """Make numbers of codes and of fp16 factors, and scale; all waits for `scale.room`."""
        moves = EnableInserter(scale.room)
        half_factors = []
        for name, at in (("scale", 0), ("bias", _HALF_BITS)):
            widen = FloatWiden(source=FLOAT16)
            m.submodules[f"{name}_widen"] = moves(widen)
            m.d.comb += widen.number.eq(held.factors[at : at + _HALF_BITS])
            half_factors.append(widen.wide)
        numbers = []
        for lane in range(self.config.lanes):
            number = FloatFromInteger(integer=unsigned(CODE_BITS), format=BFLOAT16)
            m.submodules[f"number{lane}"] = moves(number)
            m.d.comb += number.integer.eq(codes.word_select(lane, CODE_BITS))
            numbers.append(number.number)
        for cycle in range(FloatWiden.cycles):
            taken_later = Signal(name=f"taken{cycle}")
            held_later = Signal.like(held, name=f"held{cycle}")
            with m.If(scale.room):
                m.d.sync += [taken_later.eq(taken), held_later.eq(held)]
            taken, held = taken_later, held_later
        weight, bias = (
            Mux(self.half_scale, half, held.factors.word_select(at, _BITS))
            for at, half in enumerate(half_factors)
        )
        m.d.comb += [
            scale.take.eq(taken & scale.room),
            scale.numbers.eq(Cat(numbers)),
            scale.scaled.eq(1),
            scale.weight.eq(weight),
            scale.control.count.eq(held.count),
            scale.control.last.eq(held.last),
            scale.control.bias.eq(bias),
        ]
