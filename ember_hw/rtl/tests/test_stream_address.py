from __future__ import annotations

import random

import pytest

from ember_hw import isa
from ember_hw.isa import ElementSize
from ember_hw.registers import FaultCode
from ember_hw.rtl.stream_address import CYCLES, StreamAddress
from ember_hw.rtl.tests.harness import CONFIG, Bench, payloads, refuses

LINE = 64
BASE = 0x4_0000
BEGIN = 1 << isa.event_bit(isa.Event.BEGIN, 0, CONFIG)
RECORD = {"enable": 1, "size": ElementSize.BYTES_4, "base": BASE, "elements": 300, "induction": 1}
HERE = {"start": 0, "lost": 0}
MOST, LEAST = (1 << 31) - 1, -(1 << 31)


def _signed(value: int) -> int:
    return (value & 0xFFFF_FFFF) - (value >> 31 & 1) * (1 << 32)


class Model:
    """The loads, lines and faults that steps must bring."""

    def __init__(self, record: dict, *, level: int = 1, index: int = 0, config=CONFIG):
        self.record, self.level, self.index, self.config = record, level, index, config
        self.previous: int | None = None
        self.loads: list[dict] = []
        self.lines: list[int] = []
        self.faults: list[dict] = []

    def step(self, step: dict, window: dict) -> None:
        record = self.record
        number = window["start"] + record["induction"] * _signed(step["induction"])
        address = record["base"] + (number << record["size"])
        if step["events"] & BEGIN:
            self.previous = None
        use = record["enable"] and (step["iterates"] or (step["ghost"] and self.index == 0))
        code = None
        if address >> self.config.address_width_bits:
            code = FaultCode.ADDRESS_OVERFLOW
        if window["lost"] or not 0 <= number < record["elements"]:
            code = FaultCode.STREAM_OUT_OF_BOUNDS
        if use and code is not None:
            fault = {"unit": self.level, "stream": self.index, "address": number & 0xFFFF_FFFF}
            self.faults.append({"code": code} | fault)
            use = False
        line = address >> 6
        new = use and line != self.previous
        if use:
            self.previous = line
        if new:
            self.lines.append(line)
        self.loads.append({"use": int(use), "new": int(new), "offset": address & LINE - 1})


def _simulate(
    record: dict,
    steps: list[tuple[dict, dict]],
    *,
    seed: int,
    index: int = 0,
    stall: float = 0.2,
    config=CONFIG,
) -> Model:
    dut = StreamAddress(config=config, level=1, index=index)
    bench = Bench(dut, seed=seed)
    model = Model(record, index=index, config=config)
    lines = bench.watch(dut.line_valid, dut.line)
    faults = bench.watch(dut.fault.valid, dut.fault.payload)
    due: dict[int, dict] = {}

    async def drive(ctx):
        ctx.set(dut.record, record)
        for _ in range(2):
            await ctx.tick()
        cycle = 0
        waiting = list(steps)
        while waiting or due:
            valid = bool(waiting) and bench.random.random() >= stall
            ctx.set(dut.valid, valid)
            if valid:
                step, window = waiting.pop(0)
                ctx.set(dut.iteration, step)
                ctx.set(dut.window, window)
                model.step(step, window)
                due[cycle + CYCLES] = model.loads[-1]
            _, _, load, line_valid = await ctx.tick().sample(dut.load, dut.line_valid)
            expected = due.pop(cycle, None)
            if expected is not None:
                fields = expected if expected["use"] else ("use", "new")
                assert {name: load[name] for name in fields} == {
                    name: expected[name] for name in fields
                }
                assert line_valid == expected["new"]
            cycle += 1
        ctx.set(dut.valid, 0)
        for _ in range(2):
            await ctx.tick()

    bench.process(drive)
    bench.run(1000)
    assert payloads(lines) == model.lines
    assert payloads(faults) == model.faults
    return model


def _step(induction: int, *, events: int = 0, iterates: int = 1, ghost: int = 0) -> dict:
    fields = {"induction": induction & 0xFFFF_FFFF, "events": events}
    return fields | {"iterates": iterates, "ghost": ghost, "last": 0}


def _random_steps(seed: int, count: int, values: int, first: int = 0) -> list[tuple[dict, dict]]:
    """Return steps whose numbers are below `values`, of windows from `first` on."""
    dice = random.Random(seed)
    steps = []
    position = 0
    for i in range(count):
        position = dice.choice([position, position + 1, dice.randrange(values)])
        ghost = dice.random() < 0.1
        step = _step(
            position,
            events=BEGIN if i == 0 or dice.random() < 0.05 else 0,
            iterates=int(not ghost and dice.random() < 0.85),
            ghost=int(ghost),
        )
        steps.append((step, {"start": first + dice.choice([0, 0, 0, 9]), "lost": 0}))
    return steps


@pytest.mark.parametrize("index", [-1, 2])
def test_a_stream_that_is_not_there_is_refused(index: int):
    with refuses(f"index must be from 0 to 1, not {index}"):
        StreamAddress(config=CONFIG, level=0, index=index)


