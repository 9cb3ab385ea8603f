"""Where a program's cycles went, and how full the queues were."""

from __future__ import annotations

from amaranth.hdl import Array, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ember_hw.config import AcceleratorConfig
from ember_hw.registers import Counter
from ember_hw.rtl.register_file import COUNTER_BITS

#: Stalls in the order in which they are blamed.
STALLS = (
    Counter.STALL_EXECUTE,
    Counter.STALL_OUTSTANDING,
    Counter.STALL_REORDER,
    Counter.STALL_REQUEST,
    Counter.STALL_MEMORY,
)

#: Counters that hold the most they saw.
HIGH_WATER = (
    Counter.HIGH_BUNDLES,
    Counter.HIGH_ROW_BEATS,
    Counter.HIGH_OUTSTANDING,
    Counter.HIGH_TOKENS,
)

_LEVEL_BITS = 16


class Counters(wiring.Component):
    """Counts while a program runs; the values stay until the next start.

    Each cycle is a beat of a row, a beat of an index line, or one stall: the first of `STALLS` that
    holds, STALL_FRONT where none does. So CYCLES is the sum of the beats and the stalls.

    Members
    -------
    start : in
        Set all counters to 0.
    running : in
        Count in this cycle.
    row_beat, index_beat : in
        A beat came back.
    stalls : in
        Bit i: reason i of `STALLS` holds.
    bundle, row : in
        A bundle was delivered, a row asked for.
    row_bytes : in
        The row's length.
    levels : in
        Levels in the order of `HIGH_WATER`.
    select : in; value : out
        A counter's value, one cycle later.
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        super().__init__(
            {
                "start": In(1),
                "running": In(1),
                "row_beat": In(1),
                "index_beat": In(1),
                "stalls": In(len(STALLS)),
                "bundle": In(1),
                "row": In(1),
                "row_bytes": In(17),
                "levels": In(_LEVEL_BITS).array(len(HIGH_WATER)),
                "select": In(range(len(Counter))),
                "value": Out(COUNTER_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        counts = {counter: Signal(COUNTER_BITS, name=counter.name.lower()) for counter in Counter}

        # A register between the blocks and the choice of what a cycle was.
        counting = Signal()
        row_beat = Signal()
        index_beat = Signal()
        stalls = Signal(len(STALLS))
        m.d.sync += [
            counting.eq(self.running),
            row_beat.eq(self.row_beat),
            index_beat.eq(self.index_beat),
            stalls.eq(self.stalls),
        ]

        def count(counter: Counter, amount=1) -> None:
            m.d.sync += counts[counter].eq(counts[counter] + amount)

        with m.If(self.start):
            m.d.sync += [signal.eq(0) for signal in counts.values()]
        with m.Elif(counting):
            count(Counter.CYCLES)
            with m.If(row_beat):
                count(Counter.ROW_BEATS)
            with m.Elif(index_beat):
                count(Counter.INDEX_BEATS)
            for i, stall in enumerate(STALLS):
                with m.Elif(stalls[i]):
                    count(stall)
            with m.Else():
                count(Counter.STALL_FRONT)
            with m.If(self.bundle):
                count(Counter.BUNDLES)
            with m.If(self.row):
                count(Counter.ROWS)
                count(Counter.ROW_BYTES, self.row_bytes)
            for counter, level in zip(HIGH_WATER, self.levels, strict=True):
                with m.If(level > counts[counter]):
                    m.d.sync += counts[counter].eq(level)

        m.d.sync += self.value.eq(Array(counts[counter] for counter in Counter)[self.select])
        return m
