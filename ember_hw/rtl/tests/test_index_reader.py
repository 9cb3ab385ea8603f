from __future__ import annotations

from dataclasses import dataclass

import pytest

from ember_hw.config import AcceleratorConfig
from ember_hw.registers import FaultCode
from ember_hw.rtl.index_reader import IndexReader
from ember_hw.rtl.layouts import port_of, request_tag_bits, streams
from ember_hw.rtl.tests.harness import CONFIG, Bench, ReadMemory, payloads, stamp

NARROW = CONFIG
WIDE = CONFIG.with_changes(data_width_bits=512, lines_per_stream=4)
HALF = CONFIG.with_changes(data_width_bits=256)
OWN_PORT = CONFIG.with_changes(data_width_bits=512, index_port_bits=128)
OWN_WIDE_PORT = CONFIG.with_changes(index_port_bits=512)
PORTS = CONFIG.with_changes(memory_ports=2, port_interleave_bytes=64)
WIDE_PORTS = WIDE.with_changes(memory_ports=4, port_interleave_bytes=128)
CONFIGS = {
    "narrow": NARROW,
    "wide": WIDE,
    "half": HALF,
    "own_port": OWN_PORT,
    "own_wide_port": OWN_WIDE_PORT,
    "ports": PORTS,
    "wide_ports": WIDE_PORTS,
}


class Reader(Bench):
    """An index reader, a memory, and line stores that free their places at random."""

    def __init__(self, config: AcceleratorConfig, *, seed: int = 0, stall: float = 0.0, **memory):
        self.config = config
        self.stall = stall
        super().__init__(IndexReader(config=config), seed=seed)
        self.bus_bytes = (config.index_port_bits or config.data_width_bits) // 8
        self.memory = ReadMemory(self, bus_bytes=self.bus_bytes, interleave=True, **memory)
        self.words: list[list[int]] = [[] for _ in range(streams(config))]
        self.word_cycles: list[int] = []
        self.faults = self.watch(self.dut.fault.valid, self.dut.fault.payload)
        self.process(self._serve, background=True)
        self.process(self._collect, background=True)

    async def _serve(self, ctx):
        """Answer as the ports do: a request's port is part of its beats' tag."""
        dut, cycle = self.dut, 0
        while True:
            takes = self.random.random() >= self.stall
            ctx.set(dut.request.ready, takes)
            found = self.memory.answer(cycle)
            ctx.set(dut.beat_valid, found is not None)
            if found is not None:
                tag, word, last, response = found
                beat = {"tag": tag, "data": word, "last": last, "response": response}
                ctx.set(dut.beat, beat)
            _, _, valid, asked, port = await ctx.tick().sample(
                dut.request.valid,
                dut.request.payload,
                port_of(dut.request.payload.address, self.config),
            )
            if valid and takes:
                tag = asked.tag | port << request_tag_bits(self.config)
                self.memory.ask(cycle, asked.address, asked.length + 1, tag)
            cycle += 1

    async def _collect(self, ctx):
        cycle = 0
        while True:
            _, _, valid, word = await ctx.tick().sample(self.dut.word_valid, self.dut.word)
            assert not valid & (valid - 1), "a word is one stream's"
            if valid:
                self.words[valid.bit_length() - 1].append(word)
                self.word_cycles.append(cycle)
            cycle += 1

    def ask(self, number: int, lines: list[int], *, stall: float = 0.0) -> None:
        """Ask for lines of a stream, no more at a time than its store has places."""
        port = self.dut.lines[number]

        async def driver(ctx):
            for asked, line in enumerate(lines):
                arrived = lambda: len(self.words[number]) // self.config.line_words  # noqa: E731
                while (
                    asked - arrived() >= self.config.lines_per_stream
                    or self.random.random() < stall
                ):
                    await ctx.tick()
                ctx.set(port.payload, line)
                ctx.set(port.valid, 1)
                ready = False
                while not ready:
                    _, _, ready = await ctx.tick().sample(port.ready)
                ctx.set(port.valid, 0)
            while len(self.words[number]) < len(lines) * self.config.line_words:
                await ctx.tick()

        self.process(driver)

    def expected(self, lines: list[int]) -> list[int]:
        """Return lines as words."""
        size = self.config.index_bits // 8
        return [
            int.from_bytes(stamp(64 * line + at, size), "little")
            for line in lines
            for at in range(0, 64, size)
        ]


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_each_stream_has_its_words_in_order(name: str, stall: float):
    config = CONFIGS[name]
    reader = Reader(config, seed=1, stall=stall, latency=(1, 30), pause=stall)
    lines = [[reader.random.randrange(1 << 20) for _ in range(12)] for _ in range(streams(config))]
    for number, numbers in enumerate(lines):
        reader.ask(number, numbers, stall=stall)
    reader.run(8000)
    for number, numbers in enumerate(lines):
        assert reader.words[number] == reader.expected(numbers), f"stream {number}"
    assert {beats for _, beats, _ in reader.memory.requests} == {config.line_beats}
    assert not reader.faults


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize(
    ("response", "code"),
    [(2, FaultCode.READ_SLAVE_ERROR), (3, FaultCode.READ_DECODE_ERROR)],
)
def test_an_error_of_any_beat_names_stream_and_line(name: str, response: int, code: FaultCode):
    config = CONFIGS[name]
    bad = 0x3_FFFF
    beat = config.line_beats - 1
    address = 64 * bad + beat * 64 // config.line_beats
    reader = Reader(config, seed=2, latency=(1, 9), errors={address: response})
    for number in range(streams(config)):
        reader.ask(number, [5 + number, bad if number == 3 else 9, 12, 13 + number])
    reader.run(2000)
    assert payloads(reader.faults) == [{"code": code, "unit": 1, "stream": 1, "address": 64 * bad}]


