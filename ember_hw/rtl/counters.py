"""Where a program's cycles went, what was asked for, and how full the queues were."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ember_hw import registers
from ember_hw.config import AcceleratorConfig
from ember_hw.registers import Counter
from ember_hw.rtl.fifos import NO_BYPASS
from ember_hw.rtl.register_file import COUNTER_BITS
from ember_hw.rtl.slots import select

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

#: Width of a level.
LEVEL_BITS = 13

_LENGTH_BITS = 17


class Counters(wiring.Component):
    """Counts while requests run; the values stay until the next start from rest.

    Each cycle is a beat of a row, a beat of an index line, or one stall: the first of `STALLS` that
    holds, STALL_FRONT where none does. So CYCLES is the sum of the beats and the stalls.

    Each counter gathers its counts in a few bits of its own, which are added in turn to a word of a
    memory: one adder for all. So a value that is read while requests run is up to a round old, and
    `settled` says when the values at rest are exact.

    Members
    -------
    start : in
        Set all counters to 0; only at rest.
    running : in
        Count in this cycle.
    row_beat, index_beat : in
        A beat came back.
    stalls : in
        Bit i: reason i of `STALLS` holds.
    bundle : in
        A bundle was delivered.
    lines, rows : in
        Bit for each memory stream and for each row entry: it asked for a line, for a row.
    row_bytes : in
        The row's length.
    levels : in
        Levels in the order of `HIGH_WATER`.
    select : in; value : out
        A counter's value, four cycles later.
    settled : out
        All counts have reached the memory.
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
                "lines": In(config.traversal_units * config.streams_per_unit),
                "rows": In(config.row_entries),
                "row_bytes": In(_LENGTH_BITS),
                "levels": In(LEVEL_BITS).array(len(HIGH_WATER)),
                "select": In(range(registers.counters(config))),
                "value": Out(COUNTER_BITS),
                "settled": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        counters = registers.counters(self.config)
        round_bits = (counters - 1).bit_length()
        round_cycles = 1 << round_bits

        # What each counter adds in a cycle. A register between the blocks and the choice of what a
        # cycle was.
        start = Signal()
        counting = Signal()
        row_beat = Signal()
        index_beat = Signal()
        stalls = Signal(len(STALLS))
        bundle = Signal()
        asked = Signal(len(self.lines) + len(self.rows))
        row_bytes = Signal(_LENGTH_BITS)
        m.d.sync += [
            start.eq(self.start),
            counting.eq(self.running),
            row_beat.eq(self.row_beat),
            index_beat.eq(self.index_beat),
            stalls.eq(self.stalls),
            bundle.eq(self.bundle),
            asked.eq(Cat(self.lines, self.rows)),
            row_bytes.eq(Mux(self.rows.any(), self.row_bytes, 0)),
        ]
        adds = {counter: Signal(name=counter.name.lower()) for counter in Counter}
        adds[Counter.ROW_BYTES] = row_bytes
        m.d.comb += [
            adds[Counter.CYCLES].eq(1),
            adds[Counter.BUNDLES].eq(bundle),
            adds[Counter.ROWS].eq(asked[len(self.lines) :].any()),
        ]
        with m.If(row_beat):
            m.d.comb += adds[Counter.ROW_BEATS].eq(1)
        with m.Elif(index_beat):
            m.d.comb += adds[Counter.INDEX_BEATS].eq(1)
        for i, stall in enumerate(STALLS):
            with m.Elif(stalls[i]):
                m.d.comb += adds[stall].eq(1)
        with m.Else():
            m.d.comb += adds[Counter.STALL_FRONT].eq(1)

        # The counts since each one's last turn. High-water marks are added once, at the end.
        turn = Signal(round_bits)
        m.d.sync += turn.eq(turn + 1)
        gathered = []
        for number in range(counters):
            if number in HIGH_WATER:
                gathered.append(self._high_water(m, HIGH_WATER.index(number), start, counting))
                continue
            amount = (
                adds[Counter(number)] if number < len(Counter) else asked[number - len(Counter)]
            )
            count = Signal(round_bits + len(amount), name=f"gathered{number}")
            count_next = Signal.like(count, name=f"gathered_next{number}")
            m.d.comb += count_next.eq(count + (amount & counting.replicate(len(amount))))
            m.d.sync += count.eq(count_next)
            with m.If(start | (turn == number)):
                m.d.sync += count.eq(0)
            gathered.append(count_next)

        # One turn: read, add, write. In the first round after a start the memory's words count as
        # 0, and those of high-water marks always do.
        m.submodules.totals = totals = Memory(
            shape=COUNTER_BITS, depth=round_cycles, init=[], attrs=NO_BYPASS
        )
        turn_read = totals.read_port()
        host_read = totals.read_port()
        write = totals.write_port()
        first_round = Signal(range(round_cycles + 1))
        holds_mark = Signal()
        fresh = Signal()
        turns = [Signal(round_bits, name=f"turn{i}") for i in range(3)]
        total = Signal(COUNTER_BITS)
        increment = [Signal(max(map(len, gathered)), name=f"increment{i}") for i in range(2)]
        padded = gathered + [Const(0, 1)] * (round_cycles - counters)
        m.d.comb += [
            turn_read.addr.eq(turn),
            host_read.addr.eq(self.select),
            host_read.en.eq(turns[2] != self.select),
            holds_mark.eq(Cat(turn == number for number in HIGH_WATER).any()),
            write.addr.eq(turns[2]),
            write.data.eq(total),
            write.en.eq(1),
        ]
        previous = Signal(COUNTER_BITS)
        m.d.sync += [
            self.value.eq(host_read.data),
            turns[0].eq(turn),
            turns[1].eq(turns[0]),
            turns[2].eq(turns[1]),
            increment[0].eq(select(turn, padded)),
            increment[1].eq(increment[0]),
            fresh.eq((first_round != 0) | holds_mark),
            previous.eq(turn_read.data),
            total.eq(previous + increment[1]),
        ]
        with m.If(fresh):
            m.d.sync += previous.eq(0)
        with m.If(start):
            m.d.sync += first_round.eq(round_cycles)
        with m.Elif(first_round != 0):
            m.d.sync += first_round.eq(first_round - 1)

        # After the last count: a round, and the way to the memory.
        unsettled = Signal(round_bits + 2)
        with m.If(self.running | counting | self.start | start):
            m.d.sync += [unsettled.eq(round_cycles + 8), self.settled.eq(0)]
        with m.Elif(unsettled != 0):
            m.d.sync += unsettled.eq(unsettled - 1)
        with m.Else():
            m.d.sync += self.settled.eq(1)
        return m

    def _high_water(self, m: Module, index: int, start, counting) -> Signal:
        """Return the most that a level was since the start."""
        level = Signal(LEVEL_BITS, name=f"level{index}")
        most = Signal(LEVEL_BITS, name=f"most{index}")
        m.d.sync += level.eq(self.levels[index])
        with m.If(start):
            m.d.sync += most.eq(0)
        with m.Elif(counting & (level > most)):
            m.d.sync += most.eq(level)
        return most
