"""A board at the end of a link: what it is, its registers, its memory and its queues."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from time import monotonic
from typing import Self

import numpy as np
from numpy.typing import NDArray

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
        self._known: dict[tuple[int, int], int] = {}  # check sums of blocks of memory
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
            self.checked(answer, f"registers from {address:#x}")
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
            self.checked(answer, f"registers from {address:#x}")

    def read_memory(self, address: int, count: int) -> bytes:
        """Return bytes of memory, whole beats.

        Raises
        ------
        DeviceError
            There is no memory.
        """
        answers = self.client.transact(_reads(Operation.READ_MEMORY, address, count))
        return b"".join(self.checked(answer, f"memory from {address:#x}") for answer in answers)

    def write_memory(self, address: int, content: bytes) -> None:
        """Write bytes of memory, whole beats; nothing is checked but the link's own frames.

        Raises
        ------
        DeviceError
            There is no memory.
        """
        self._forget(address, len(content))
        for answer in self.client.transact(_writes(Operation.WRITE_MEMORY, address, content)):
            self.checked(answer, f"memory from {address:#x}")

    def check_sums(self, blocks: Iterable[tuple[int, int]]) -> list[int]:
        """Return the CRC-32 of blocks of memory, each an address and a size, reckoned by the board.

        Raises
        ------
        DeviceError
            There is no memory.
        """
        requests = (Request(Operation.CHECK_MEMORY, at, size) for at, size in blocks)
        return [
            int.from_bytes(self.checked(answer, "memory to check"), "little")
            for answer in self.client.transact(requests)
        ]

    def upload(
        self,
        address: int,
        content: NDArray[np.uint8],
        progress: Callable[[int, int], None] | None = None,
        likely: NDArray[np.int64] | None = None,
    ) -> Upload:
        """Bring bytes into memory: only blocks that differ are written, and each is checked.

        What an upload that broke had written is still there, so the next one goes on behind it.
        Where somebody knows what has probably changed, that alone is written at first, and the rest
        of its block if the check sum says that this wasn't all.

        Parameters
        ----------
        address : int
            Of the first byte, a multiple of a beat.
        content : uint8 (N,)
            Whole beats.
        progress : callable, optional
            Told the bytes that are there, and those in all.
        likely : int64 (N, 2), optional
            First byte and end, in `content`, of what has probably changed: whole beats, in order,
            no two overlap.

        Raises
        ------
        DeviceError
            There is no memory, or it doesn't keep what is written.
        """
        began = monotonic()
        blocks = {
            (address + at, len(content[at : at + BLOCK_BYTES])): content[at : at + BLOCK_BYTES]
            for at in range(0, len(content), BLOCK_BYTES)
        }
        wanted = {block: zlib.crc32(data) for block, data in blocks.items()}
        unknown = [block for block in blocks if self._known.get(block) != wanted[block]]
        self._known.update(zip(unknown, self.check_sums(unknown), strict=True))
        written = done = 0
        for block, data in blocks.items():
            if self._known[block] != wanted[block]:
                at, size = block
                check = self._known[block]
                parts = _within(likely, at - address, size)
                part_bytes = sum(end - first for first, end in parts)
                if 0 < part_bytes < size:
                    self._write_parts(at, data, parts)
                    (check,) = self.check_sums([block])
                    written += part_bytes
                if check != wanted[block]:
                    self.write_memory(at, data.tobytes())
                    (check,) = self.check_sums([block])
                    written += size
                if check != wanted[block]:
                    raise DeviceError(
                        f"check sum of {size} bytes at {at:#x} must be {wanted[block]:#010x} after "
                        f"they were written, not {check:#010x}; run `ember-hw selftest`"
                    )
                self._known[block] = check
            done += block[1]
            if progress is not None:
                progress(done, len(content))
        return Upload(len(content), written, monotonic() - began)

    def _write_parts(
        self, address: int, content: NDArray[np.uint8], parts: Sequence[tuple[int, int]]
    ) -> None:
        """Write parts of what lies at an address, without waiting between them."""
        self._forget(address, len(content))
        requests = chain.from_iterable(
            _writes(Operation.WRITE_MEMORY, address + first, content[first:end].tobytes())
            for first, end in parts
        )
        for answer in self.client.transact(requests):
            self.checked(answer, f"memory from {address:#x}")

    def _forget(self, address: int, count: int) -> None:
        """Forget the check sums of all blocks that have one of these bytes."""
        for at, size in list(self._known):
            if at < address + count and address < at + size:
                del self._known[at, size]

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
            yield self.checked(answer, "queues")

    def read_errors(self) -> dict[ErrorCount, int]:
        """Return the board's own counts of frames since power-up."""
        content = self.checked(self.client.ask(Request(Operation.READ_ERRORS)), "error counts")
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
        text = b"".join(self.checked(answer, "description") for answer in answers)
        if zlib.crc32(text) != fields["description_crc"]:
            raise LinkError(
                f"check sum of the description of the board at {self.port} must be "
                f"{fields['description_crc']:#010x}, not {zlib.crc32(text):#010x}"
            )
        return BoardDescription.from_json(text, fields["gateware_id"])

    def checked(self, answer: Frame, what: str) -> bytes:
        """Return the data of an answer that is OK.

        Parameters
        ----------
        answer : Frame
            Of the board.
        what : str
            What was asked for, as errors name it.

        Raises
        ------
        DeviceError
            A register or memory answered with an error, or memory not at all.
        LinkError
            The board doesn't know the request.
        """
        status = Status(answer.status)
        if status is Status.REFUSED:
            raise DeviceError(f"{what} must be there and ready, and an access was refused")
        if status is Status.NO_MEMORY:
            raise DeviceError(f"{what} must be within the board's memory, and is not")
        if status is Status.NO_ANSWER:
            raise DeviceError(
                f"{what} must be answered by the board's memory, and is not: it isn't initialised, "
                "or stopped; reset the board"
            )
        if status is not Status.OK:
            raise LinkError(
                f"{Operation(answer.operation).name} of {what} must be answered with OK, "
                f"not {status.name}"
            )
        return answer.payload


def _within(likely: NDArray[np.int64] | None, start: int, size: int) -> list[tuple[int, int]]:
    """Return what of byte ranges lies in a block, counted from the block's start."""
    if likely is None:
        return []
    first = np.searchsorted(likely[:, 1], start, side="right")
    last = np.searchsorted(likely[:, 0], start + size, side="left")
    own = np.clip(likely[first:last] - start, 0, size)
    return [(int(begin), int(end)) for begin, end in own]


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
