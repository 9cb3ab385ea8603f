from __future__ import annotations

import pytest
from amaranth.hdl import ResetInserter, Signal

from ember_hw import isa
from ember_hw.config import AcceleratorConfig
from ember_hw.registers import NO_UNIT, FaultCode
from ember_hw.rtl.gather_engine import GatherEngine
from ember_hw.rtl.layouts import row_tags
from ember_hw.rtl.tests.harness import CONFIG, Bench, ReadMemory, gaps, payloads, stamp

DEEP = CONFIG.with_changes(outstanding_reads=16, reorder_buffer_beats=64)


class Gather(Bench):
    """A gather engine and a memory that answers it."""

    def __init__(
        self,
        *,
        seed: int = 0,
        config: AcceleratorConfig = CONFIG,
        limit: int = 0,
        request_stall: float = 0.0,
        **memory,
    ):
        dut = GatherEngine(config=config)
        super().__init__(dut, seed=seed)
        self.config = config
        self.memory = ReadMemory(self, bus_bytes=config.bus_bytes, **memory)
        self.most_outstanding = self.most_reserved = 0
        self.blocked: list[tuple[int, int]] = []
        self.faults = self.watch(dut.fault.valid, dut.fault.payload)
        serve = self.memory.serve_stream(dut.request, dut.beat_valid, dut.beat, stall=request_stall)
        self.process(serve, background=True)

        async def watch(ctx):
            ctx.set(dut.limit, limit)
            while True:
                _, _, outstanding, reserved, *blocked = await ctx.tick().sample(
                    dut.outstanding, dut.reserved, dut.blocked_outstanding, dut.blocked_reorder
                )
                self.most_outstanding = max(self.most_outstanding, outstanding)
                self.most_reserved = max(self.most_reserved, reserved)
                self.blocked.append(tuple(blocked))

        self.process(watch, background=True)

    def random_rows(self, count: int, most_bytes: int) -> list[tuple[int, int]]:
        bus = self.config.bus_bytes
        return [
            (self.random.randrange(0, 1 << 14, bus), self.random.randrange(1, most_bytes + 1))
            for _ in range(count)
        ]

    def gather(self, rows: list[tuple[int, int]], *, stall: float = 0.0, start: int = 0):
        """Fetch rows (address, bytes), and check each byte, count and last that is delivered."""
        bus = self.config.bus_bytes
        expected = []
        for address, length in rows:
            for at in range(0, length, bus):
                used = min(bus, length - at)
                expected.append((stamp(address + at, used), int(at + bus >= length)))
        descriptors = [
            {"address": address, "last_byte": length - 1, "hint": isa.Hint.NONE, "entry": 1}
            for address, length in rows
        ]
        self.send(self.dut.descriptor, descriptors, stall=stall)
        beats = self.receive(self.dut.row, len(expected), stall=stall, start=start)
        self.run(5000)
        for beat, (data, last) in zip(payloads(beats), expected, strict=True):
            assert beat["bytes"] == len(data), f"seed {self.seed}"
            assert beat["last"] == last, f"seed {self.seed}"
            assert beat["data"].to_bytes(bus, "little")[: len(data)] == data, f"seed {self.seed}"
        return beats


