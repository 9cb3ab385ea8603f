from __future__ import annotations

import random

import pytest

from ember_hw import isa
from ember_hw.registers import FaultCode
from ember_hw.rtl.slots import inherited_slot
from ember_hw.rtl.stream_address import CYCLES, StreamAddress
from ember_hw.rtl.tests.harness import CONFIG, Bench, payloads, refuses

LINE = 64
BASE = 0x4_0000
BEGIN = 1 << isa.event_bit(isa.Event.BEGIN, 0, CONFIG)
RECORD = {"enable": 1, "size": isa.ElementSize.BYTES_4, "shift": 2, "base": BASE, "slot": 0}


def _signed(value: int) -> int:
    return (value & 0xFFFF_FFFF) - (value >> 31 & 1) * (1 << 32)


class Model:
    """The loads, lines and faults that steps must bring."""

    def __init__(self, record: dict, *, level: int = 1, index: int = 0):
        self.record, self.level, self.index = record, level, index
        self.previous: int | None = None
        self.loads: list[dict] = []
        self.lines: list[int] = []
        self.faults: list[dict] = []

    def step(self, step: dict, exports: list[int]) -> None:
        get, first = self.record, inherited_slot(0, CONFIG)
        slot = get.get("slot", 0)
        value = step["induction"] if slot == 0 else exports[slot - first]
        offset = (_signed(value) << get["shift"]) + get.get("first", 0)
        if get.get("second_enable"):
            offset += _signed(exports[get["second_slot"] - first]) * get["second_pitch"]
        if step["events"] & BEGIN:
            self.previous = None
        use = step["iterates"] or (step["ghost"] and self.index == 0)
        size = 1 << get["size"]
        if use and not 0 <= offset <= get["region_bytes"] - size:
            address = BASE + offset & (1 << 64) - 1
            code = FaultCode.STREAM_OUT_OF_BOUNDS
            fault = {"unit": self.level, "stream": self.index, "address": address}
            self.faults.append({"code": code, **fault})
            use = False
        line = BASE + offset >> 6
        new = use and line != self.previous
        if use:
            self.previous = line
        if new:
            self.lines.append(line)
        self.loads.append({"use": int(use), "new": int(new), "offset": BASE + offset & LINE - 1})


def _simulate(record: dict, steps: list[tuple[dict, list[int]]], *, seed: int, index: int = 0):
    dut = StreamAddress(config=CONFIG, level=1, index=index)
    bench = Bench(dut, seed=seed)
    model = Model(record, index=index)
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
            valid = bool(waiting) and bench.random.random() >= 0.2
            ctx.set(dut.valid, valid)
            if valid:
                step, exports = waiting.pop(0)
                ctx.set(dut.iteration, step)
                ctx.set(dut.exports, exports)
                model.step(step, exports)
                due[cycle + CYCLES] = model.loads[-1]
            _, _, load = await ctx.tick().sample(dut.load)
            expected = due.pop(cycle, None)
            if expected is not None:
                fields = expected if expected["use"] else ("use", "new")
                assert {name: load[name] for name in fields} == {
                    name: expected[name] for name in fields
                }
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


def _random_steps(seed: int, count: int, values: int) -> list[tuple[dict, list[int]]]:
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
        steps.append((step, [dice.randrange(values) for _ in range(CONFIG.exports)]))
    return steps


@pytest.mark.parametrize("index", [-1, 2])
def test_a_stream_that_is_not_there_is_refused(index: int):
    with refuses(f"index must be from 0 to 1, not {index}"):
        StreamAddress(config=CONFIG, level=0, index=index)


FORMS = {
    "sequential": {"region_bytes": 4 * 300},
    "bytes": {"size": isa.ElementSize.BYTES_1, "shift": 0, "region_bytes": 300},
    "longs": {"size": isa.ElementSize.BYTES_8, "shift": 3, "region_bytes": 8 * 300, "first": 8},
    "indirect": {"slot": inherited_slot(2, CONFIG), "region_bytes": 4 * 300, "first": 12},
    "strided": {"shift": 7, "region_bytes": 300 << 7},
    "two dimensions": {
        "second_enable": 1,
        "second_slot": inherited_slot(1, CONFIG),
        "second_pitch": 404,
        "region_bytes": 404 * 310,
    },
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("index", [0, 1])
def test_addresses_and_each_line_once(form: str, index: int):
    record = RECORD | FORMS[form]
    model = _simulate(record, _random_steps(index, 60, 300), seed=3, index=index)
    assert model.lines


@pytest.mark.parametrize(
    ("size", "region_bytes", "outside"),
    [
        (isa.ElementSize.BYTES_4, 4 * 5, [5, -1, 1 << 30, -(1 << 31), (1 << 31) - 1]),
        (isa.ElementSize.BYTES_4, 4 * 5 - 1, [4]),
        (isa.ElementSize.BYTES_8, 8 * 4 + 7, [4, -1]),
        (isa.ElementSize.BYTES_1, 0, [0]),
        (isa.ElementSize.BYTES_8, 4, [0, 1]),
    ],
)
def test_an_element_outside_its_region_is_reported_and_not_asked_for(
    size: isa.ElementSize, region_bytes: int, outside: list[int]
):
    record = RECORD | {"size": size, "shift": int(size), "region_bytes": region_bytes}
    exports = [0] * CONFIG.exports
    steps = [(_step(i, events=BEGIN if n == 0 else 0), exports) for n, i in enumerate(outside)]
    model = _simulate(record, steps, seed=1)
    assert len(model.faults) == len(outside)
    assert not model.lines


def test_far_offsets_are_not_confused_with_near_ones():
    """A 32-bit value, shifted by 15, plus another times the widest pitch: all bits count."""
    most = (1 << 31) - 1
    record = RECORD | {
        "shift": 15,
        "second_enable": 1,
        "second_slot": inherited_slot(0, CONFIG),
        "second_pitch": (1 << 20) - 1,
        "first": 0xFFFF_FFFF,
        "region_bytes": 0xFFFF_FFFF,
    }
    exports = [most, 0, 0]
    steps = [(_step(most), exports), (_step(-1 << 31), [1 << 31, 0, 0]), (_step(1 << 17), [0] * 3)]
    model = _simulate(record, steps, seed=1)
    assert len(model.faults) == 3


def test_a_disabled_stream_loads_nothing():
    record = RECORD | {"enable": 0, "region_bytes": 0}
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
    exports = [0] * CONFIG.exports
    record = RECORD | {"region_bytes": 256}
    steps = [(_step(0, events=BEGIN), exports), (_step(1), exports)] * 2
    # A program whose first step loads nothing forgets the line just as well.
    steps += [(_step(0, events=BEGIN, iterates=0), exports), (_step(2), exports)]
    model = _simulate(record, steps, seed=1)
    assert model.lines == [BASE >> 6] * 3
