from __future__ import annotations

import pytest

from ember_hw import registers
from ember_hw.registers import Counter
from ember_hw.rtl.counters import HIGH_WATER, LEVEL_BITS, STALLS, Counters
from ember_hw.rtl.tests.harness import CONFIG, Bench

KINDS = (Counter.ROW_BEATS, Counter.INDEX_BEATS, *STALLS, Counter.STALL_FRONT)
ALL = range(registers.counters(CONFIG))
STREAMS = CONFIG.traversal_units * CONFIG.streams_per_unit
ROUND = 1 << (len(ALL) - 1).bit_length()
#: Cycles from a counter's choice to its value.
READ_CYCLES = 4


async def _value(ctx, dut: Counters, counter: int) -> int:
    ctx.set(dut.select, counter)
    await ctx.tick().repeat(READ_CYCLES)
    return ctx.get(dut.value)


async def _values(ctx, dut: Counters) -> dict[int, int]:
    """Return all counters once they have settled."""
    if not ctx.get(dut.settled):
        await ctx.tick().until(dut.settled)
    return {counter: await _value(ctx, dut, counter) for counter in ALL}


class Program(Bench):
    """Counters, and what they must hold after cycles of random events."""

    def __init__(self, *, seed: int = 0):
        super().__init__(Counters(config=CONFIG), seed=seed)
        self.expected = dict.fromkeys(ALL, 0)

    async def start(self, ctx) -> None:
        """Start in a cycle in which nothing runs yet, as the control does."""
        self.expected = dict.fromkeys(ALL, 0)
        ctx.set(self.dut.start, 1)
        await ctx.tick()
        ctx.set(self.dut.start, 0)

    async def run_cycles(self, ctx, cycles: int, *, busy: float = 0.5) -> None:
        """Run for some cycles, each of which is anything."""
        dut, expected = self.dut, self.expected

        def happens(chance: float) -> bool:
            return self.random.random() < chance

        for _ in range(cycles):
            row, index = happens(0.3), happens(0.2)
            stalls = [happens(0.2) for _ in STALLS]
            lines = sum(happens(busy) << i for i in range(STREAMS))
            entry = self.random.choice([None, *range(CONFIG.row_entries)])
            bundle, length = happens(busy), self.random.randrange(1, 1 << 17)
            levels = [self.random.randrange(1 << LEVEL_BITS) for _ in HIGH_WATER]
            ctx.set(dut.running, 1)
            ctx.set(dut.row_beat, row)
            ctx.set(dut.index_beat, index)
            ctx.set(dut.stalls, sum(stall << i for i, stall in enumerate(stalls)))
            ctx.set(dut.bundle, bundle)
            ctx.set(dut.lines, lines)
            ctx.set(dut.rows, 0 if entry is None else 1 << entry)
            ctx.set(dut.row_bytes, length)
            for counter, port, level in zip(HIGH_WATER, dut.levels, levels, strict=True):
                ctx.set(port, level)
                expected[counter] = max(expected[counter], level)
            await ctx.tick()
            holds = dict(zip(KINDS, [row, index, *stalls, True], strict=True))
            expected[next(kind for kind in KINDS if holds[kind])] += 1
            expected[Counter.CYCLES] += 1
            expected[Counter.BUNDLES] += bundle
            for i in range(STREAMS):
                expected[len(Counter) + i] += lines >> i & 1
            if entry is not None:
                expected[Counter.ROWS] += 1
                expected[Counter.ROW_BYTES] += length
                expected[registers.row_counter(entry, CONFIG)] += 1
        ctx.set(dut.running, 0)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_cycle_is_counted_once(seed: int):
    program = Program(seed=seed)

    async def drive(ctx):
        await ctx.tick().repeat(seed)
        await program.start(ctx)
        await program.run_cycles(ctx, 300)
        # Once it has ended nothing counts, whatever happens.
        values = await _values(ctx, program.dut)
        assert values == program.expected
        assert values[Counter.CYCLES] == sum(values[kind] for kind in KINDS)
        await ctx.tick().repeat(100)
        assert await _values(ctx, program.dut) == program.expected

    program.process(drive)
    program.run(2000)


