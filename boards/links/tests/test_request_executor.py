from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from ember_hw.boards.links.frame import (
    ARGUMENTS,
    HEADER,
    MAX_DATA_BYTES,
    WINDOW_FRAMES,
    Frame,
    Operation,
    Status,
    pack,
)
from ember_hw.boards.links.request_executor import ENGINES, RequestExecutor
from ember_hw.rtl.tests.harness import Bench

pytestmark = pytest.mark.rtl

BEAT = 8


class ExecutorBench(Bench):
    """Engines that take data, answer with it and with the count, and note what they were asked."""

    def __init__(self, *, seed: int):
        super().__init__(RequestExecutor(beat_bytes=BEAT), seed=seed)
        self.executed: list[tuple[int, int]] = []
        self.answers: list[Frame] = []
        for engine in self.dut.engines:
            self.process(self._engine(engine), background=True)
        self.process(self._sender, background=True)

    def _engine(self, engine):
        async def serve(ctx):
            while True:
                _, _, start, length, count, address = await ctx.tick().sample(
                    engine.start, engine.length, engine.count, engine.address
                )
                if not start:
                    continue
                operation = ctx.get(self.request_operation)
                self.executed.append((operation, address))
                data = bytearray()
                # An odd address: the engine ends before it has taken all.
                wanted = length if address % 16 == 0 else length // 2
                while len(data) < wanted:
                    ctx.set(engine.i.ready, self.random.random() < 0.6)
                    _, _, valid, ready, byte = await ctx.tick().sample(
                        engine.i.valid, engine.i.ready, engine.i.payload
                    )
                    if valid and ready:
                        data.append(byte)
                ctx.set(engine.i.ready, 0)
                for byte in (*data, *(count % 256,) * min(count, 3)):
                    ctx.set(engine.o.payload, byte)
                    ctx.set(engine.o.valid, 1)
                    ready = False
                    while not ready:
                        _, _, ready = await ctx.tick().sample(engine.o.ready)
                    ctx.set(engine.o.valid, 0)
                ctx.set(engine.status, Status.OK if address % 16 == 0 else Status.REFUSED)
                ctx.set(engine.done, 1)
                await ctx.tick()
                ctx.set(engine.done, 0)

        return serve

    @property
    def request_operation(self):
        return self.dut.answer.payload.header.operation

    async def _sender(self, ctx):
        """Read answers as `FrameSender` does, slowly."""
        dut = self.dut
        while True:
            ctx.set(dut.answer.ready, 1)
            _, _, valid, answer = await ctx.tick().sample(dut.answer.valid, dut.answer.payload)
            if not valid:
                continue
            ctx.set(dut.answer.ready, 0)
            ctx.set(dut.sender_busy, 1)
            ctx.set(dut.sender_slot, answer.slot)
            data = bytearray()
            for at in range(answer.header.length):
                ctx.set(dut.read_address, answer.slot * MAX_DATA_BYTES + at)
                await ctx.tick()
                while self.random.random() < 0.3:
                    await ctx.tick()
                data.append(ctx.get(dut.read_data))
            ctx.set(dut.sender_busy, 0)
            header = answer.header
            self.answers.append(
                Frame(header.operation, header.session, header.sequence, header.status, bytes(data))
            )

    def ask(self, frames: Sequence[Frame], answers: int) -> None:
        content = b"".join(
            pack(
                HEADER,
                {
                    "operation": one.operation,
                    "session": one.session,
                    "sequence": one.sequence,
                    "status": one.status,
                    "length": len(one.payload),
                },
            )
            + one.payload
            for one in frames
        )
        self.send(self.dut.i, content, stall=0.1)

        async def wait(ctx):
            while len(self.answers) < answers:
                await ctx.tick()

        self.process(wait)


def request(
    operation: int, sequence: int, *, session: int = 5, at: int = 0, count: int = 0, data=b""
) -> Frame:
    payload = pack(ARGUMENTS, {"address": at, "count": count}) + data
    return Frame(operation, session, sequence, payload=payload)


def hello(sequence: int = 0, session: int = 5) -> Frame:
    return request(Operation.HELLO, sequence, session=session)


def test_requests_are_executed_in_order_and_answered_with_their_number() -> None:
    rng = random.Random(1)
    frames, wanted = [hello()], [Frame(Operation.HELLO, 5, 0)]
    for number in range(1, 12):
        data = rng.randbytes(BEAT * rng.randrange(4))
        frames.append(request(Operation.WRITE_MEMORY, number, at=16 * number, data=data))
        wanted.append(Frame(Operation.WRITE_MEMORY, 5, number, Status.OK, data))
    bench = ExecutorBench(seed=1)
    bench.ask(frames, len(frames))
    bench.run(8_000)
    assert bench.answers == wanted
    assert [address for _, address in bench.executed] == [16 * n for n in range(12)]


