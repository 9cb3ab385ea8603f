"""Executes each request once, in order, and keeps the answers that the host may have missed."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ember_hw.boards.links.engine import EngineSignature
from ember_hw.boards.links.frame import (
    ARGUMENT_BYTES,
    ARGUMENTS,
    HEADER,
    HEADER_BYTES,
    MAX_DATA_BYTES,
    WINDOW_FRAMES,
    Operation,
    Status,
)
from ember_hw.boards.links.frame_sender import ANSWER_LAYOUT, HEADER_LAYOUT
from ember_hw.boards.links.ports import byte_stream
from ember_hw.rtl.fifos import NO_BYPASS

assert [name for name, _, _ in HEADER][-1] == "length"
assert [name for name, _, _ in ARGUMENTS] == ["address", "count"]

#: The engines, in the order of `RequestExecutor.engines`, by the operations that they execute.
ENGINES: tuple[tuple[str, tuple[Operation, ...]], ...] = (
    ("description", (Operation.HELLO, Operation.DESCRIBE)),
    ("registers", (Operation.READ_REGISTERS, Operation.WRITE_REGISTERS)),
    ("memory", (Operation.READ_MEMORY, Operation.WRITE_MEMORY, Operation.CHECK_MEMORY)),
    ("queues", (Operation.DRAIN,)),
    ("errors", (Operation.READ_ERRORS,)),
)
_WRITES = (Operation.WRITE_REGISTERS, Operation.WRITE_MEMORY)


class RequestExecutor(wiring.Component):
    """Takes requests as bytes, has an engine execute each, and has the answer sent.

    The session, the number awaited and the answers kept are here; see `ember_hw.boards.links.frame`
    for the rules. A byte a cycle in and out, and some 20 cycles a request.

    Parameters
    ----------
    beat_bytes : int
        Of memory: its addresses and counts are multiples.

    Members
    -------
    i : stream
        Good frames without their CRC, as `FrameReceiver` hands them on.
    engines : EngineSignature
        One for each of `ENGINES`.
    answer : stream, out
        What `FrameSender` is to send.
    sender_busy, sender_slot : in; read_address : in; read_data : out
        The sender's, which reads the kept answers here.
    repeated, out_of_order : out
        Strobes, one for a request.
    """

    def __init__(self, *, beat_bytes: int):
        self.beat_bytes = beat_bytes
        slot_address = range(WINDOW_FRAMES * MAX_DATA_BYTES)
        super().__init__(
            {
                "i": In(byte_stream()),
                "engines": Out(EngineSignature()).array(len(ENGINES)),
                "answer": Out(stream.Signature(ANSWER_LAYOUT)),
                "sender_busy": In(1),
                "sender_slot": In(range(WINDOW_FRAMES)),
                "read_address": In(slot_address),
                "read_data": Out(8),
                "repeated": Out(1),
                "out_of_order": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.answers = answers = Memory(
            shape=8, depth=WINDOW_FRAMES * MAX_DATA_BYTES, init=[], attrs=NO_BYPASS
        )
        m.submodules.headers = headers = Memory(
            shape=HEADER_LAYOUT, depth=WINDOW_FRAMES, init=[], attrs=NO_BYPASS
        )
        write, read = answers.write_port(), answers.read_port()
        keep, kept = headers.write_port(), headers.read_port(domain="comb")
        m.d.comb += [read.addr.eq(self.read_address), self.read_data.eq(read.data)]

        request = Signal(HEADER_LAYOUT)
        arguments = Signal(8 * ARGUMENT_BYTES)
        left = Signal(16)  # bytes of the frame that are still to come
        have = Signal(range(max(HEADER_BYTES, ARGUMENT_BYTES) + 1))
        reply = Signal(HEADER_LAYOUT)
        session, in_session = Signal(8), Signal()
        awaited = Signal(8)
        is_new = Signal()  # executed now; else a kept answer, or a word on why not
        is_repeated = Signal()
        slot = Signal(range(WINDOW_FRAMES))
        takes = Signal()

        m.d.comb += takes.eq(self.i.valid & self.i.ready)
        with m.If(takes):
            m.d.sync += left.eq(left - 1)
        m.d.comb += [
            slot.eq(request.sequence),
            kept.addr.eq(slot),
            keep.addr.eq(slot),
            keep.data.eq(reply),
            self.answer.payload.slot.eq(slot),
            self.answer.payload.header.eq(reply),
        ]
        with m.If(is_repeated):
            m.d.comb += self.answer.payload.header.eq(kept.data)

        chosen = Signal(range(len(ENGINES)))
        running = Signal()
        engine_ready, engine_done, engine_status = Signal(), Signal(), Signal(Status)
        self._connect_engines(
            m, request, arguments, left, chosen, running, engine_ready, engine_done, engine_status
        )

        def refuse(status: Status) -> None:
            m.d.sync += reply.status.eq(status)
            m.next = "SKIP"

        with m.FSM(name="request"):
            with m.State("HEADER"):
                m.d.comb += self.i.ready.eq(1)
                with m.If(self.i.valid):
                    shifted = Cat(Value.cast(request)[8:], self.i.payload)
                    m.d.sync += [Value.cast(request).eq(shifted), have.eq(have + 1)]
                    with m.If(have == HEADER_BYTES - 1):
                        m.next = "JUDGE"
            with m.State("JUDGE"):
                distance = Signal(8)
                is_other = Signal()
                is_hello = Signal()
                m.d.comb += [
                    distance.eq(awaited - request.sequence),
                    is_other.eq(~in_session | (request.session != session)),
                    is_hello.eq(request.operation == Operation.HELLO),
                ]
                m.d.sync += [
                    left.eq(request.length),
                    have.eq(0),
                    reply.eq(request),
                    reply.status.eq(Status.OK),
                    reply.length.eq(0),
                    is_new.eq(0),
                    is_repeated.eq(0),
                ]
                with m.If(is_other & ~is_hello):
                    refuse(Status.NO_SESSION)
                with m.Elif(is_other | (distance == 0)):
                    m.d.sync += [
                        session.eq(request.session),
                        in_session.eq(1),
                        awaited.eq(request.sequence + 1),
                        is_new.eq(1),
                    ]
                    m.next = "ARGUMENTS"
                with m.Elif(distance <= WINDOW_FRAMES):
                    m.d.comb += self.repeated.eq(1)
                    m.d.sync += is_repeated.eq(1)
                    m.next = "SKIP"
                with m.Else():
                    m.d.comb += self.out_of_order.eq(1)
                    m.d.sync += reply.sequence.eq(awaited)
                    refuse(Status.OUT_OF_ORDER)
            with m.State("ARGUMENTS"):
                with m.If(have == ARGUMENT_BYTES):
                    m.next = "CHECK"
                with m.Elif(left == 0):
                    refuse(Status.BAD_ARGUMENT)
                with m.Else():
                    m.d.comb += self.i.ready.eq(1)
                    with m.If(self.i.valid):
                        shifted = Cat(arguments[8:], self.i.payload)
                        m.d.sync += [arguments.eq(shifted), have.eq(have + 1)]
            with m.State("CHECK"):
                # The sender may still read an older answer from the slot of this one.
                is_free = ~(self.sender_busy & (self.sender_slot == slot))
                with m.Switch(request.operation):
                    for number, (name, operations) in enumerate(ENGINES):
                        with m.Case(*operations):
                            with m.If(self._is_bad(name, request, arguments, left)):
                                refuse(Status.BAD_ARGUMENT)
                            with m.Elif(is_free):
                                m.d.comb += self.engines[number].start.eq(1)
                                m.d.sync += chosen.eq(number)
                                m.next = "RUN"
                    with m.Default():
                        refuse(Status.BAD_OPERATION)
            with m.State("RUN"):
                m.d.comb += [running.eq(1), self.i.ready.eq(engine_ready & (left != 0))]
                with m.If(write.en):
                    m.d.sync += reply.length.eq(reply.length + 1)
                with m.If(engine_done):
                    refuse(engine_status)
            with m.State("SKIP"):
                m.d.comb += self.i.ready.eq(left != 0)
                with m.If(left == 0):
                    m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += [self.answer.valid.eq(1), keep.en.eq(is_new)]
                with m.If(self.answer.ready):
                    m.d.sync += have.eq(0)
                    m.next = "HEADER"

        m.d.comb += write.addr.eq(slot * MAX_DATA_BYTES + reply.length[: write.addr.shape().width])
        for number, engine in enumerate(self.engines):
            with m.If(running & (chosen == number)):
                m.d.comb += [write.data.eq(engine.o.payload), write.en.eq(engine.o.valid)]
        return m

    def _is_bad(self, name: str, request, arguments, left) -> Value:
        """Return whether arguments don't suit an engine."""
        address, count = _split(arguments)
        unit = {"registers": 4, "memory": self.beat_bytes}.get(name, 1)
        is_odd = ((address | count | left) & (unit - 1)).any()
        is_long = (count > MAX_DATA_BYTES) & (request.operation != Operation.CHECK_MEMORY)
        return is_odd | is_long

    def _connect_engines(
        self, m: Module, request, arguments, left, chosen, running, ready, done, status
    ) -> None:
        """Bring every engine the request, and back from the chosen one what it says."""
        address, count = _split(arguments)
        for number, engine in enumerate(self.engines):
            is_mine = running & (chosen == number)
            m.d.comb += [
                engine.is_write.eq(
                    Cat(request.operation == operation for operation in _WRITES).any()
                ),
                engine.is_check.eq(request.operation == Operation.CHECK_MEMORY),
                engine.address.eq(address),
                engine.count.eq(count),
                engine.length.eq(left),
                engine.i.payload.eq(self.i.payload),
                engine.i.valid.eq(is_mine & self.i.valid & (left != 0)),
                engine.o.ready.eq(is_mine),
            ]
            with m.If(is_mine):
                m.d.comb += [
                    ready.eq(engine.i.ready),
                    done.eq(engine.done),
                    status.eq(engine.status),
                ]


def _split(arguments) -> tuple[Value, Value]:
    """Return address and count."""
    first = 8 * ARGUMENTS[0][1]
    return arguments[:first], arguments[first:]
