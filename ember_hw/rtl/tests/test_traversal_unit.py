from __future__ import annotations

import random
from collections import deque
from itertools import pairwise

import pytest

from ember_hw import isa
from ember_hw.config import AcceleratorConfig
from ember_hw.isa import BoundSource, ElementSize, Event, Source, event_bit
from ember_hw.registers import FaultCode
from ember_hw.rtl.axi import Response
from ember_hw.rtl.slots import inherited_slot
from ember_hw.rtl.tests.harness import CONFIG, Bench, gaps, payloads
from ember_hw.rtl.traversal_unit import TraversalUnit

LINE = 64
BASES = (0x1_0000, 0x2_0000)
ITERATES = 1 << event_bit(Event.ITERATE, 0, CONFIG)
BEGINS = 1 << event_bit(Event.BEGIN, 0, CONFIG)
ENDS = 1 << event_bit(Event.END, 0, CONFIG)
OWN = [1 << event_bit(event, 1, CONFIG) for event in Event]
MASK = (1 << 32) - 1


class Unit(Bench):
    """A unit of level 1 whose streams read two arrays of int32."""

    def __init__(
        self,
        *,
        seed: int,
        record: dict,
        config: AcceleratorConfig = CONFIG,
        enabled: tuple[int, int] = (1, 1),
        shift: int = 2,
        latency: int = 5,
        pause: float = 0.0,
        answers: bool = True,
        error_line: int | None = None,
    ):
        super().__init__(TraversalUnit(config=config, level=1), seed=seed)
        self.config = config
        dice = random.Random(seed)
        self.arrays = [[dice.randrange(1 << 32) for _ in range(2000)] for _ in BASES]
        self.shift, self.latency, self.pause = shift, latency, pause
        self.answers, self.error_line = answers, error_line
        self.requests: list[list[int]] = [[], []]
        self.record, self.enabled = record, enabled

        async def configure(ctx):
            ctx.set(self.dut.record, record)
            for s, port in enumerate(self.dut.streams):
                fields = {"enable": enabled[s], "size": ElementSize.BYTES_4, "shift": shift}
                ctx.set(port, fields | {"base": BASES[s], "region_bytes": 8000})
            for _ in range(3):  # the region's last element is a register
                await ctx.tick()

        self.process(configure)
        self.process(self._memory, background=True)

    async def _memory(self, ctx):
        dut, bus = self.dut, self.config.bus_bytes
        queues: list[deque] = [deque(), deque()]
        cycle = 0
        while True:
            takes = [self.random.random() >= self.pause for _ in queues]
            for port, take in zip(dut.requests, takes, strict=True):
                ctx.set(port.ready, take)
            ready = [s for s, queue in enumerate(queues) if queue and queue[0][0] <= cycle]
            ctx.set(dut.beat_valid, 0)
            if ready and self.answers and self.random.random() >= self.pause:
                s = self.random.choice(ready)
                _, line, beat = queues[s].popleft()
                first = (line * LINE - BASES[s] + beat * bus) // 4
                words = [self.arrays[s][first + i] for i in range(bus // 4) if first + i < 2000]
                ctx.set(dut.beat_valid, 1 << s)
                ctx.set(dut.beat_data, sum(word << 32 * i for i, word in enumerate(words)))
                ctx.set(dut.beat_last, beat == LINE // bus - 1)
                is_bad = line == self.error_line
                ctx.set(dut.beat_response, Response.SLAVE_ERROR if is_bad else Response.OKAY)
            sampled = [value for port in dut.requests for value in (port.valid, port.payload)]
            _, _, *values = await ctx.tick().sample(*sampled)
            for s, take in enumerate(takes):
                if take and values[2 * s]:
                    line = values[2 * s + 1]
                    self.requests[s].append(line)
                    queues[s] += [(cycle + self.latency, line, b) for b in range(LINE // bus)]
            cycle += 1

    def expected(self, parents: list[dict]) -> list[dict]:
        """Return the tokens of plain nested loops; None where a value is not defined."""
        tokens = []
        scale = (1 << self.shift) // 4
        for parent in parents:
            events, exports = parent["events"], parent["exports"]
            lower, upper = exports[0], exports[1]
            above = events & ~(OWN[0] | OWN[1] | OWN[2])
            inherited = [None, None, exports[self.record["export2"] - inherited_slot(0, CONFIG)]]
            if not events & ITERATES:
                tokens.append({"events": above, "exports": inherited})
                continue
            inductions = range(lower, upper, self.record["step"])
            if not inductions:
                tokens.append({"events": above | OWN[0] | OWN[2], "exports": inherited})
            for i in inductions:
                bits = OWN[1]
                bits |= (above & (BEGINS | ITERATES) | OWN[0]) if i == inductions[0] else 0
                bits |= (above & ENDS | OWN[2]) if i == inductions[-1] else 0
                value, other = (self.arrays[s][i * scale] for s in (0, 1))
                if self.record["pair"]:
                    second = self.arrays[0][(i + self.record["step"]) * scale]
                else:
                    second = value + other & MASK
                tokens.append({"events": bits, "exports": [value, second, inherited[2]]})
        return tokens


def _record(**changes) -> dict:
    record = {
        "enable": 1,
        "pair": 0,
        "step": 1,
        "lower_source": Source.SLOT,
        "lower_slot": inherited_slot(0, CONFIG),
        "upper_source": BoundSource.SLOT,
        "upper_slot": inherited_slot(1, CONFIG),
        "alu_operation": isa.AluOperation.ADD,
        "alu_a_slot": 1,
        "alu_b_source": Source.SLOT,
        "alu_b_slot": 2,
        "export0": 1,
        "export1": CONFIG.streams_per_unit + 1,
        "export2": inherited_slot(2, CONFIG),
    }
    return record | changes


def _parents(seed: int, count: int, trips: tuple[int, ...], *, iterate: float = 1.0) -> list[dict]:
    dice = random.Random(seed)
    parents = []
    for number in range(count):
        lower = dice.randrange(300)
        events = ITERATES if dice.random() < iterate else BEGINS | ENDS
        events |= BEGINS if number == 0 else 0
        events |= dice.choice([0, ENDS])
        exports = [lower, lower + dice.choice(trips), dice.randrange(1 << 32)]
        parents.append({"events": events, "exports": exports})
    return parents


def _check(unit: Unit, parents: list[dict], stall: float, *, cycles: int = 4000):
    expected = unit.expected(parents)
    unit.send(unit.dut.parent, parents, stall=stall, start=4)
    tokens = unit.receive(unit.dut.token, len(expected), stall=stall)
    unit.run(cycles)
    for taken, wanted in zip(tokens, expected, strict=True):
        assert taken.payload["events"] == wanted["events"], f"seed {unit.seed}"
        for value, known in zip(taken.payload["exports"], wanted["exports"], strict=True):
            assert known is None or value == known, f"seed {unit.seed}"
    return tokens


@pytest.mark.parametrize("pair", [0, 1])
@pytest.mark.parametrize(("seed", "stall", "step"), [(1, 0.0, 1), (2, 0.3, 3), (3, 0.5, 2)])
def test_tokens_are_those_of_plain_loops(seed: int, stall: float, step: int, pair: int):
    unit = Unit(seed=seed, record=_record(pair=pair, step=step), pause=stall)
    _check(unit, _parents(seed, 15, (-2, 0, 1, 2, 7), iterate=0.8), stall)


def test_strided_elements_of_a_line_each():
    unit = Unit(seed=4, record=_record(), shift=4)
    _check(unit, _parents(4, 10, (0, 3, 6)), 0.2)
    for s in (0, 1):
        for line, following in pairwise(unit.requests[s]):
            assert line != following


def test_a_line_is_asked_for_once_while_elements_of_it_follow():
    unit = Unit(seed=5, record=_record())
    parents = [{"events": ITERATES | BEGINS, "exports": [0, 40, 0]}]
    parents += [{"events": ITERATES, "exports": [40 + i, 41 + i, 0]} for i in range(8)]
    _check(unit, parents, 0.0)
    assert unit.requests == [[BASE // LINE + i for i in range(3)] for BASE in BASES]


@pytest.mark.parametrize(("trips", "pair"), [((1,) * 8, 0), ((2, 3, 5), 0), ((4,), 1)])
def test_one_token_a_cycle_when_lines_are_there(trips: tuple[int, ...], pair: int):
    config = CONFIG.with_changes(lines_per_stream=8, data_width_bits=512)
    unit = Unit(seed=6, record=_record(pair=pair), config=config)
    parents, lower = [], 0
    for trip in trips * 20:
        parents.append({"events": ITERATES, "exports": [lower, lower + trip, 0]})
        lower += trip
    parents[0]["events"] |= BEGINS
    tokens = _check(unit, parents, 0.0)
    steps = sum(trips * 20) + pair * len(parents)
    steady = tokens[len(tokens) // 4 :]
    if pair:  # a ghost step between entries and no bubble else
        assert steady[-1].cycle - steady[0].cycle <= steps * 3 // 4 + 1
        assert gaps(steady) == {1, 2}
    else:
        assert gaps(steady) == {1}


def test_steps_wait_up_to_what_the_config_says():
    unit = Unit(seed=7, record=_record(), answers=False)
    parents = [{"events": ITERATES | BEGINS, "exports": [0, 1000, 0]}]
    unit.send(unit.dut.parent, parents, start=4)

    async def watch(ctx):
        await ctx.tick().repeat(200)
        assert ctx.get(unit.dut.waiting) == CONFIG.token_entries
        lines = CONFIG.token_entries * 4 // LINE
        assert [len(requests) for requests in unit.requests] == [lines, lines]

    unit.process(watch)
    unit.run(400)


def test_far_apart_elements_ask_for_no_more_lines_than_there_are_places():
    unit = Unit(seed=8, record=_record(), shift=6, answers=False)
    parents = [{"events": ITERATES | BEGINS, "exports": [0, 100, 0]}]
    unit.send(unit.dut.parent, parents, start=4)

    async def watch(ctx):
        await ctx.tick().repeat(200)
        assert [len(lines) for lines in unit.requests] == [CONFIG.lines_per_stream] * 2

    unit.process(watch)
    unit.run(400)


def test_errors_name_unit_and_stream():
    line = BASES[0] // LINE + 1
    unit = Unit(seed=9, record=_record(), error_line=line, enabled=(1, 0))
    faults = [unit.watch(port.valid, port.payload) for port in unit.dut.faults]
    # The second entry leaves the region of 2000 elements.
    parents = [
        {"events": ITERATES | BEGINS, "exports": [0, 20, 0]},
        {"events": ITERATES, "exports": [1999, 2001, 0]},
    ]
    unit.send(unit.dut.parent, parents, start=4)
    unit.receive(unit.dut.token, 22)
    unit.run(1000)
    place = {"unit": 1, "stream": 0}
    outside = {"code": FaultCode.STREAM_OUT_OF_BOUNDS, "address": BASES[0] + 8000} | place
    failed = {"code": FaultCode.READ_SLAVE_ERROR, "address": line * LINE} | place
    beats = LINE // CONFIG.bus_bytes
    assert [payloads(fault) for fault in faults] == [[outside], [failed] * beats, [], [], []]
