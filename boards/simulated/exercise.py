"""Random requests to `LinkProbe`, each answer compared with what it must be."""

from __future__ import annotations

import random
import zlib
from collections import deque
from collections.abc import Iterator

from ember_hw.boards.description import BoardDescription
from ember_hw.boards.host.client import LinkClient, Request
from ember_hw.boards.links.frame import (
    BEAT_LAST,
    DESCRIPTION_HEAD_BYTES,
    Beat,
    Frame,
    Operation,
    Status,
)
from ember_hw.boards.simulated.probe import SCRATCH_WORDS, SUM_ADDRESS
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import LinkError

#: The board that `LinkProbe` says it is.
PROBE = BoardDescription(
    board="probe",
    config=AcceleratorConfig.preset("tiny"),
    gateware_id=0x7E7D_5D5E,
    clock_hz=50_000_000,
    memory_base=1 << 20,
    memory_bytes=1 << 14,
    memory="block RAM",
    proof="simulated",
)
_BEAT = PROBE.config.bus_bytes
#: Addresses that answer with an error.
_NO_REGISTER, _NO_MEMORY = 0x900, 1 << 30


class ProbeExerciser:
    """Knows what the probe holds, and so what each answer must be.

    Parameters
    ----------
    client : LinkClient
        Leads to the probe. A session is begun.
    seed : int
        Of the requests.
    most_bytes : int
        Most bytes of data in a request or an answer, 8 or more.

    Raises
    ------
    LinkError
        The link broke.
    """

    def __init__(self, client: LinkClient, *, seed: int, most_bytes: int = 48) -> None:
        self._client = client
        self._random = random.Random(seed)
        self._most_bytes = most_bytes
        client.begin_session(DESCRIPTION_HEAD_BYTES)
        self._scratch = bytearray(self._read(Operation.READ_REGISTERS, 0, 4 * SCRATCH_WORDS))
        self._sum = int.from_bytes(self._read(Operation.READ_REGISTERS, SUM_ADDRESS, 4), "little")
        base, size = PROBE.memory_base, PROBE.memory_bytes
        self._memory = bytearray(self._read(Operation.READ_MEMORY, base, size))
        self._queue = _Rows(self._read(Operation.DRAIN, 0, 3 * (1 + _BEAT)))
        self.data_bytes = 0

    def run(self, requests: int) -> None:
        """Make requests and compare their answers.

        Raises
        ------
        LinkError
            The link broke, or an answer is wrong.
        """
        expected: deque[tuple[Request, Status, bytes]] = deque()

        def draw() -> Iterator[Request]:
            for _ in range(requests):
                request = self._draw()
                expected.append((request, *self._expect(request)))
                yield request

        for answer in self._client.transact(draw()):
            request, status, payload = expected.popleft()
            wanted = (request.operation, status, payload)
            if (answer.operation, answer.status, answer.payload) != wanted:
                raise LinkError(f"answer to {request} must be {wanted}, not {answer}")
            self.data_bytes += len(request.data) + len(payload)

    def _read(self, operation: Operation, address: int, count: int) -> bytes:
        """Return bytes, in frames so short that they come through a bad link."""
        step = 0 if operation is Operation.DRAIN else self._most_bytes // 8 * 8
        pieces = [
            Request(operation, address + at, min(step or count, count - at))
            for at in range(0, count, step or count)
        ]
        answers: list[Frame] = list(self._client.transact(pieces))
        return b"".join(answer.payload for answer in answers)

    def _draw(self) -> Request:
        rng = self._random
        operation = rng.choice(list(Operation)[1:-1])
        words = rng.randrange(1 + self._most_bytes // 4)
        beats = rng.randrange(1 + self._most_bytes // _BEAT)
        base = PROBE.memory_base + _BEAT * rng.randrange(PROBE.memory_bytes // _BEAT - beats)
        if rng.random() < 0.02:
            base = _NO_MEMORY
        if operation in (Operation.READ_MEMORY, Operation.CHECK_MEMORY):
            return Request(operation, base, _BEAT * beats)
        if operation is Operation.WRITE_MEMORY:
            return Request(operation, base, data=rng.randbytes(_BEAT * beats))
        if operation is Operation.DRAIN:
            return Request(operation, 0, rng.randrange(self._most_bytes + 1))
        if operation is Operation.DESCRIBE:
            return Request(operation, rng.randrange(64), rng.randrange(self._most_bytes + 1))
        where = rng.random()
        register = 4 * rng.randrange(SCRATCH_WORDS - words)
        if where < 0.4:
            register, words = SUM_ADDRESS, 1
        elif where < 0.42:
            register = _NO_REGISTER
        if operation is Operation.READ_REGISTERS:
            return Request(operation, register, 4 * words)
        return Request(operation, register, data=rng.randbytes(4 * words))

    def _expect(self, request: Request) -> tuple[Status, bytes]:
        """Return what the answer must be, and change the model as the request does the probe."""
        at, count, data = request.address, request.count, request.data
        if request.operation is Operation.DRAIN:
            return Status.OK, self._queue.take(count)
        if request.operation is Operation.DESCRIBE:
            return Status.OK, PROBE.to_bytes()[at : at + count]
        if request.operation in (Operation.READ_REGISTERS, Operation.WRITE_REGISTERS):
            if at == _NO_REGISTER:
                return (Status.REFUSED if count or data else Status.OK), b""
            if at == SUM_ADDRESS:
                self._sum = (self._sum + int.from_bytes(data, "little")) % (1 << 32)
                return Status.OK, self._sum.to_bytes(4, "little")[:count]
            self._scratch[at : at + len(data)] = data
            return Status.OK, bytes(self._scratch[at : at + count])
        if at == _NO_MEMORY:
            if count or data:
                return Status.NO_MEMORY, b""
        else:
            at -= PROBE.memory_base
            self._memory[at : at + len(data)] = data
        held = bytes(self._memory[at : at + count])
        if request.operation is Operation.CHECK_MEMORY:
            return Status.OK, zlib.crc32(held).to_bytes(4, "little")
        return Status.OK, held


class _Rows:
    """The bytes of the probe's rows, from where some of them were drained."""

    def __init__(self, seen: bytes) -> None:
        step = 1 + _BEAT
        for skip in range(step):
            number = int.from_bytes(seen[skip + 1 : skip + step], "little")
            following = self._beat(number) + self._beat(number + 1)
            if seen[skip:].startswith(following[: len(seen) - skip]):
                break
        else:
            raise LinkError(f"queues must bring beats that count, not {seen.hex(' ')}")
        self._number = number
        self._rest = b""
        self.take(len(seen) - skip)

    @staticmethod
    def _beat(number: int) -> bytes:
        first = Beat.ROW | (BEAT_LAST if number % 4 == 3 else 0)
        return bytes([first]) + number.to_bytes(_BEAT, "little")

    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        while len(self._rest) < count:
            self._rest += self._beat(self._number)
            self._number += 1
        taken, self._rest = self._rest[:count], self._rest[count:]
        return taken