FORMS = {
    "bytes": {"size": ElementSize.BYTES_1},
    "shorts": {"size": ElementSize.BYTES_2},
    "words": {"size": ElementSize.BYTES_4},
    "longs": {"size": ElementSize.BYTES_8},
    "some outside": {"elements": 200},
    "from the window alone": {"induction": 0},
    "at the end of memory": {"base": (1 << CONFIG.address_width_bits) - 512},
    "at 0": {"base": 0},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("stall", [0.0, 0.3])
def test_addresses_and_each_line_once(form: str, index: int, stall: float):
    record = RECORD | FORMS[form]
    steps = _random_steps(index, 60, 250)
    model = _simulate(record, steps, seed=3, index=index, stall=stall)
    assert model.lines
    assert bool(model.faults) == (form in ("some outside", "at the end of memory"))


def test_windows_shift_elements_both_ways():
    _simulate(RECORD, _random_steps(5, 60, 300, first=-40), seed=4)
    steps = [(_step(i - 1000), {"start": 1000, "lost": 0}) for i in range(40)]
    assert len(_simulate(RECORD, steps, seed=5).lines) == 3


@pytest.mark.parametrize("size", ElementSize)
@pytest.mark.parametrize(
    ("elements", "outside"),
    [
        (5, [5, -1, 1 << 30, LEAST, MOST]),
        (0, [0, -1]),
        (1, [1]),
        (1 << 31, [-1, LEAST]),
    ],
)
def test_an_element_outside_its_region_is_reported_and_not_asked_for(
    size: ElementSize, elements: int, outside: list[int]
):
    record = RECORD | {"size": size, "elements": elements}
    steps = [(_step(i, events=BEGIN if n == 0 else 0), HERE) for n, i in enumerate(outside)]
    model = _simulate(record, steps, seed=1)
    assert [fault["code"] for fault in model.faults] == [FaultCode.STREAM_OUT_OF_BOUNDS] * len(
        steps
    )
    assert not model.lines


@pytest.mark.parametrize(
    ("start", "induction"),
    [
        ((1 << 32) + 3, 0),  # the low 32 bits alone are an element
        (1 << 32, -(1 << 31)),
        ((1 << 33) - 1, MOST),
        (-(1 << 33), LEAST),
        (-(1 << 32) + 3, 0),
        (-(1 << 33), 1),
    ],
)
def test_far_elements_are_not_confused_with_near_ones(start: int, induction: int):
    record = RECORD | {"elements": (1 << 31) - 1, "size": ElementSize.BYTES_1}
    window = {"start": start, "lost": 0}
    model = _simulate(record, [(_step(induction), window)], seed=1)
    assert len(model.faults) == 1


def test_a_lost_window_has_no_element():
    steps = [(_step(i), {"start": 0, "lost": 1}) for i in (0, 5, MOST)]
    model = _simulate(RECORD, steps, seed=1)
    assert len(model.faults) == 3


@pytest.mark.parametrize("size", ElementSize)
@pytest.mark.parametrize("address_width_bits", [32, 33, 35, 36, 56])
def test_an_address_beyond_the_width_is_reported(size: ElementSize, address_width_bits: int):
    """Also one that would come round to where it is allowed again."""
    config = CONFIG.with_changes(address_width_bits=address_width_bits)
    most_elements = (1 << 32) - 1
    end = 1 << address_width_bits
    for base in (0, end - (1 << 20), end - LINE):
        record = RECORD | {"size": size, "base": base, "elements": most_elements}
        edge = end - base >> size
        numbers = [n for n in (edge - 1, edge, edge + 5, 2 * edge, 4 * edge) if n < most_elements]
        numbers += [most_elements - 1, most_elements]
        steps = [(_step(0), {"start": number, "lost": 0}) for number in numbers]
        model = _simulate(record, steps, seed=1, config=config)
        assert model.faults[-1]["code"] == FaultCode.STREAM_OUT_OF_BOUNDS


def test_a_disabled_stream_loads_nothing():
    record = RECORD | {"enable": 0, "elements": 0}
    dut = StreamAddress(config=CONFIG, level=1, index=0)
    bench = Bench(dut)
    seen = [bench.watch(dut.line_valid), bench.watch(dut.fault.valid), bench.watch(dut.load.use)]

    async def drive(ctx):
        ctx.set(dut.record, record)
        ctx.set(dut.iteration, _step(3))
        ctx.set(dut.valid, 1)
        await ctx.tick().repeat(20)

    bench.process(drive)
    bench.run(100)
    assert seen == [[], [], []]


def test_a_program_that_begins_asks_for_the_line_again():
    steps = [(_step(0, events=BEGIN), HERE), (_step(1), HERE)] * 2
    # A program whose first step loads nothing forgets the line just as well.
    steps += [(_step(0, events=BEGIN, iterates=0), HERE), (_step(2), HERE)]
    model = _simulate(RECORD, steps, seed=1)
    assert model.lines == [BASE >> 6] * 3


def test_a_line_is_asked_for_again_once_another_was():
    """Only the line before counts; one that was dropped does not."""
    steps = [(_step(i), HERE) for i in (0, 16, 0, 400, 1, 16)]
    model = _simulate(RECORD, steps, seed=1)
    first = BASE >> 6
    assert model.lines == [first, first + 1, first, first + 1]
