"""Addresses of a stream's elements, their region check, and asking for each line once."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ember_hw import isa
from ember_hw.config import LINE_BYTES, VALUE_WIDTH_BITS, AcceleratorConfig
from ember_hw.registers import FaultCode
from ember_hw.rtl.control import FaultSignature
from ember_hw.rtl.layouts import (
    iteration_layout,
    line_address_bits,
    load_layout,
    record_layout,
    values_layout,
)
from ember_hw.rtl.multiplier import CYCLES as MULTIPLIER_CYCLES
from ember_hw.rtl.multiplier import Multiplier
from ember_hw.rtl.slots import inherited, select

#: Cycles from a step's entering to its load's leaving.
CYCLES = 6

# Offsets within a region: 32-bit value shifted by up to 15, or times a 20-bit pitch, and their sum.
_OFFSET_BITS = VALUE_WIDTH_BITS + 22


class StreamAddress(wiring.Component):
    """Computes an element's address, and finds out whether its line is the one before.

    The address is ``base + first + (value << shift) + outer * second_pitch``.
    One step a cycle, `CYCLES` later one load, no stall. An element that is not wholly inside its
    region is not asked for: the load is dropped and a fault reported.

    Parameters
    ----------
    config : AcceleratorConfig
    level, index : int
        Unit and number of the stream. Stream 0 also loads on ghost steps.

    Members
    -------
    record : in
        The stream's microcode record.
    valid, iteration, exports : in
        A step of the iterator.
    load : out
        What the step needs of this stream, `CYCLES` after it.
    line, line_valid : out
        Number of a line to ask for, with the load that is the first to need it.
    fault : out
    """

    def __init__(self, *, config: AcceleratorConfig, level: int, index: int):
        if not 0 <= index < config.streams_per_unit:
            raise ValueError(
                f"index must be from 0 to {config.streams_per_unit - 1}, not {index!r}"
            )
        self.config = config
        self.level = level
        self.index = index
        super().__init__(
            {
                "record": In(record_layout("unit0.stream0", config)),
                "valid": In(1),
                "iteration": In(iteration_layout(config)),
                "exports": In(values_layout(config)),
                "load": Out(load_layout()),
                "line": Out(line_address_bits(config)),
                "line_valid": Out(1),
                "fault": Out(FaultSignature(config)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config, record = self.config, self.record
        line_bits = (LINE_BYTES - 1).bit_length()
        above = inherited(self.exports, config)
        value = select(m, "value_now", record.slot, {0: self.iteration.induction, **above})
        outer = select(m, "outer_now", record.second_slot, above)
        loads = self.iteration.iterates
        if self.index == 0:
            loads = loads | self.iteration.ghost
        root_begins = self.iteration.events[isa.event_bit(isa.Event.BEGIN, 0, config)]

        # Valid, use and "first step of the program" go along with the arithmetic.
        stages = CYCLES - 1
        use = [Signal(name=f"use{i}") for i in range(stages)]
        fresh = [Signal(name=f"fresh{i}") for i in range(stages)]
        m.d.sync += [
            use[0].eq(self.valid & loads & record.enable),
            fresh[0].eq(self.valid & root_begins),
        ]
        for i in range(1, stages):
            m.d.sync += [use[i].eq(use[i - 1]), fresh[i].eq(fresh[i - 1])]

        value_held = Signal(signed(VALUE_WIDTH_BITS))
        outer_held = Signal(signed(VALUE_WIDTH_BITS))
        m.submodules.multiplier = multiplier = Multiplier(
            a=signed(VALUE_WIDTH_BITS), b=len(record.second_pitch)
        )
        near = [Signal(signed(_OFFSET_BITS), name=f"near{i}") for i in range(MULTIPLIER_CYCLES)]
        offset = Signal(signed(_OFFSET_BITS))
        checked_offset = Signal(signed(_OFFSET_BITS))
        inside = Signal()
        address = Signal(config.address_width_bits)
        last_start = Signal(signed(config.address_width_bits + 2))
        m.d.comb += [multiplier.a.eq(outer_held), multiplier.b.eq(record.second_pitch)]
        m.d.sync += [
            value_held.eq(value),
            outer_held.eq(outer),
            near[0].eq((value_held << record.shift) + record.first),
            near[1].eq(near[0]),
            offset.eq(near[-1] + Mux(record.second_enable, multiplier.product, 0)),
            last_start.eq(record.region_bytes - (1 << record.size)),  # the region's last element
            checked_offset.eq(offset),
            inside.eq((offset >= 0) & (offset <= last_start)),
            address.eq(record.base + offset),
        ]

        line = address[line_bits:]
        previous = Signal.like(line)
        have_previous = Signal()
        fetch = Signal()
        new = Signal()
        m.d.comb += [
            fetch.eq(use[-1] & inside),
            new.eq(fetch & (fresh[-1] | ~have_previous | (line != previous))),
        ]
        with m.If(fetch):
            m.d.sync += [previous.eq(line), have_previous.eq(1)]
        with m.Elif(fresh[-1]):
            m.d.sync += have_previous.eq(0)
        m.d.sync += [
            self.load.eq(Cat(fetch, new, address[:line_bits])),
            self.line.eq(line),
            self.line_valid.eq(new),
            self.fault.valid.eq(use[-1] & ~inside),
            self.fault.payload.code.eq(FaultCode.STREAM_OUT_OF_BOUNDS),
            self.fault.payload.unit.eq(self.level),
            self.fault.payload.stream.eq(self.index),
            self.fault.payload.address.eq(record.base + checked_offset),
        ]
        return m