@pytest.mark.parametrize(
    ("seed", "stall", "most_bytes"), [(1, 0.0, 40), (2, 0.3, 40), (3, 0.2, 300), (4, 0.6, 100)]
)
def test_rows_are_whole_and_in_order_however_beats_return(seed: int, stall: float, most_bytes: int):
    """Bursts return in any order and mixed; the buffer of 16 beats is passed through many times."""
    gather = Gather(seed=seed, latency=(1, 40), interleave=True, pause=stall, request_stall=stall)
    gather.gather(gather.random_rows(1200 // most_bytes + 20, most_bytes), stall=stall)
    assert gather.most_reserved == gather.config.reorder_buffer_beats
    assert not gather.faults


@pytest.mark.parametrize("reads", [2, 3, 5, 40])
def test_any_number_of_reads(reads: int):
    config = CONFIG.with_changes(outstanding_reads=reads, reorder_buffer_beats=64)
    gather = Gather(seed=reads, config=config, latency=(20, 60), interleave=True)
    gather.gather(gather.random_rows(60, 16))
    assert gather.most_outstanding == reads
    assert {tag for _, _, tag in gather.memory.requests} == set(range(row_tags(config)))


@pytest.mark.parametrize(("limit", "most"), [(1, 1), (3, 3), (4, 4), (9, 4), (0, 4)])
def test_the_limit_bounds_bursts_in_flight(limit: int, most: int):
    gather = Gather(seed=5, limit=limit, latency=(10, 10))
    gather.gather([(64 * i, 8) for i in range(12)])
    assert gather.most_outstanding == most
    # Blocked by tags alone: rows of a beat never fill the buffer.
    assert any(outstanding for outstanding, _ in gather.blocked)
    assert not any(reorder for _, reorder in gather.blocked)


def test_long_bursts_wait_for_room_in_the_buffer():
    gather = Gather(seed=6, latency=(10, 10))
    gather.gather([(128 * i, 64) for i in range(10)])  # 8 beats each, 16 places
    assert gather.most_reserved == 16
    assert any(reorder for _, reorder in gather.blocked)


def test_one_beat_a_cycle():
    gather = Gather(config=DEEP, latency=(3, 3))
    beats = gather.gather([(64 * i, 8 + i % 9) for i in range(60)])
    assert gaps(beats[20:]) == {1}


@pytest.mark.parametrize("beats_per_row", [1, 2, 4, 8])
def test_latency_that_keeps_the_port_busy(beats_per_row: int):
    """`outstanding_reads * beats` of latency + 12 are enough, as the docstring says."""
    config = DEEP.with_changes(reorder_buffer_beats=256)
    latency = 16 * beats_per_row - 12
    gather = Gather(config=config, latency=(latency, latency))
    beats = gather.gather([(64 * i, 8 * beats_per_row) for i in range(480 // beats_per_row)])
    assert gaps(beats[240:]) == {1}


def test_nothing_is_asked_for_until_the_buffer_is_cleared():
    gather = Gather(latency=(1, 1))
    beats = gather.gather([(0, 8)])
    assert beats[0].cycle >= gather.config.reorder_buffer_beats


def test_a_sink_that_takes_nothing_stops_requests_and_loses_nothing():
    gather = Gather(seed=7, latency=(1, 3), interleave=True)

    async def watch(ctx):
        await ctx.tick().repeat(200)
        # Bursts of three beats: five fill the buffer's 16 places.
        assert len(gather.memory.requests) == 5
        assert gather.memory.is_idle

    gather.process(watch)
    gather.gather([(64 * i, 24) for i in range(20)], start=250)


@pytest.mark.parametrize(
    ("response", "code"),
    [(2, FaultCode.READ_SLAVE_ERROR), (3, FaultCode.READ_DECODE_ERROR)],
)
@pytest.mark.parametrize("beat", [0, 3, 7, 8])
def test_an_error_of_any_beat_names_its_burst(response: int, code: FaultCode, beat: int):
    rows = [(128 * i, 80) for i in range(8)]  # a burst of 8 beats, one of 2
    address = 128 * 5 + 8 * beat
    gather = Gather(seed=8, latency=(1, 9), interleave=True, errors={address: response})
    gather.gather(rows)
    burst = 128 * 5 + (64 if beat >= 8 else 0)
    fault = {"code": code, "unit": NO_UNIT, "stream": 1, "address": burst}
    assert payloads(gather.faults) == [fault]


@pytest.mark.parametrize("reset_cycle", [20, 22, 25, 28, 31])
def test_a_reset_amid_bursts_leaves_nothing_behind(reset_cycle: int):
    """After a reset the memory has forgotten its bursts; the engine has to as well."""
    dut = GatherEngine(config=CONFIG)
    reset = Signal()
    bench = Bench(ResetInserter(reset)(dut), seed=10)
    old = ReadMemory(bench, bus_bytes=8, latency=(1, 1), interleave=True)
    new = ReadMemory(bench, bus_bytes=8, latency=(1, 1), interleave=True)
    got = []

    async def drive(ctx):
        cycle = 0
        memory = old
        while len(got) < 20:
            if cycle == reset_cycle:
                memory = new
            ctx.set(reset, cycle == reset_cycle)
            ctx.set(dut.descriptor.payload, {"address": 0x200, "last_byte": 79})
            ctx.set(dut.descriptor.valid, 1)
            ctx.set(dut.request.ready, 1)
            ctx.set(dut.row.ready, cycle > reset_cycle)
            beat = memory.answer(cycle) if cycle != reset_cycle else None
            ctx.set(dut.beat_valid, beat is not None)
            if beat is not None:
                tag, word, last, _ = beat
                ctx.set(dut.beat, {"tag": tag, "data": word, "last": last})
            _, _, asks, request, valid, row = await ctx.tick().sample(
                dut.request.valid, dut.request.payload, dut.row.valid, dut.row.payload
            )
            if asks and cycle != reset_cycle:
                memory.ask(cycle, request.address, request.length + 1, request.tag)
            if valid and cycle > reset_cycle:
                got.append((row.data, row.last))
            cycle += 1

    bench.process(drive)
    bench.run(400)
    words = [int.from_bytes(stamp(0x200 + 8 * i, 8), "little") for i in range(10)]
    assert got == [(word, int(i == 9)) for i, word in enumerate(words)] * 2
