"""Addresses of a stream's elements, their region check, and asking for each line once."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ember_hw import isa
from ember_hw.config import LINE_BYTES, VALUE_WIDTH_BITS, AcceleratorConfig
from ember_hw.registers import FaultCode
from ember_hw.rtl.faults import FaultSignature
from ember_hw.rtl.layouts import (
    iteration_layout,
    line_address_bits,
    load_layout,
    record_layout,
    window_layout,
)
from ember_hw.rtl.slots import select

#: Cycles from a step's entering to its load's leaving.
CYCLES = 2

_LARGEST_SHIFT = max(int(size) for size in isa.ElementSize)


class StreamAddress(wiring.Component):
    """Computes an element's address, and finds out whether its line is the one before.

    The element's number is that of its window, plus the induction value if the stream follows it;
    its address is ``base + (number << size)``. One step a cycle, `CYCLES` later one load, no stall.
    An element outside its region is not asked for: the load is dropped and a fault reported, by the
    low bits of the element's number.

    Parameters
    ----------
    config : AcceleratorConfig
    level, index : int
        Unit and number of the stream. Stream 0 also loads on ghost steps.

    Members
    -------
    record : in
        The stream's microcode record.
    valid, iteration, window : in
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
                "window": In(window_layout()),
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
        loads = self.iteration.iterates
        if self.index == 0:
            loads = loads | self.iteration.ghost
        root_begins = self.iteration.events[isa.event_bit(isa.Event.BEGIN, 0, config)]

        # 1: the element's number. "First step of the program" goes along.
        number = Signal(signed(len(self.window.start) + 1), reset_less=True)
        lost = Signal(reset_less=True)
        use = Signal(2)
        fresh = Signal(2)
        m.d.sync += [
            number.eq(
                self.window.start + Mux(record.induction, self.iteration.induction.as_signed(), 0)
            ),
            lost.eq(self.window.lost),
            use.eq(Cat(self.valid & loads & record.enable, use[0])),
            fresh.eq(Cat(self.valid & root_begins, fresh[0])),
        ]

        # 2: its address and its check. The base is a multiple of a line.
        element = number[:VALUE_WIDTH_BITS]
        offset = Signal(VALUE_WIDTH_BITS + _LARGEST_SHIFT)
        line = Signal(line_address_bits(config), reset_less=True)
        sum_bits = max(len(line), len(offset) - line_bits) + 1
        beyond = Signal(sum_bits - len(line), reset_less=True)  # the address width
        byte = Signal(line_bits, reset_less=True)
        outside = Signal(reset_less=True)
        blamed = Signal(VALUE_WIDTH_BITS, reset_less=True)
        m.d.comb += offset.eq(
            select(record.size, [element << shift for shift in range(_LARGEST_SHIFT + 1)])
        )
        m.d.sync += [
            Cat(line, beyond).eq(record.base[line_bits:] + offset[line_bits:]),
            byte.eq(offset),
            outside.eq(lost | number[VALUE_WIDTH_BITS:].any() | (element >= record.elements)),
            blamed.eq(element),
        ]

        # The line, if it is another one than before.
        previous = Signal.like(line, reset_less=True)
        have_previous = Signal()
        fetch = Signal()
        new = Signal()
        m.d.comb += [
            fetch.eq(use[-1] & ~outside & ~beyond.any()),
            new.eq(fetch & (fresh[-1] | ~have_previous | (line != previous))),
            self.load.eq(Cat(fetch, new, byte)),
            self.line.eq(line),
            self.line_valid.eq(new),
        ]
        with m.If(fetch):
            m.d.sync += [previous.eq(line), have_previous.eq(1)]
        with m.Elif(fresh[-1]):
            m.d.sync += have_previous.eq(0)
        m.d.sync += [
            self.fault.valid.eq(use[-1] & (outside | beyond.any())),
            self.fault.payload.code.eq(
                Mux(outside, FaultCode.STREAM_OUT_OF_BOUNDS, FaultCode.ADDRESS_OVERFLOW)
            ),
            self.fault.payload.unit.eq(Const(self.level, 8)),
            self.fault.payload.stream.eq(Const(self.index, 8)),
            self.fault.payload.address.eq(blamed),
        ]
        return m
