"""The accumulator: a row of numbers that others are added to, a group a cycle."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ember_hw.config import AcceleratorConfig
from ember_hw.isa.reduce import ACCUMULATOR_BEATS
from ember_hw.rtl.delay import delay
from ember_hw.rtl.execute.float_combine import Combine, FloatCombine
from ember_hw.rtl.execute.float_format import FLOAT32
from ember_hw.rtl.execute.reduce_layouts import control_layout
from ember_hw.rtl.fifos import NO_BYPASS

_BITS = FLOAT32.width_bits


class RowAccumulate(wiring.Component):
    """Combines each group with the accumulated one of its number; keeps the result, or emits it.

    A group a cycle, never stalled: its result comes `cycles` after `launch`. A group finds what an
    earlier one of its number kept if that was launched `least_distance` cycles before, or more.

    Parameters
    ----------
    config : AcceleratorConfig
        Gives the lanes.
    forwards : bool
        Results go back to the adders beside the memory: less distance for more logic.

    Members
    -------
    launch, launched : in
        A group's numbers follow a cycle later, and what is done with it.
    numbers : in
        Of the group launched a cycle ago.
    valid, control, result : out
        A result, and what was launched with it.
    busy : out
        A group is inside, that of this cycle's result included, that of this cycle's `launch` not.

    Attributes
    ----------
    cycles : int
        From `launch` to result.
    """

    cycles = 2 + FloatCombine.cycles

    def __init__(self, *, config: AcceleratorConfig, forwards: bool):
        self.config = config
        self.forwards = forwards
        width_bits = _BITS * config.lanes
        super().__init__(
            {
                "launch": In(1),
                "launched": In(control_layout(config)),
                "numbers": In(width_bits),
                "valid": Out(1),
                "control": Out(control_layout(config)),
                "result": Out(width_bits),
                "busy": Out(1),
            }
        )

    @staticmethod
    def least_distance(forwards: bool) -> int:
        """Return the cycles after which a group may follow one of the same number."""
        # Behind the adders a result is written, a cycle later read, and waits in a register.
        return FloatCombine.cycles + (0 if forwards else 3)

    def elaborate(self, platform):
        m = Module()
        lanes = self.config.lanes
        width_bits = _BITS * lanes
        valids, controls = delay(m, "control", self.launch, self.launched, self.cycles)
        last = self.cycles - 1
        m.d.comb += [
            self.valid.eq(valids[last]),
            self.control.eq(controls[last]),
        ]
        busy = 0
        for valid in valids:
            busy = busy | valid
        m.d.comb += self.busy.eq(busy)

        m.submodules.memory = memory = Memory(
            shape=width_bits, depth=ACCUMULATOR_BEATS, init=[], attrs=NO_BYPASS
        )
        write, read = memory.write_port(), memory.read_port()
        m.d.comb += [
            read.addr.eq(self.launched.number),
            read.en.eq(1),
            write.addr.eq(self.control.number),
            write.data.eq(self.result),
            write.en.eq(self.valid & self.control.keeps),
        ]

        # What is combined with the row: of the memory, or what is not there yet. What is not meant
        # is zero, so that an OR joins them; a register is made zero without logic.
        accumulated = Signal(width_bits, reset_less=True)
        bypassed = Signal(width_bits, reset_less=True)
        at_result, at_earlier, from_result = Signal(), Signal(), Signal()
        comes_next = Signal()
        if self.forwards:
            # Whose result is this group's, told a cycle before: it is there, it was, it comes next.
            follows = [Signal(name=f"follows{i}") for i in range(3)]
            stages = (
                (self.launched.number, last - 1),
                (self.launched.number, last),
                (controls[0].number, last - 1),
            )
            m.d.comb += [
                follow.eq(valids[i] & controls[i].keeps & (controls[i].number == number))
                for follow, (number, i) in zip(follows, stages, strict=True)
            ]
            earlier_result = Signal(width_bits, reset_less=True)
            m.d.comb += comes_next.eq(follows[2])
            m.d.sync += [
                earlier_result.eq(self.result),
                at_result.eq(follows[0]),
                at_earlier.eq(follows[1]),
                from_result.eq(comes_next & controls[0].joins),
                bypassed.eq(Mux(at_result, self.result, earlier_result)),
            ]
            with m.If(~controls[0].joins | comes_next | ~(at_result | at_earlier)):
                m.d.sync += bypassed.eq(0)
        m.d.sync += accumulated.eq(read.data)
        with m.If(~controls[0].joins | comes_next | at_result | at_earlier):
            m.d.sync += accumulated.eq(0)
        # The maximum of a number and -inf, a NaN made quiet, is its sum with -0.
        operation = Signal(Combine, reset_less=True)
        m.d.sync += operation.eq(controls[0].combine)
        with m.If(~controls[0].joins & (controls[0].combine == Combine.MAXIMUM)):
            m.d.sync += operation.eq(Combine.SUM)
            for lane in range(lanes):
                m.d.sync += accumulated.word_select(lane, _BITS)[-1].eq(1)

        numbers = Signal(width_bits, reset_less=True)
        m.d.sync += numbers.eq(self.numbers)
        for lane in range(lanes):
            m.submodules[f"lane{lane}"] = combine = FloatCombine()
            found = (
                self.result.word_select(lane, _BITS) & from_result.replicate(_BITS)
                | bypassed.word_select(lane, _BITS)
                | accumulated.word_select(lane, _BITS)
            )
            m.d.comb += [
                combine.operation.eq(operation),
                combine.a.eq(numbers.word_select(lane, _BITS)),
                combine.b.eq(found),
                self.result.word_select(lane, _BITS).eq(combine.result),
            ]
        return m
