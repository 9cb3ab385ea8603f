"""A board in Python, behind a channel in memory: what the client is tested with."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

from ember_hw import registers
from ember_hw.boards.description import BoardDescription
from ember_hw.boards.links.frame import (
    ARGUMENT_BYTES,
    ARGUMENTS,
    WINDOW_FRAMES,
    ErrorCount,
    Frame,
    FrameDecoder,
    Operation,
    Status,
    encode,
    unpack,
)
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import LinkError

CONFIG = AcceleratorConfig.preset("tiny")
DESCRIPTION = BoardDescription(
    board="fake",
    config=CONFIG,
    gateware_id=0xABCD,
    clock_hz=50_000_000,
    memory_base=1 << 20,
    memory_bytes=1 << 16,
    memory="block RAM",
    proof="simulated",
)


@dataclass
class FakeBoard:
    """Executes requests as the gateware does; time passes only while the host reads."""

    content: bytes = field(default_factory=DESCRIPTION.to_bytes)
    registers: dict[int, int] = field(default_factory=dict)
    memory: bytearray = field(default_factory=lambda: bytearray(DESCRIPTION.memory_bytes))
    queue: bytearray = field(default_factory=bytearray)
    name: str = "fake"
    log: list[Frame] = field(default_factory=list)
    is_silent: bool = False
    is_closed: bool = False
    answers_lost: int = 0
    has_dead_memory: bool = False

    def __post_init__(self) -> None:
        self.registers |= {
            registers.MAGIC.address: registers.MAGIC_VALUE,
            registers.ISA_VERSION.address: DESCRIPTION.isa_version,
            registers.CONFIG_HASH.address: CONFIG.hash(),
            registers.STATUS.address: registers.State.IDLE,
        }
        self.session: int | None = None
        self._awaited = 0
        self._kept: dict[int, Frame] = {}
        self._decoder = FrameDecoder()
        self._out = bytearray()
        self._now = 0.0

    def write(self, content: bytes) -> None:
        if self.is_closed:
            raise LinkError("port fake must be open")
        for frame in self._decoder.feed(content):
            if self.is_silent:
                continue
            answer = self._judge(frame)
            if self.answers_lost:
                self.answers_lost -= 1
                continue
            self._out += encode(answer)

    def read(self, seconds: float) -> bytes:
        self._now += seconds if not self._out else 0.0
        got, self._out = bytes(self._out), bytearray()
        return got

    def now(self) -> float:
        return self._now

    def close(self) -> None:
        self.is_closed = True

    def _judge(self, frame: Frame) -> Frame:
        number = frame.sequence

        def answer(status: Status, payload: bytes = b"", sequence: int = number) -> Frame:
            return Frame(frame.operation, frame.session, sequence, status, payload)

        if frame.session != self.session:
            if frame.operation != Operation.HELLO:
                return answer(Status.NO_SESSION)
            self.session, self._awaited = frame.session, number
        distance = (self._awaited - number) % 256
        if 0 < distance <= WINDOW_FRAMES:
            return self._kept[number]
        if distance:
            return answer(Status.OUT_OF_ORDER, sequence=self._awaited)
        self._awaited = (number + 1) % 256
        self.log.append(frame)
        arguments = unpack(ARGUMENTS, frame.payload)
        status, payload = self._execute(
            frame.operation,
            arguments["address"],
            arguments["count"],
            frame.payload[ARGUMENT_BYTES:],
        )
        self._kept[number] = answer(status, payload)
        return self._kept[number]

    def _execute(self, operation: int, at: int, count: int, data: bytes) -> tuple[Status, bytes]:
        if operation in (Operation.HELLO, Operation.DESCRIBE):
            return Status.OK, self.content[at : at + count]
        if operation == Operation.READ_REGISTERS:
            wanted = range(at, at + count, 4)
            if any(address not in self.registers for address in wanted):
                return Status.REFUSED, b""
            return Status.OK, b"".join(
                self.registers[address].to_bytes(4, "little") for address in wanted
            )
        if operation == Operation.WRITE_REGISTERS:
            for offset in range(0, len(data), 4):
                if at + offset not in self.registers:
                    return Status.REFUSED, b""
                word = int.from_bytes(data[offset : offset + 4], "little")
                self.registers[at + offset] = word
            return Status.OK, b""
        if operation == Operation.DRAIN:
            taken = bytes(self.queue[:count])
            del self.queue[:count]
            return Status.OK, taken
        if operation == Operation.READ_ERRORS:
            return Status.OK, b"".join(kind.to_bytes(4, "little") for kind in ErrorCount)
        if self.has_dead_memory:
            return Status.NO_ANSWER, b""
        at -= DESCRIPTION.memory_base
        if not 0 <= at <= at + max(count, len(data)) <= len(self.memory):
            return Status.NO_MEMORY, b""
        self.memory[at : at + len(data)] = data
        held = bytes(self.memory[at : at + count])
        if operation == Operation.CHECK_MEMORY:
            return Status.OK, zlib.crc32(held).to_bytes(4, "little")
        return Status.OK, held
