from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from amaranth.hdl import Signal

from ember_hw import isa
from ember_hw.isa import AluOperation, ElementSize
from ember_hw.registers import FaultCode
from ember_hw.rtl.join import Join
from ember_hw.rtl.line_store import READ_CYCLES
from ember_hw.rtl.tests.harness import CONFIG, Bench, gaps, payloads

STREAMS = CONFIG.streams_per_unit
# Exports: what is kept, the induction value, the streams, the ALU. Slots: the unit's own values
# without the ALU's, then what is inherited.
KEEP, INDUCTION, STREAM, ALU = 0, 1, 2, STREAMS + 2
INHERITED = STREAMS + 1
MASK = (1 << 32) - 1


def _signed(value: int) -> int:
    return (value & MASK) - (value >> 31 & 1) * (1 << 32)


@dataclass
class Program:
    """Random loops for a join: its steps, the lines they read, and the tokens they must become."""

    seed: int
    record: dict
    streams: list[dict]
    entries: int = 12
    trips: tuple[int, ...] = (0, 1, 2, 5)
    wide: bool = False
    first: int = 0
    corners: bool = False
    steps: list[dict] = field(default_factory=list)
    frames: list[list[int]] = field(default_factory=list)
    lines: list[list[bytes]] = field(default_factory=lambda: [[] for _ in range(STREAMS)])
    tokens: list[tuple[dict, bool]] = field(default_factory=list)
    faults: list[dict] = field(default_factory=list)

    def __post_init__(self):
        self.dice = random.Random(self.seed)
        for _ in range(self.entries):
            frame = [self._random_value() for _ in range(CONFIG.exports)]
            self.frames.append(frame)
            trips = self.dice.choice(self.trips)
            pair = self.record.get("pair", 0) and trips
            values = [self._step(i, frame, trips) for i in range(max(1, trips))]
            if pair:
                values.append(self._step(trips, frame, trips, ghost=1))
            for i in range(max(1, trips)):
                following = values[i + 1][0] if pair else 0
                self._token(i, frame, values[i], following, iterates=bool(trips))

    def _step(self, number: int, frame: list[int], trips: int, *, ghost: int = 0) -> list[int]:
        iterates = int(trips > 0 and not ghost)
        last = int(not ghost and number == max(1, trips) - 1)
        events = 0 if ghost else self.dice.randrange(1 << CONFIG.events)
        iteration = {"events": events, "induction": number + 100 + self.first & MASK}
        iteration |= {"iterates": iterates, "ghost": ghost, "last": last}
        loads, values = [], []
        for s, record in enumerate(self.streams):
            use = int(record["enable"] and (iterates or (ghost and s == 0)))
            size = 1 << record["size"]
            new = int(use and (not self.lines[s] or self.dice.random() < 0.4))
            if new:
                self.lines[s].append(self._line(size))
            offset = self.dice.randrange(0, 64, size)
            loads.append({"use": use, "new": new, "offset": offset})
            values.append(self._value(s, record, self.lines[s][-1], offset, size) if use else 0)
        self.steps.append({"iteration": iteration, "loads": loads})
        return values

    def _random_value(self) -> int:
        corners = [0, 1, MASK, 1 << 31, (1 << 31) - 1]
        return self.dice.choice(corners) if self.corners else self.dice.randrange(1 << 32)

    def _line(self, size: int) -> bytes:
        if self.corners:
            return b"".join(self._random_value().to_bytes(4, "little") for _ in range(16))
        if size < 8 or self.wide:
            return self.dice.randbytes(64)
        values = [self.dice.randrange(-(1 << 31), 1 << 31) for _ in range(8)]
        return b"".join(value.to_bytes(8, "little", signed=True) for value in values)

    def _value(self, s: int, record: dict, line: bytes, offset: int, size: int) -> int:
        signed = bool(record.get("signed")) or size == 8
        value = int.from_bytes(line[offset : offset + size], "little", signed=signed)
        if size == 8 and not -(1 << 31) <= value < 1 << 31:
            fault = {"unit": 1, "stream": s, "address": value & MASK}
            self.faults.append({"code": FaultCode.VALUE_TOO_WIDE} | fault)
        return value & MASK

    def _token(self, number: int, frame, values, following: int, *, iterates: bool) -> None:
        record = self.record
        own = [number + 100 + self.first, *values]
        result = following if record["pair"] else self._alu([*own, *frame])
        events = [step for step in self.steps if not step["iteration"]["ghost"]]
        events = events[len(self.tokens)]["iteration"]["events"]
        exports = [
            [frame[i], *own, result][record[f"export{i}"]] & MASK for i in range(CONFIG.exports)
        ]
        self.tokens.append(({"events": events, "exports": exports}, iterates))

    def _alu(self, slots: list[int]) -> int:
        a, b = slots[self.record["alu_a_slot"]], self.record["alu_immediate"]
        if self.record["alu_b_source"] == isa.Source.SLOT:
            b = slots[self.record["alu_b_slot"]]
        results = {
            AluOperation.ADD: a + b,
            AluOperation.SUB: a - b,
            AluOperation.MUL: a * b,
            AluOperation.RSUB: b - a,
        }
        return results[self.record["alu_operation"]] & MASK


