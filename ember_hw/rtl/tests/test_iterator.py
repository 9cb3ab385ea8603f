from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from amaranth.hdl import Value

from ember_hw import isa
from ember_hw.isa import Event, event_bit
from ember_hw.rtl.iterator import Iterator
from ember_hw.rtl.tests.harness import CONFIG, Bench, gaps, payloads, refuses, unpack

LEVEL = 1
BEGIN, ITERATE, END = (1 << event_bit(event, LEVEL, CONFIG) for event in Event)
OPENING = isa.event_mask([(Event.BEGIN, 0), (Event.ITERATE, 0)], CONFIG)
CLOSING = isa.event_mask([(Event.END, 0)], CONFIG)


@dataclass
class Loop:
    """One entry, and the steps it must become."""

    lower: int
    trips: int
    step: int
    void: bool = False
    events: int = 0
    windows: list[dict] = field(
        default_factory=lambda: [{"start": 0, "lost": 0}] * CONFIG.streams_per_unit
    )

    def entry(self) -> dict:
        upper = self.lower + self.trips * self.step - (self.step > 1 and self.trips > 0)
        return {
            "events": self.events,
            "lower": self.lower & 0xFFFF_FFFF,
            "left": upper - self.lower - 1 - self.step,
            "void": self.void,
            "empty": not self.void and self.trips == 0,
            "windows": self.windows,
        }

    def steps(self, pair: bool) -> list[dict]:
        if self.void or self.trips == 0:
            own = 0 if self.void else BEGIN | END
            events = self.events & (OPENING | CLOSING) | own
            return [{"events": events, "iterates": 0, "ghost": 0, "last": 1}]
        steps = []
        for i in range(self.trips):
            last = i == self.trips - 1
            events = ITERATE
            events |= (self.events & OPENING | BEGIN) if i == 0 else 0
            events |= (self.events & CLOSING | END) if last else 0
            induction = self.lower + i * self.step & 0xFFFF_FFFF
            steps.append({"events": events, "iterates": 1, "ghost": 0, "last": int(last)})
            steps[-1]["induction"] = induction
        if pair:
            steps.append({"events": 0, "iterates": 0, "ghost": 1, "last": 0})
            steps[-1]["induction"] = self.lower + self.trips * self.step & 0xFFFF_FFFF
        return steps


def _loops(seed: int, count: int, step: int) -> list[Loop]:
    dice = random.Random(seed)
    return [
        Loop(
            lower=dice.choice([0, 5, -7, -(1 << 31), (1 << 31) - 10 * step]),
            trips=dice.choice([0, 1, 1, 2, 5]),
            step=step,
            void=dice.random() < 0.2,
            events=dice.randrange(1 << CONFIG.events) & (OPENING | CLOSING),
            windows=[
                {"start": dice.randrange(-(1 << 33), 1 << 33), "lost": dice.randrange(2)}
                for _ in range(CONFIG.streams_per_unit)
            ],
        )
        for _ in range(count)
    ]


def _simulate(loops: list[Loop], *, step: int, pair: bool, seed: int, stall: float) -> Bench:
    dut = Iterator(config=CONFIG, level=LEVEL)
    bench = Bench(dut, seed=seed)
    expected = [(step, loop.windows) for loop in loops for step in loop.steps(pair)]

    async def check(ctx):
        cycle = 0
        ctx.set(dut.record, {"step": step, "pair": pair, "enable": 1})
        for wanted, windows in expected:
            valid = 0
            while not valid:
                ctx.set(dut.room, bench.random.random() >= stall)
                _, _, valid, bits, shown = await ctx.tick().sample(
                    dut.valid, Value.cast(dut.iteration), Value.cast(dut.windows)
                )
                cycle += 1
            seen = unpack(dut.iteration.shape(), bits)
            assert {name: seen[name] for name in wanted} == wanted
            assert unpack(dut.windows.shape(), shown) == windows
            bench.cycles.append(cycle)
        ctx.set(dut.room, 1)
        for _ in range(5):
            await ctx.tick()
            assert not ctx.get(dut.valid)

    bench.cycles = []
    bench.process(check)
    bench.sent = bench.send(dut.entry, [loop.entry() for loop in loops], stall=stall)
    bench.run(3000)
    return bench


@pytest.mark.parametrize("level", [-1, 2])
def test_a_level_that_is_not_there_is_refused(level: int):
    with refuses(f"level must be from 0 to 1, not {level}"):
        Iterator(config=CONFIG, level=level)


@pytest.mark.parametrize("pair", [False, True])
@pytest.mark.parametrize(("seed", "step"), [(1, 1), (2, 3), (3, 65535)])
def test_every_entry_becomes_its_steps(seed: int, step: int, pair: bool):
    _simulate(_loops(seed, 30, step), step=step, pair=pair, seed=seed, stall=0.3)


@pytest.mark.parametrize("pair", [False, True])
def test_no_bubble_between_entries(pair: bool):
    bench = _simulate(_loops(7, 30, 2), step=2, pair=pair, seed=0, stall=0.0)
    first = bench.cycles[0]
    assert bench.cycles == list(range(first, first + len(bench.cycles)))
    assert len(payloads(bench.sent)) == 30


def test_an_entry_is_taken_with_the_last_step_of_the_one_before():
    bench = _simulate([Loop(0, 1, 1)] * 20, step=1, pair=False, seed=0, stall=0.0)
    assert gaps(bench.sent) == {1}


def test_a_loop_over_all_values_goes_on():
    """The distance from the least to the most value has 33 bits."""
    dut = Iterator(config=CONFIG, level=LEVEL)
    bench = Bench(dut)
    step = 65535
    left = (1 << 32) - 2 - step
    bench.send(dut.entry, [{"lower": 1 << 31, "left": left}])

    async def check(ctx):
        ctx.set(dut.record, {"step": step, "enable": 1})
        ctx.set(dut.room, 1)
        await ctx.tick().until(dut.valid)
        for i in range(200):
            assert ctx.get(dut.valid)
            assert not ctx.get(dut.iteration.last)
            assert ctx.get(dut.iteration.induction) == (1 << 31) + step * (i + 1) & 0xFFFF_FFFF
            await ctx.tick()

    bench.process(check)
    bench.run(300)


def test_nothing_leaves_without_room():
    dut = Iterator(config=CONFIG, level=LEVEL)
    bench = Bench(dut)
    bench.send(dut.entry, [Loop(0, 3, 1).entry()] * 1)
    seen = bench.watch(dut.valid)

    async def check(ctx):
        ctx.set(dut.record, {"step": 1, "enable": 1})
        await ctx.tick().repeat(20)

    bench.process(check)
    bench.run(50)
    assert seen == []