def test_each_operation_has_its_engine() -> None:
    operations = [operation for _, group in ENGINES for operation in group]
    assert sorted(operations) == list(Operation)
    frames = [hello(), *(request(op, 1 + n) for n, op in enumerate(operations[1:]))]
    bench = ExecutorBench(seed=2)
    bench.ask(frames, len(frames))
    bench.run(5_000)
    assert [answer.operation for answer in bench.answers] == operations
    assert all(answer.status == Status.OK for answer in bench.answers)


def test_what_was_executed_is_answered_again_and_not_done_again() -> None:
    data = bytes(range(BEAT))
    frames = [hello()]
    frames += [request(Operation.WRITE_MEMORY, n, at=16 * n, data=data) for n in range(1, 7)]
    again = [frames[4], frames[6], frames[3]]
    bench = ExecutorBench(seed=3)
    repeated = bench.watch(bench.dut.repeated)
    bench.ask(frames + again, len(frames) + 3)
    bench.run(8_000)
    assert bench.answers[7:] == [bench.answers[4], bench.answers[6], bench.answers[3]]
    assert len(bench.executed) == 7
    assert len(repeated) == 3


def test_a_gap_is_told_with_the_number_awaited() -> None:
    frames = [hello(250), request(Operation.DRAIN, 253), request(Operation.DRAIN, 251)]
    frames.append(request(Operation.DRAIN, (251 - WINDOW_FRAMES) % 256))
    bench = ExecutorBench(seed=4)
    gaps = bench.watch(bench.dut.out_of_order)
    bench.ask(frames, 4)
    bench.run(3_000)
    assert [(a.sequence, a.status) for a in bench.answers] == [
        (250, Status.OK),
        (251, Status.OUT_OF_ORDER),
        (251, Status.OK),
        (252, Status.OUT_OF_ORDER),
    ]
    assert len(gaps) == 2
    assert len(bench.executed) == 2


def test_other_sessions_are_refused_until_one_begins() -> None:
    frames = [
        request(Operation.DRAIN, 0),  # before any session
        hello(),
        request(Operation.DRAIN, 1, session=6),
        hello(7, session=6),
        request(Operation.DRAIN, 1),
        request(Operation.DRAIN, 8, session=6),
    ]
    bench = ExecutorBench(seed=5)
    bench.ask(frames, 6)
    bench.run(4_000)
    assert [(a.session, a.sequence, a.status) for a in bench.answers] == [
        (5, 0, Status.NO_SESSION),
        (5, 0, Status.OK),
        (6, 1, Status.NO_SESSION),
        (6, 7, Status.OK),
        (5, 1, Status.NO_SESSION),
        (6, 8, Status.OK),
    ]


@pytest.mark.parametrize(
    ("bad", "status"),
    [
        (request(99, 1, data=b"abc"), Status.BAD_OPERATION),
        (Frame(Operation.DRAIN, 5, 1, payload=b"short"), Status.BAD_ARGUMENT),
        (request(Operation.DRAIN, 1, count=MAX_DATA_BYTES + 1), Status.BAD_ARGUMENT),
        (request(Operation.READ_MEMORY, 1, at=4, count=8), Status.BAD_ARGUMENT),
        (request(Operation.CHECK_MEMORY, 1, count=4), Status.BAD_ARGUMENT),
        (request(Operation.WRITE_MEMORY, 1, data=b"abcd"), Status.BAD_ARGUMENT),
        (request(Operation.WRITE_REGISTERS, 1, data=b"ab"), Status.BAD_ARGUMENT),
    ],
)
def test_what_no_engine_takes_is_refused_and_the_next_request_is_right(bad, status) -> None:
    frames = [hello(), bad, request(Operation.CHECK_MEMORY, 2, count=1 << 20)]
    bench = ExecutorBench(seed=6)
    bench.ask(frames, 3)
    bench.run(3_000)
    assert [answer.status for answer in bench.answers] == [Status.OK, status, Status.OK]
    assert len(bench.executed) == 2


def test_data_that_an_engine_leaves_is_skipped() -> None:
    data = bytes(range(4 * BEAT))
    frames = [
        hello(),
        request(Operation.WRITE_MEMORY, 1, at=8, data=data),
        request(Operation.WRITE_MEMORY, 2, at=16, data=data[:BEAT]),
    ]
    bench = ExecutorBench(seed=7)
    bench.ask(frames, 3)
    bench.run(3_000)
    assert [(a.status, a.payload) for a in bench.answers[1:]] == [
        (Status.REFUSED, data[: 2 * BEAT]),
        (Status.OK, data[:BEAT]),
    ]
