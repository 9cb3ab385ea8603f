from __future__ import annotations

import zlib

import pytest

from ember_hw import registers
from ember_hw.boards.links.byte_engines import DescriptionEngine, DrainEngine, ErrorEngine
from ember_hw.boards.links.frame import BOARD_REGISTERS, ErrorCount, Status
from ember_hw.boards.links.memory_engine import MemoryEngine
from ember_hw.boards.links.register_engine import RegisterEngine
from ember_hw.rtl.axi import Response
from ember_hw.rtl.tests.harness import Bench, refuses

pytestmark = pytest.mark.rtl


class EngineBench(Bench):
    """Runs requests on an engine one after the other, with stalls."""

    def __init__(self, dut, *, seed: int = 0):
        super().__init__(dut, seed=seed)
        self.answers: list[tuple[Status, bytes]] = []

    def ask(self, *requests: dict) -> None:
        """Each request: address, count, data (None of a read), is_check."""

        async def run(ctx):
            for request in requests:
                self.answers.append(await self._one(ctx, **request))

        self.process(run)

    async def _one(self, ctx, *, address=0, count=0, data=None, is_check=False):
        engine = self.dut.engine
        left = list(data or b"")
        for signal, value in (
            (engine.address, address),
            (engine.count, count),
            (engine.length, len(left)),
            (engine.is_write, data is not None),
            (engine.is_check, is_check),
            (engine.start, 1),
        ):
            ctx.set(signal, value)
        got = bytearray()
        _, _, done = await ctx.tick().sample(engine.done)
        assert not done
        ctx.set(engine.start, 0)
        for _ in range(2_000):
            gives = bool(left) and self.random.random() < 0.7
            takes = self.random.random() < 0.7
            ctx.set(engine.i.valid, gives)
            if gives:
                ctx.set(engine.i.payload, left[0])
            ctx.set(engine.o.ready, takes)
            _, _, ready, valid, byte, done, status = await ctx.tick().sample(
                engine.i.ready,
                engine.o.valid,
                engine.o.payload,
                engine.done,
                engine.status,
            )
            if gives and ready:
                left.pop(0)
            if takes and valid:
                got.append(byte)
            if done:
                return Status(status), bytes(got)
        raise AssertionError("the engine does not end")


def serve_registers(bench: EngineBench, bus, held: dict[int, int]) -> None:
    """Answer accesses to what is in `held`, all others with SLVERR."""

    async def wait(ctx):
        while bench.random.random() < 0.5:
            await ctx.tick()

    async def writes(ctx):
        while True:
            taken = {}
            for channel in bench.random.sample(["aw", "w"], 2):
                await wait(ctx)
                ctx.set(getattr(bus, f"{channel}ready"), 1)
                valid = False
                while not valid:
                    _, _, valid, address, word, strobe = await ctx.tick().sample(
                        getattr(bus, f"{channel}valid"), bus.awaddr, bus.wdata, bus.wstrb
                    )
                ctx.set(getattr(bus, f"{channel}ready"), 0)
                taken[channel] = address if channel == "aw" else (word, strobe)
            word, strobe = taken["w"]
            assert strobe == 0b1111
            is_held = taken["aw"] in held
            if is_held:
                held[taken["aw"]] = word
            await wait(ctx)
            ctx.set(bus.bresp, Response.OKAY if is_held else Response.SLAVE_ERROR)
            ctx.set(bus.bvalid, 1)
            await ctx.tick().until(bus.bready)
            ctx.set(bus.bvalid, 0)

    async def reads(ctx):
        while True:
            await wait(ctx)
            ctx.set(bus.arready, 1)
            valid = False
            while not valid:
                _, _, valid, address = await ctx.tick().sample(bus.arvalid, bus.araddr)
            ctx.set(bus.arready, 0)
            await wait(ctx)
            ctx.set(bus.rdata, held.get(address, 0))
            ctx.set(bus.rresp, Response.OKAY if address in held else Response.SLAVE_ERROR)
            ctx.set(bus.rvalid, 1)
            await ctx.tick().until(bus.rready)
            ctx.set(bus.rvalid, 0)

    bench.process(writes, background=True)
    bench.process(reads, background=True)


def words(*values: int) -> bytes:
    return b"".join(value.to_bytes(4, "little") for value in values)