def _record(**changes) -> dict:
    record = {
        "enable": 1,
        "pair": 0,
        "alu_operation": AluOperation.ADD,
        "alu_a_slot": 1,
        "alu_b_source": isa.Source.SLOT,
        "alu_b_slot": 2,
        "alu_immediate": 0,
        "export0": STREAM,
        "export1": ALU,
        "export2": KEEP,
    }
    return record | changes


def _stream(size: ElementSize = ElementSize.BYTES_4, **changes) -> dict:
    return {"enable": 1, "size": size, "signed": 0} | changes


def _fits(word: bytes) -> bool:
    return -(1 << 31) <= int.from_bytes(word, "little", signed=True) < 1 << 31


def _lines(bench: Bench, dut: Join, program: Program, stall: float):
    """Stand in for the line stores: lines come with pauses, a half word some cycles later.

    All of a line, or only what the step that makes it current needs.
    """
    came = [Signal(2) for _ in range(STREAMS)]  # for a step that stays in its line, and another

    def answers(port, came):
        async def process(ctx):
            async for new, has in ctx.changed(port.new, came):
                ctx.set(port.available, has >> new & 1)

        return process

    for port, signal in zip(dut.lines, came, strict=True):
        bench.simulator.add_process(answers(port, signal))

    async def lines(ctx):
        whole = [True] * STREAMS
        arrived = [0] * STREAMS
        current = [-1] * STREAMS
        halves = [[(0, False)] * (READ_CYCLES - 1) for _ in range(STREAMS)]
        while True:
            for s, port in enumerate(dut.lines):
                if arrived[s] < len(program.lines[s]) and bench.random.random() >= stall:
                    arrived[s] += 1
                whole[s] |= bench.random.random() >= stall
                ctx.set(came[s], whole[s] | (whole[s] and current[s] + 1 < arrived[s]) << 1)
            sampled = [value for port in dut.lines for value in (port.advance, port.offset)]
            _, _, *values = await ctx.tick().sample(*sampled)
            for s, port in enumerate(dut.lines):
                if values[2 * s]:
                    current[s] += 1
                    assert whole[s], f"seed {bench.seed}: a line is left before all of it came"
                    whole[s] = bench.random.random() >= stall
                assert current[s] < arrived[s], f"seed {bench.seed}: a line before it came"
                line = program.lines[s][max(0, current[s])] if program.lines[s] else bytes(64)
                start = values[2 * s + 1] // 4 * 4
                half = int.from_bytes(line[start : start + 4], "little")
                # Above the low half the flag says nothing.
                fits = (
                    _fits(line[start : start + 8])
                    if start % 8 == 0
                    else bench.random.random() < 0.5
                )
                halves[s].append((half, fits))
                half, fits = halves[s].pop(0)
                ctx.set(port.data, half)
                ctx.set(port.fits, fits)

    return lines


def _simulate(program: Program, *, seed: int, stall: float, start: int = 0):
    dut = Join(config=CONFIG, level=1)
    bench = Bench(dut, seed=seed)

    async def configure(ctx):
        ctx.set(dut.record, program.record)
        for port, record in zip(dut.streams, program.streams, strict=True):
            ctx.set(port, record)

    bench.process(configure)
    bench.process(_lines(bench, dut, program, stall), background=True)
    sent = bench.send(dut.step, program.steps, stall=stall)
    bench.send(dut.frame, program.frames)
    faults = bench.watch(dut.fault.valid, dut.fault.payload)
    tokens = bench.receive(dut.token, len(program.tokens), stall=stall, start=start)
    bench.run(3000)
    for taken, (expected, iterates) in zip(tokens, program.tokens, strict=True):
        token = taken.payload
        assert token["events"] == expected["events"], f"seed {seed}"
        for i, value in enumerate(expected["exports"]):
            # What belongs to the loop itself is not defined where it does not iterate.
            if iterates or program.record[f"export{i}"] == KEEP:
                assert token["exports"][i] == value, f"seed {seed}, export {i}"
    assert payloads(faults) == program.faults
    return sent, tokens