def test_the_fault_payload_is_zero_without_a_fault():
    reader = Reader(NARROW, latency=(1, 5))
    shown = reader.watch(reader.dut.fault.payload.as_value().any() & ~reader.dut.fault.valid)
    reader.ask(0, [0xFFFFF, 3])
    reader.run(200)
    assert not shown


@pytest.mark.parametrize("name", ["narrow", "wide", "own_port"])
def test_words_of_memory_follow_each_other(name: str):
    config = CONFIGS[name].with_changes(lines_per_stream=16)
    reader = Reader(config, latency=(3, 3))
    reader.ask(1, list(range(16)))
    reader.run(400)
    # Where beats are cut into words the first one does not wait for the memory.
    first = reader.word_cycles[0]
    gap = name == "wide"
    assert reader.word_cycles == [
        first,
        *range(first + 1 + gap, first + 16 * config.line_words + gap),
    ]


@dataclass(frozen=True)
class Queued:
    """Words of the input queue."""

    stream: int
    words: list[int]


@pytest.mark.parametrize("name", ["narrow", "wide", "own_port", "ports"])
@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_the_input_queue_fills_the_cycles_between(name: str, stall: float):
    config = CONFIGS[name].with_changes(input_queue=1)
    reader = Reader(config, seed=3, latency=(1, 20), pause=stall)
    dut = reader.dut
    from_memory = {0: [7, 8, 9, 10, 11], 2: [20, 21, 22, 23]}
    from_queue = {1: reader.expected([31, 32, 33]), 3: reader.expected([41, 42, 43, 44])}
    for number, lines in from_memory.items():
        reader.ask(number, lines, stall=stall)
    words = []
    left = {number: list(numbers) for number, numbers in from_queue.items()}
    while any(left.values()):
        number = reader.random.choice([number for number, rest in left.items() if rest])
        words.append({"data": left[number].pop(0), "stream": number})
    reader.send(dut.queue, words, stall=stall)

    async def rooms(ctx):
        while True:
            ctx.set(dut.room, reader.random.randrange(16) | reader.random.randrange(16))
            await ctx.tick()

    reader.process(rooms, background=True)
    reader.run(2000)
    for number, lines in from_memory.items():
        assert reader.words[number] == reader.expected(lines)
    for number, numbers in from_queue.items():
        assert reader.words[number] == numbers


def test_a_word_waits_until_its_own_store_has_room():
    config = NARROW.with_changes(input_queue=1)
    reader = Reader(config)
    dut = reader.dut

    async def drive(ctx):
        ctx.set(dut.queue.valid, 1)
        for number in range(streams(config)):
            ctx.set(dut.queue.payload.stream, number)
            ctx.set(dut.room, ~(1 << number) & 0b1111)
            assert not ctx.get(dut.queue.ready)
            assert not ctx.get(dut.word_valid)
            ctx.set(dut.room, 1 << number)
            assert ctx.get(dut.queue.ready)
            assert ctx.get(dut.word_valid) == 1 << number
            await ctx.tick()

    reader.process(drive)
    reader.run(20)