@pytest.mark.parametrize("seed", range(3))
def test_registers_are_read_and_written_in_order(seed: int) -> None:
    bench = EngineBench(RegisterEngine(has_board_bus=True), seed=seed)
    unit, board = dict.fromkeys((0x10, 0x14, 0xFFC), 0), {0x40: 7}
    serve_registers(bench, bench.dut.bus, unit)
    serve_registers(bench, bench.dut.board_bus, board)
    bench.ask(
        {"address": 0x10, "data": words(0x01020304, 0xF0E0D0C0)},
        {"address": 0x10, "count": 8},
        {"address": BOARD_REGISTERS + 0x40, "count": 4},
        {"address": BOARD_REGISTERS + 0x40, "data": words(9)},
        {"address": 0x14, "count": 0},
        {"address": 0x14, "data": words(5, 6)},
        {"address": 0xFFC, "count": 8},
        {"address": 1 << 39, "count": 4},
    )
    bench.run(3_000)
    assert bench.answers == [
        (Status.OK, b""),
        (Status.OK, words(0x01020304, 0xF0E0D0C0)),
        (Status.OK, words(7)),
        (Status.OK, b""),
        (Status.OK, b""),
        (Status.REFUSED, b""),  # 0x18 holds nothing
        (Status.REFUSED, words(0)),  # 0x1000 is no register of the unit
        (Status.REFUSED, b""),
    ]
    assert unit == {0x10: 0x01020304, 0x14: 5, 0xFFC: 0}
    assert board == {0x40: 9}


def test_without_a_board_bus_its_addresses_are_refused() -> None:
    bench = EngineBench(RegisterEngine())
    serve_registers(bench, bench.dut.bus, {})
    bench.ask({"address": BOARD_REGISTERS, "count": 4})
    bench.run(500)
    assert bench.answers == [(Status.REFUSED, b"")]
    assert len(bench.dut.bus.awaddr) == registers.ADDRESS_WIDTH_BITS


def serve_memory(bench: EngineBench, content: bytearray, data_bits: int) -> None:
    """Answer accesses within `content`, all others with an error."""
    memory, size = bench.dut.memory, data_bits // 8

    async def serve(ctx):
        while True:
            while bench.random.random() < 0.5:
                await ctx.tick()
            ctx.set(memory.request.ready, 1)
            valid = False
            while not valid:
                _, _, valid, wanted = await ctx.tick().sample(
                    memory.request.valid, memory.request.payload
                )
            ctx.set(memory.request.ready, 0)
            while bench.random.random() < 0.5:
                await ctx.tick()
            at = wanted.address
            assert at % size == 0
            is_error = at >= len(content)
            if wanted.is_write and not is_error:
                content[at : at + size] = wanted.data.to_bytes(size, "little")
            ctx.set(memory.answer_error, is_error)
            ctx.set(memory.answer_data, int.from_bytes(content[at : at + size], "little"))
            ctx.set(memory.answer_valid, 1)
            await ctx.tick()
            ctx.set(memory.answer_valid, 0)

    bench.process(serve, background=True)


@pytest.mark.parametrize("data_bits", [32, 128])
def test_memory_is_read_written_and_checked(data_bits: int) -> None:
    size = data_bits // 8
    bench = EngineBench(MemoryEngine(address_bits=12, data_bits=data_bits), seed=data_bits)
    content = bytearray(range(8 * size))
    data = bytes(range(100, 100 + 2 * size))
    after = bytes(content[:size]) + data + bytes(content[3 * size :])
    serve_memory(bench, content, data_bits)
    bench.ask(
        {"address": size, "data": data},
        {"address": 0, "count": 8 * size},
        {"address": size, "count": 3 * size, "is_check": True},
        {"address": 0, "count": 0},
        {"address": 7 * size, "count": 2 * size},
        {"address": 8 * size, "data": data},
        {"address": 1 << 12, "count": size},
        {"address": 7 * size, "count": 2 * size, "is_check": True},
        {"address": 0, "count": 0, "is_check": True},
    )
    bench.run(5_000)
    assert bench.answers == [
        (Status.OK, b""),
        (Status.OK, after),
        (Status.OK, zlib.crc32(after[size : 4 * size]).to_bytes(4, "little")),
        (Status.OK, b""),
        (Status.NO_MEMORY, after[7 * size :]),
        (Status.NO_MEMORY, b""),
        (Status.NO_MEMORY, b""),
        (Status.NO_MEMORY, b""),
        (Status.OK, bytes(4)),
    ]


