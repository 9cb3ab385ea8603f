"""A board at the end of a link: what it is, its registers, its memory and its queues."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Self

from ember_hw.boards.description import BoardDescription
from ember_hw.boards.host.client import LinkClient, Request
from ember_hw.boards.links.frame import (
    DESCRIPTION_HEAD,
    DESCRIPTION_HEAD_BYTES,
    MAGIC,
    MAX_DATA_BYTES,
    PROTOCOL_VERSION,
    ErrorCount,
    Frame,
    Operation,
    Status,
    unpack,
)
from ember_hw.errors import DeviceError, LinkError

#: Bytes of memory whose check sums decide whether they must be written.
BLOCK_BYTES = 1 << 14

_REGISTER_BYTES = 4
#: Bytes of the description in a frame: short ones come through a bad link too.
_DESCRIBED_BYTES = 64


@dataclass(frozen=True)
class Upload:
    """What an upload did.

    Attributes
    ----------
    num_bytes, written_bytes : int
        Bytes that are in memory now, and those of them that weren't before.
    seconds : float
        Time that it took.
    """

    num_bytes: int
    written_bytes: int
    seconds: float

    @property
    def megabytes_per_second(self) -> float:
        """Bytes written, in 10**6 a second; 0 where nothing had to be."""
        return self.written_bytes / self.seconds / 1e6 if self.seconds else 0.0


class Board:
    """A board in a session of its own.

    Parameters
    ----------
    client : LinkClient
        Its link, which the board closes.

    Attributes
    ----------
    description : BoardDescription
        What the board says of itself.

    Raises
    ------
    LinkError
        Nothing answers, or what answers is no board of this version.
    """

    def __init__(self, client: LinkClient) -> None:
        self.client = client
        try:
            self.description = self._read_description()
        except Exception:
            client.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def port(self) -> str:
        """Where the board is."""
        return self.client.channel.name

    def read_registers(self, address: int, count: int = 1) -> list[int]:
        """Return 32-bit registers from an address on.

        Raises
        ------
        DeviceError
            A register refuses to be read.
        """
        content = b"".join(
            self._checked(answer, f"registers from {address:#x}")
            for answer in self.client.transact(
                _reads(Operation.READ_REGISTERS, address, _REGISTER_BYTES * count)
            )
        )
        return [
            int.from_bytes(content[at : at + _REGISTER_BYTES], "little")
            for at in range(0, len(content), _REGISTER_BYTES)
        ]

    def read_register(self, address: int) -> int:
        """Return one register."""
        return self.read_registers(address)[0]

    def write_registers(self, address: int, values: Sequence[int]) -> None:
        """Write 32-bit registers from an address on.

        Raises
        ------
        DeviceError
            A register refuses what is written.
        """
        content = b"".join(value.to_bytes(_REGISTER_BYTES, "little") for value in values)
        for answer in self.client.transact(_writes(Operation.WRITE_REGISTERS, address, content)):
            self._checked(answer, f"registers from {address:#x}")

    def read_memory(self, address: int, count: int) -> bytes:
        """Return bytes of memory, whole beats.

        Raises
        ------
        DeviceError
            There is no memory.
        """
        answers = self.client.transact(_reads(Operation.READ_MEMORY, address, count))
        return b"".join(self._checked(answer, f"memory from {address:#x}") for answer in answers)

    def write_memory(self, address: int, content: bytes) -> None:
        """Write bytes of memory, whole beats; nothing is checked but the link's own frames.

        Raises
        ------
        DeviceError
            There is no memory.
        """
        for answer in self.client.transact(_writes(Operation.WRITE_MEMORY, address, content)):
            self._checked(answer, f"memory from {address:#x}")

    def check_sums(self, address: int, sizes: Sequence[int]) -> list[int]:
        """Return the CRC-32 of blocks of memory that follow each other, reckoned by the board.

        Raises
        ------
        DeviceError
            There is no memory.
        """

        def requests() -> Iterator[Request]:
            at = address
            for size in sizes:
                yield Request(Operation.CHECK_MEMORY, at, size)
                at += size

        return [
            int.from_bytes(self._checked(answer, f"memory from {address:#x}"), "little")
            for answer in self.client.transact(requests())
        ]

    def upload(
        self,
        address: int,
        content: bytes | memoryview,
        progress: Callable[[int, int], None] | None = None,
    ) -> Upload:
        """Bring bytes into memory: only blocks that differ are written, and each is checked.

        What an upload that broke had written is still there, so the next one goes on behind it.

        Parameters
        ----------
        address : int
            Of the first byte, a multiple of a beat.
        content : bytes-like
            Whole beats.
        progress : callable, optional
            Told the bytes that are there, and those in all.

        Raises
        ------
        DeviceError
            There is no memory, or it doesn't keep what is written.
        """
        began = monotonic()
        view = memoryview(content).cast("B")
        blocks = [view[at : at + BLOCK_BYTES] for at in range(0, len(view), BLOCK_BYTES)]
        wanted = [zlib.crc32(block) for block in blocks]
        found = self.check_sums(address, [len(block) for block in blocks])
        written = done = 0
        for number, block in enumerate(blocks):
            if wanted[number] != found[number]:
                at = address + number * BLOCK_BYTES
                self.write_memory(at, bytes(block))
                (check,) = self.check_sums(at, [len(block)])
                if check != wanted[number]:
                    raise DeviceError(
                        f"check sum of {len(block)} bytes at {at:#x} must be "
                        f"{wanted[number]:#010x} after they were written, not {check:#010x}; "
                        "run `ember-hw selftest`"
                    )
                written += len(block)
            done += len(block)
            if progress is not None:
                progress(done, len(view))
        return Upload(len(view), written, monotonic() - began)

    def drain(self, wants_more: Callable[[], bool]) -> Iterator[bytes]:
        """Yield bytes of the queues as they come, empty ones where none came for a while.

        Parameters
        ----------
        wants_more : callable
            Asked before each request; several are on their way at a time.
        """

        def requests() -> Iterator[Request]:
            while wants_more():
                yield Request(Operation.DRAIN, 0, MAX_DATA_BYTES)

        for answer in self.client.transact(requests()):
            yield self._checked(answer, "queues")

    def read_errors(self) -> dict[ErrorCount, int]:
        """Return the board's own counts of frames since power-up."""
        content = self._checked(self.client.ask(Request(Operation.READ_ERRORS)), "error counts")
        return {
            kind: int.from_bytes(content[4 * kind : 4 * kind + 4], "little") for kind in ErrorCount
        }

    def close(self) -> None:
        """Close the link."""
        self.client.close()

    def _read_description(self) -> BoardDescription:
        head = self.client.begin_session(DESCRIPTION_HEAD_BYTES)
        fields = unpack(DESCRIPTION_HEAD, head)
        if len(head) != DESCRIPTION_HEAD_BYTES or head[: len(MAGIC)] != MAGIC:
            raise LinkError(f"board at {self.port} must begin with {MAGIC!r}, not {head[:4]!r}")
        if fields["version"] != PROTOCOL_VERSION:
            raise LinkError(
                f"protocol version of the board at {self.port} must be {PROTOCOL_VERSION}, "
                f"not {fields['version']}; build its gateware with this ember_hw"
            )
        answers = self.client.transact(
            _reads(Operation.DESCRIBE, DESCRIPTION_HEAD_BYTES, fields["length"], _DESCRIBED_BYTES)
        )
        text = b"".join(self._checked(answer, "description") for answer in answers)
        if zlib.crc32(text) != fields["description_crc"]:
            raise LinkError(
                f"check sum of the description of the board at {self.port} must be "
                f"{fields['description_crc']:#010x}, not {zlib.crc32(text):#010x}"
            )
        return BoardDescription.from_json(text, fields["gateware_id"])

    def _checked(self, answer: Frame, what: str) -> bytes:
        """Return the data of an answer that is OK."""
        status = Status(answer.status)
        if status is Status.REFUSED:
            raise DeviceError(f"{what} must be there and ready, and an access was refused")
        if status is Status.NO_MEMORY:
            raise DeviceError(f"{what} must be within the board's memory, and is not")
        if status is not Status.OK:
            raise LinkError(
                f"{Operation(answer.operation).name} of {what} must be answered with OK, "
                f"not {status.name}"
            )
        return answer.payload


def _reads(
    operation: Operation, address: int, count: int, most: int = MAX_DATA_BYTES
) -> Iterator[Request]:
    """Yield requests that read so many bytes, at most so many each."""
    for at in range(0, count, most):
        yield Request(operation, address + at, min(most, count - at))


def _writes(operation: Operation, address: int, content: bytes) -> Iterator[Request]:
    """Yield requests that write bytes."""
    for at in range(0, len(content), MAX_DATA_BYTES):
        yield Request(operation, address + at, data=content[at : at + MAX_DATA_BYTES])
