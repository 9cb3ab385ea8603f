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
    exports: list[int] = field(default_factory=lambda: [0] * CONFIG.exports)

    def entry(self) -> dict:
        upper = self.lower + self.trips * self.step - (self.step > 1 and self.trips > 0)
        return {
            "events": self.events,
            "exports": self.exports,
            "lower": self.lower & 0xFFFF_FFFF,
            "left": upper - self.lower - 1 - self.step,
            "void": self.void,
            "empty": not self.void and self.trips == 0,
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
            lower=dice.choice([0, 5, -7, (1 << 31) - 10 * step]),
            trips=dice.choice([0, 1, 1, 2, 5]),
            step=step,
            void=dice.random() < 0.2,
            events=dice.randrange(1 << CONFIG.events) & (OPENING | CLOSING),
            exports=[dice.randrange(1 << 32) for _ in range(CONFIG.exports)],
        )
        for _ in range(count)
    ]


def _simulate(loops: list[Loop], *, step: int, pair: bool, seed: int, stall: float) -> Bench:
    dut = Iterator(config=CONFIG, level=LEVEL)
    bench = Bench(dut, seed=seed)
    expected = [(step, loop.exports) for loop in loops for step in loop.steps(pair)]

    async def check(ctx):
        cycle = 0
        ctx.set(dut.record, {"step": step, "pair": pair, "enable": 1})
        for wanted, exports in expected:
            valid = 0
            while not valid:
                ctx.set(dut.room, bench.random.random() >= stall)
                _, _, valid, bits, inherited = await ctx.tick().sample(
                    dut.valid, Value.cast(dut.iteration), dut.exports
                )
                cycle += 1
            seen = unpack(dut.iteration.shape(), bits)
            assert {name: seen[name] for name in wanted} == wanted
            assert list(inherited) == exports
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
