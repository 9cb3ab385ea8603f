from __future__ import annotations

import random
from collections import deque
from itertools import pairwise

import pytest

from ember_hw import isa
from ember_hw.config import AcceleratorConfig
from ember_hw.isa import BoundSource, ElementSize, Event, Source, StreamSource, event_bit
from ember_hw.registers import FaultCode
from ember_hw.rtl.tests.harness import CONFIG, Bench, gaps, payloads
from ember_hw.rtl.traversal_unit import TraversalUnit

LINE = 64
BASES = (0x1_0000, 0x2_0000)
ITERATES = 1 << event_bit(Event.ITERATE, 0, CONFIG)
BEGINS = 1 << event_bit(Event.BEGIN, 0, CONFIG)
ENDS = 1 << event_bit(Event.END, 0, CONFIG)
OWN = [1 << event_bit(event, 1, CONFIG) for event in Event]
MASK = (1 << 32) - 1
ALU = CONFIG.streams_per_unit + 2
STREAM = {"enable": 1, "size": ElementSize.BYTES_4, "elements": 2000, "induction": 1}
QUEUE = STREAM | {"source": StreamSource.QUEUE}
OFF = {"enable": 0}


class Unit(Bench):
    """A unit of level 1 whose streams read two arrays of int32."""

    def __init__(
        self,
        *,
        seed: int,
        record: dict,
        config: AcceleratorConfig = CONFIG,
        streams: tuple[dict, dict] = (STREAM, STREAM),
        latency: int = 5,
        pause: float = 0.0,
        answers: bool = True,
    ):
        super().__init__(TraversalUnit(config=config, level=1), seed=seed)
        self.config = config
        dice = random.Random(seed)
        self.arrays = [[dice.randrange(1 << 32) for _ in range(2000)] for _ in BASES]
        self.latency, self.pause, self.answers = latency, pause, answers
        self.requests: list[list[int]] = [[], []]
        self.record, self.streams = record, streams

        async def configure(ctx):
            ctx.set(self.dut.record, record)
            for port, fields, base in zip(self.dut.streams, streams, BASES, strict=True):
                ctx.set(port, fields | {"base": base})

        self.process(configure)
        self.process(self._memory, background=True)

    async def _memory(self, ctx):
        dut, width = self.dut, self.config.index_bits // 8
        queues: list[deque] = [deque(), deque()]
        for s, fields in enumerate(self.streams):
            if fields.get("source") == StreamSource.QUEUE:
                lines = [BASES[s] // LINE + i for i in range(125)]
                queues[s] += [(0, line, word) for line in lines for word in range(LINE // width)]
        cycle = 0
        while True:
            takes = [self.random.random() >= self.pause for _ in queues]
            for port, take in zip(dut.requests, takes, strict=True):
                ctx.set(port.ready, take)
            room = ctx.get(dut.room)
            ready = [
                s
                for s, queue in enumerate(queues)
                if queue
                and queue[0][0] <= cycle
                and (room >> s & 1 or self.streams[s].get("source") != StreamSource.QUEUE)
            ]
            ctx.set(dut.word_valid, 0)
            if ready and self.answers and self.random.random() >= self.pause:
                s = self.random.choice(ready)
                _, line, word = queues[s].popleft()
                first = (line * LINE - BASES[s] + word * width) // 4
                values = [self.arrays[s][first + i] for i in range(width // 4) if first + i < 2000]
                ctx.set(dut.word_valid, 1 << s)
                ctx.set(dut.word, sum(value << 32 * i for i, value in enumerate(values)))
            sampled = [value for port in dut.requests for value in (port.valid, port.payload)]
            _, _, *values = await ctx.tick().sample(*sampled)
            for s, take in enumerate(takes):
                if take and values[2 * s]:
                    line = values[2 * s + 1]
                    self.requests[s].append(line)
                    queues[s] += [
                        (cycle + self.latency, line, word) for word in range(LINE // width)
                    ]
            cycle += 1

    def expected(self, parents: list[dict]) -> list[dict]:
        """Return the tokens of plain nested loops; None where a value is not defined."""
        tokens = []
        for parent in parents:
            events, exports = parent["events"], parent["exports"]
            lower, upper = exports[0], exports[1]
            above = events & ~(OWN[0] | OWN[1] | OWN[2])
            inherited = [None, None, exports[2]]
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
                value, other = (self._element(s, i, exports) for s in (0, 1))
                if self.record["pair"]:
                    second = self._element(0, i + self.record["step"], exports)
                else:
                    second = value + other & MASK
                tokens.append({"events": bits, "exports": [value, second, inherited[2]]})
        return tokens

    def _element(self, s: int, induction: int, inherited: list[int]) -> int:
        fields = self.streams[s]
        number = fields.get("first", 0) + fields.get("induction", 0) * induction
        number += inherited[fields.get("outer_export", 0)] * fields.get("outer_pitch", 0)
        return self.arrays[s][number]


def _record(**changes) -> dict:
    record = {
        "enable": 1,
        "pair": 0,
        "step": 1,
        "lower_source": Source.SLOT,
        "lower_export": 0,
        "upper_source": BoundSource.SLOT,
        "upper_export": 1,
        "alu_operation": isa.AluOperation.ADD,
        "alu_a_slot": 1,
        "alu_b_source": Source.SLOT,
        "alu_b_slot": 2,
        "export0": 2,
        "export1": ALU,
        "export2": 0,
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
    unit = Unit(seed=4, record=_record(step=16))
    _check(unit, _parents(4, 10, (0, 30, 96)), 0.2)
    for s in (0, 1):
        for line, following in pairwise(unit.requests[s]):
            assert line != following


def test_elements_of_outer_ones():
    """A row of one array by an inherited value, an element of the other by it alone."""
    streams = (
        STREAM | {"outer_enable": 1, "outer_export": 0, "outer_pitch": 3, "first": -7},
        STREAM | {"outer_enable": 1, "outer_export": 1, "outer_pitch": 2, "induction": 0},
    )
    unit = Unit(seed=4, record=_record(), streams=streams)
    parents = _parents(4, 20, (0, 1, 4))
    for parent in parents:
        parent["exports"][0] += 7
        parent["exports"][1] += 7
    _check(unit, parents, 0.2)


@pytest.mark.parametrize(("seed", "stall", "lines"), [(1, 0.0, 2), (2, 0.3, 2), (3, 0.1, 8)])
def test_lines_of_the_input_queue_in_their_order(seed: int, stall: float, lines: int):
    """One stream takes the lines that came, the other asks memory for its own."""
    config = CONFIG.with_changes(lines_per_stream=lines)
    for streams in ((QUEUE, STREAM), (STREAM, QUEUE), (QUEUE, QUEUE)):
        unit = Unit(seed=seed, record=_record(), streams=streams, pause=stall, config=config)
        # Whole lines, the elements of each once, in order.
        bounds = [0, 1, 5, 16, 16, 31, 40, 64, 100, 101]
        parents = [
            {"events": ITERATES | (BEGINS if lower == 0 else 0), "exports": [lower, upper, 9]}
            for lower, upper in pairwise(bounds)
        ]
        _check(unit, parents, stall)
        for requests, fields in zip(unit.requests, streams, strict=True):
            assert len(requests) == (0 if fields == QUEUE else 7)


def test_a_line_is_asked_for_once_while_elements_of_it_follow():
    unit = Unit(seed=5, record=_record())
    parents = [{"events": ITERATES | BEGINS, "exports": [0, 40, 0]}]
    parents += [{"events": ITERATES, "exports": [40 + i, 41 + i, 0]} for i in range(8)]
    _check(unit, parents, 0.0)
    assert unit.requests == [[BASE // LINE + i for i in range(3)] for BASE in BASES]


@pytest.mark.parametrize(("trips", "pair"), [((1,) * 8, 0), ((2, 3, 5), 0), ((4,), 1)])
def test_one_token_a_cycle_when_lines_are_there(trips: tuple[int, ...], pair: int):
    config = CONFIG.with_changes(lines_per_stream=8, data_width_bits=512, token_entries=64)
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
        # Words of both streams come in any order: a token waits where one is later than those
        # before, and all that follow have the time.
        words = 2 * config.line_words
        assert tokens[-1].cycle - tokens[0].cycle < len(tokens) + words


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
    unit = Unit(seed=8, record=_record(step=16), answers=False)
    parents = [{"events": ITERATES | BEGINS, "exports": [0, 1600, 0]}]
    unit.send(unit.dut.parent, parents, start=4)

    async def watch(ctx):
        await ctx.tick().repeat(200)
        assert [len(lines) for lines in unit.requests] == [CONFIG.lines_per_stream] * 2

    unit.process(watch)
    unit.run(400)


@pytest.mark.parametrize("stream", [0, 1])
def test_a_fault_names_unit_and_stream(stream: int):
    streams = [OFF, OFF]
    streams[stream] = STREAM
    unit = Unit(seed=9, record=_record(), streams=tuple(streams))
    faults = unit.watch(unit.dut.fault.valid, unit.dut.fault.payload)
    # The second entry leaves the region of 2000 elements.
    parents = [
        {"events": ITERATES | BEGINS, "exports": [0, 20, 0]},
        {"events": ITERATES, "exports": [1999, 2001, 0]},
    ]
    unit.send(unit.dut.parent, parents, start=4)
    unit.receive(unit.dut.token, 22)
    unit.run(1000)
    fault = {"code": FaultCode.STREAM_OUT_OF_BOUNDS, "unit": 1, "stream": stream, "address": 2000}
    assert payloads(faults) == [fault]


def test_a_value_too_wide_is_reported_by_its_low_word():
    long = STREAM | {"size": ElementSize.BYTES_8, "elements": 1000}
    unit = Unit(seed=10, record=_record(), streams=(OFF, long))
    faults = unit.watch(unit.dut.fault.valid, unit.dut.fault.payload)
    for i in range(3):
        unit.arrays[1][2 * i : 2 * i + 2] = [(1 << 31) + i, 0 if i == 1 else MASK]
    unit.send(unit.dut.parent, [{"events": ITERATES, "exports": [0, 3, 0]}], start=4)
    unit.receive(unit.dut.token, 3)
    unit.run(1000)
    place = {"unit": 1, "stream": 1, "address": (1 << 31) + 1}
    assert payloads(faults) == [place | {"code": FaultCode.VALUE_TOO_WIDE}]


def test_the_first_stream_is_blamed_within_a_cycle():
    unit = Unit(seed=11, record=_record())
    faults = unit.watch(unit.dut.fault.valid, unit.dut.fault.payload)
    unit.send(unit.dut.parent, [{"events": ITERATES, "exports": [2000, 2001, 0]}], start=4)
    unit.receive(unit.dut.token, 1)
    unit.run(1000)
    assert [fault["stream"] for fault in payloads(faults)] == [0]