@pytest.mark.parametrize("cycles", [1, 2, ROUND - 1, ROUND, ROUND + 1])
def test_programs_of_any_length_follow_each_other(cycles: int):
    """In whatever phase of a round one ends and the next starts."""
    program = Program(seed=cycles)

    async def drive(ctx):
        for pause in (0, 1, 2, 3, 5, ROUND - 1):
            await program.start(ctx)
            await program.run_cycles(ctx, cycles)
            for _ in range(pause):
                await ctx.tick()
        assert await _values(ctx, program.dut) == program.expected

    program.process(drive)
    program.run(2000)


def test_the_largest_counts_of_a_round_are_kept():
    dut = Counters(config=CONFIG)
    bench = Bench(dut)

    async def drive(ctx):
        ctx.set(dut.start, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        for port in (dut.running, dut.bundle):
            ctx.set(port, 1)
        ctx.set(dut.lines, (1 << STREAMS) - 1)
        ctx.set(dut.rows, 1)
        ctx.set(dut.row_bytes, (1 << 17) - 1)
        await ctx.tick().repeat(3 * ROUND)
        ctx.set(dut.running, 0)
        values = await _values(ctx, dut)
        assert values[Counter.ROW_BYTES] == 3 * ROUND * ((1 << 17) - 1)
        ones = (Counter.CYCLES, Counter.BUNDLES, Counter.ROWS, registers.row_counter(0, CONFIG))
        ones += tuple(registers.stream_counter(1, s, CONFIG) for s in range(2))
        assert {values[counter] for counter in ones} == {3 * ROUND}

    bench.process(drive)
    bench.run(1000)


def test_they_settle_within_two_rounds_of_the_end_and_not_before():
    dut = Counters(config=CONFIG)
    bench = Bench(dut)

    async def drive(ctx):
        assert await _values(ctx, dut) == dict.fromkeys(ALL, 0)
        ctx.set(dut.start, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        assert not ctx.get(dut.settled)
        ctx.set(dut.running, 1)
        await ctx.tick().repeat(200)
        assert not ctx.get(dut.settled)
        ctx.set(dut.running, 0)
        for _ in range(ROUND):
            await ctx.tick()
            assert not ctx.get(dut.settled)
        await ctx.tick().repeat(ROUND)
        assert ctx.get(dut.settled)

    bench.process(drive)
    bench.run(1000)


def test_a_start_alone_sets_them_to_0():
    program = Program(seed=4)

    async def drive(ctx):
        await program.start(ctx)
        await program.run_cycles(ctx, 100)
        assert await _values(ctx, program.dut) == program.expected
        await program.start(ctx)
        await ctx.tick()
        assert await _values(ctx, program.dut) == dict.fromkeys(ALL, 0)

    program.process(drive)
    program.run(1000)


def test_while_it_runs_values_are_a_round_old_at_most():
    dut = Counters(config=CONFIG)
    bench = Bench(dut)

    async def drive(ctx):
        ctx.set(dut.start, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        ctx.set(dut.running, 1)
        await ctx.tick().repeat(2 * ROUND)
        previous = 0
        for cycle in range(2 * ROUND, 6 * ROUND, READ_CYCLES):
            value = await _value(ctx, dut, Counter.CYCLES)
            assert cycle - ROUND - READ_CYCLES <= value <= cycle + READ_CYCLES
            assert value >= previous
            previous = value

    bench.process(drive)
    bench.run(1000)


@pytest.mark.parametrize("wait", range(6))
def test_a_value_comes_four_cycles_later_in_any_phase_of_a_round(wait: int):
    program = Program(seed=5)

    async def drive(ctx):
        await program.start(ctx)
        await program.run_cycles(ctx, 40)
        await ctx.tick().until(program.dut.settled)
        for counter in program.random.choices(list(ALL), k=30):
            assert await _value(ctx, program.dut, counter) == program.expected[counter]
            for _ in range(wait):
                await ctx.tick()

    program.process(drive)
    program.run(1000)