@pytest.mark.parametrize("is_taken", [False, True])
def test_memory_without_an_answer_ends_a_request_and_its_late_answer_is_dropped(
    is_taken: bool,
) -> None:
    bench = EngineBench(MemoryEngine(address_bits=12, data_bits=32, timeout_cycles=50), seed=6)
    memory, answers = bench.dut.memory, bench.answers
    seen = []

    async def serve(ctx):
        ctx.set(memory.request.ready, is_taken)
        await ctx.tick().until(memory.request.valid)
        ctx.set(memory.request.ready, 0)
        while len(answers) < 2:  # both requests have ended
            await ctx.tick()
            wanted = ctx.get(memory.request.payload)
            assert ctx.get(memory.request.valid) == (not is_taken)
            assert is_taken or (wanted.address, wanted.is_write, wanted.data) == (4, 1, 0x04030201)
        for data in (0xBAD, 0xAA55):
            if data == 0xAA55 or not is_taken:
                ctx.set(memory.request.ready, 1)
                await ctx.tick().until(memory.request.valid)
                ctx.set(memory.request.ready, 0)
            seen.append(ctx.get(memory.request.payload).address)
            ctx.set(memory.answer_data, data)
            ctx.set(memory.answer_valid, 1)
            await ctx.tick()
            ctx.set(memory.answer_valid, 0)

    async def ask(ctx):
        answers.append(await bench._one(ctx, address=4, data=bytes([1, 2, 3, 4])))
        answers.append(await bench._one(ctx, address=8, count=4))
        while not seen:
            await ctx.tick()
        await ctx.tick().repeat(2)
        answers.append(await bench._one(ctx, address=12, count=4))

    bench.process(serve, background=True)
    bench.process(ask)
    bench.run(500)
    no_answer = (Status.NO_ANSWER, b"")
    assert answers == [no_answer, no_answer, (Status.OK, words(0xAA55))]
    assert seen == [4, 12]


def test_parameters_of_a_memory_engine_are_checked() -> None:
    with refuses("address_bits must be from 1 to 40, not 41"):
        MemoryEngine(address_bits=41, data_bits=64)
    with refuses("data_bits must be a power of two, 32 or more, not 48"):
        MemoryEngine(address_bits=32, data_bits=48)
    with refuses("timeout_cycles must be at least 1, not 0"):
        MemoryEngine(address_bits=32, data_bits=64, timeout_cycles=0)


def test_description_is_read_from_any_byte_and_ends_in_zeros() -> None:
    bench = EngineBench(DescriptionEngine(description=b"a board of ours"), seed=3)
    bench.ask({"address": 2, "count": 5}, {"address": 13, "count": 6}, {"count": 0})
    bench.ask()
    bench.run(500)
    assert bench.answers == [(Status.OK, b"board"), (Status.OK, b"rs\0\0\0\0"), (Status.OK, b"")]


@pytest.mark.parametrize("length", [0, 4097])
def test_length_of_a_description_is_checked(length: int) -> None:
    with refuses(f"description must be 1 to 4096 bytes, not {length}"):
        DescriptionEngine(description=bytes(length))


def test_errors_are_counted_each_for_itself() -> None:
    bench = EngineBench(ErrorEngine(), seed=4)
    strobes = [0b00001, 0b00011, 0b10100, 0b00001]

    async def strobe(ctx):
        for value in strobes:
            ctx.set(bench.dut.strobes, value)
            await ctx.tick()
        ctx.set(bench.dut.strobes, 0)
        bench.answers.append(await bench._one(ctx))

    bench.process(strobe)
    bench.run(500)
    counts = [sum(value >> kind & 1 for value in strobes) for kind in ErrorCount]
    assert bench.answers == [(Status.OK, words(*counts))]


def test_a_drain_ends_when_it_is_full_or_nothing_comes() -> None:
    bench = EngineBench(DrainEngine(patience_cycles=20), seed=5)
    bench.send(bench.dut.queue, range(1, 11), stall=0.3)
    bench.ask({"count": 4}, {"count": 0}, {"count": 20}, {"count": 3})
    bench.run(500)
    assert bench.answers == [
        (Status.OK, bytes([1, 2, 3, 4])),
        (Status.OK, b""),
        (Status.OK, bytes([5, 6, 7, 8, 9, 10])),
        (Status.OK, b""),
    ]


def test_patience_is_checked() -> None:
    with refuses("patience_cycles must be at least 1, not 0"):
        DrainEngine(patience_cycles=0)