@pytest.mark.parametrize("pair", [0, 1])
@pytest.mark.parametrize(("seed", "stall"), [(1, 0.0), (2, 0.4), (3, 0.7)])
def test_tokens_bring_what_their_steps_loaded(seed: int, stall: float, pair: int):
    program = Program(seed, _record(pair=pair), [_stream(), _stream()])
    _simulate(program, seed=seed, stall=stall)


@pytest.mark.parametrize("signed", [0, 1])
@pytest.mark.parametrize("size", ElementSize)
def test_elements_of_every_size(size: ElementSize, signed: int):
    streams = [_stream(size, signed=signed), _stream(size, signed=signed)]
    _simulate(Program(int(size), _record(export2=2), streams), seed=5, stall=0.2)


@pytest.mark.parametrize("exports", [(1, 2, 4), (0, 0, 0), (4, 4, 3), (2, 3, 2), (3, 0, 1)])
def test_every_export_is_kept_or_one_of_the_own_values(exports: tuple[int, ...]):
    record = _record(**{f"export{i}": choice for i, choice in enumerate(exports)})
    _simulate(Program(3, record, [_stream(), _stream()]), seed=4, stall=0.3)


@pytest.mark.parametrize("operation", AluOperation)
@pytest.mark.parametrize("b", ["immediate", *range(INHERITED + CONFIG.exports)])
def test_alu(operation: AluOperation, b: str | int):
    record = _record(alu_operation=operation, alu_a_slot=2)
    if b == "immediate":
        record |= {"alu_b_source": isa.Source.IMMEDIATE, "alu_immediate": -1234567}
    else:
        record["alu_b_slot"] = b
    program = Program(9, record, [_stream(), _stream()], entries=6, first=-102)
    _simulate(program, seed=6, stall=0.1)


@pytest.mark.parametrize("operation", AluOperation)
def test_alu_keeps_the_low_bits_at_the_extremes(operation: AluOperation):
    for a in range(INHERITED):
        record = _record(alu_operation=operation, alu_a_slot=a, alu_b_slot=INHERITED + 1)
        program = Program(a, record, [_stream(), _stream()], first=(1 << 31) - 102, corners=True)
        _simulate(program, seed=6, stall=0.0)


def test_a_unit_that_is_not_used_hands_its_inherited_values_on():
    record = dict.fromkeys(_record(), 0)
    record |= {"alu_operation": AluOperation.ADD, "alu_b_source": isa.Source.IMMEDIATE}
    program = Program(4, record, [_stream(enable=0)] * 2, trips=(0,))
    _simulate(program, seed=7, stall=0.3)


@pytest.mark.parametrize("both", [0, 1])
def test_eight_bytes_that_do_not_fit_are_reported(both: int):
    """Of two at one time the first stream's is."""
    streams = [_stream(ElementSize.BYTES_8), _stream(ElementSize.BYTES_8, enable=both)]
    program = Program(8, _record(), streams, wide=True)
    program.faults = [fault for fault in program.faults if fault["stream"] == 0]
    assert program.faults
    _simulate(program, seed=8, stall=0.0)


def test_one_step_a_cycle_and_a_ghost_costs_one():
    for pair in (0, 1):
        for operation in (AluOperation.ADD, AluOperation.MUL):
            record = _record(pair=pair, alu_operation=operation)
            program = Program(1, record, [_stream(enable=pair), _stream(enable=0)])
            sent, tokens = _simulate(program, seed=0, stall=0.0)
            assert len(sent) > 20
            assert gaps(sent) == {1}
            assert pair or gaps(tokens) == {1}
            # A token comes after its step, a held one after the step that follows.
            slowest = max(item.cycle for item in tokens) - sent[-1].cycle
            wait = 0 if pair else {AluOperation.ADD: 1, AluOperation.MUL: 3}[operation]
            assert slowest == 5 + wait


@pytest.mark.parametrize("pair", [0, 1])
def test_tokens_that_are_not_taken_hold_back_steps(pair: int):
    program = Program(1, _record(pair=pair), [_stream(), _stream()], entries=30)
    sent, tokens = _simulate(program, seed=0, stall=0.0, start=80)
    before = [item.payload for item in sent if item.cycle < 80]
    assert sum(not step["iteration"]["ghost"] for step in before) == 16
    assert tokens[0].cycle == 80
