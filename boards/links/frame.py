"""The frames of the host link: read by gateware, host and documentation, written here only.

Host and board exchange frames over any channel that carries bytes in order, and may lose, change,
double or add some. The host asks, the board answers; the board never speaks unasked.

Framing
-------
A frame stands between two flag bytes 0x7E. Inside it a byte 0x7E or 0x7D is sent as 0x7D and the
byte xor 0x20. So a flag always ends a frame, and whatever came before, the next frame is found.
Frames of another length than their header says, or with a wrong CRC, are dropped without an answer.

A frame is the header, the payload, and the CRC-32 of both (that of Ethernet and zip). All numbers
are little-endian. The payload of a request is its arguments, then data; that of an answer is data.

Sessions and sequence
---------------------
`HELLO` begins a session, whose number the host draws; the board takes it, forgets the answers that
it holds and awaits the next sequence number, modulo 256. Within a session the board executes each
request once, in order:

- the number awaited: it is executed, and the answer is kept;
- one of the four before it: the host has missed the answer, which is sent again;
- any other: a frame is missing. The answer is `OUT_OF_ORDER`, its sequence the number awaited.

The host has at most four requests open, so that the board still has every answer that it may ask
for. It repeats those without an answer after a time-out, and those from the number awaited on when
one is out of order. A request of another session is answered with `NO_SESSION`: the board was
reset, or someone else uses it. A `HELLO` of the session that the board is in begins nothing anew.

Queues
------
What the access unit delivers is one stream of bytes: beats, each a byte that tells its kind (bits
1:0, `Beat`) and whether it is its row's or its program's last (bit 7), then its data. `DRAIN` takes
the next bytes of it, wherever that cuts a beat; there are none after a reset of the queues. A beat
leaves the unit only when a `DRAIN` asks for it, so requests of the host are the credit, and a slow
link stalls the unit and nothing else.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from amaranth.lib import enum

#: Version of all that stands here; `HELLO` and its answer stay what they are in every version.
PROTOCOL_VERSION = 2

FLAG = 0x7E
ESCAPE = 0x7D
ESCAPE_XOR = 0x20

#: Requests that may be without an answer; answers that the board keeps. A power of two.
WINDOW_FRAMES = 4
#: Most bytes of data in a frame.
MAX_DATA_BYTES = 512
CRC_BYTES = 4

#: Fields of the header, in order: name, bytes, meaning.
HEADER: tuple[tuple[str, int, str], ...] = (
    ("operation", 1, "`Operation`"),
    ("session", 1, "number of the session"),
    ("sequence", 1, "number of the request, and of its answer"),
    ("status", 1, "`Status` of an answer; 0 in a request"),
    ("length", 2, "bytes of the payload"),
)
#: Arguments of a request, at the beginning of its payload: name, bytes, meaning.
ARGUMENTS: tuple[tuple[str, int, str], ...] = (
    ("address", 5, "first byte that is read or written"),
    ("count", 3, "bytes that are read; 0 where none are"),
)
HEADER_BYTES = sum(size for _, size, _ in HEADER)
ARGUMENT_BYTES = sum(size for _, size, _ in ARGUMENTS)
ADDRESS_BITS, COUNT_BITS = (8 * size for _, size, _ in ARGUMENTS)
MAX_FRAME_BYTES = HEADER_BYTES + ARGUMENT_BYTES + MAX_DATA_BYTES + CRC_BYTES

#: Head of the description: name, bytes, meaning.
DESCRIPTION_HEAD: tuple[tuple[str, int, str], ...] = (
    ("magic", 4, '"EMBR"'),
    ("version", 1, "version of the protocol"),
    ("beat_bytes", 1, "bytes of a beat of memory"),
    ("length", 2, "bytes of the description behind this head: JSON, UTF-8"),
    ("gateware_id", 4, "tells this gateware from every other"),
    ("description_crc", 4, "CRC-32 of the JSON"),
)
DESCRIPTION_HEAD_BYTES = sum(size for _, size, _ in DESCRIPTION_HEAD)
MAGIC = b"EMBR"

#: First address of the board's own registers; those of the access unit begin at 0.
BOARD_REGISTERS = 1 << 16


class Operation(enum.IntEnum, shape=8):
    """What a request asks for; its answer has the same number."""

    HELLO = 0
    DESCRIBE = 1
    READ_REGISTERS = 2
    WRITE_REGISTERS = 3
    READ_MEMORY = 4
    WRITE_MEMORY = 5
    CHECK_MEMORY = 6
    DRAIN = 7
    READ_ERRORS = 8


OPERATION_TEXTS: dict[Operation, str] = {
    Operation.HELLO: "begins a session, else as `DESCRIBE`",
    Operation.DESCRIBE: "bytes of the description, the head included",
    Operation.READ_REGISTERS: "32-bit registers, one after the other",
    Operation.WRITE_REGISTERS: "32-bit registers, one after the other; ends at the first refused",
    Operation.READ_MEMORY: "bytes of memory, whole beats",
    Operation.WRITE_MEMORY: "bytes of memory, whole beats; when answered, later reads see them",
    Operation.CHECK_MEMORY: "CRC-32 of `count` bytes of memory, whole beats, at most 16 MiB less 1",
    Operation.DRAIN: "the next bytes of the queues, at most `count`; ends early where none come",
    Operation.READ_ERRORS: "counts since power-up, 32 bits each, see `ErrorCount`",
}


class Status(enum.IntEnum, shape=8):
    """What became of a request."""

    OK = 0
    OUT_OF_ORDER = 1
    NO_SESSION = 2
    BAD_OPERATION = 3
    BAD_ARGUMENT = 4
    REFUSED = 5
    NO_MEMORY = 6
    NO_ANSWER = 7


STATUS_TEXTS: dict[Status, str] = {
    Status.OK: "done",
    Status.OUT_OF_ORDER: "not executed: a request before it is missing",
    Status.NO_SESSION: "not executed: the board is in another session, or in none",
    Status.BAD_OPERATION: "the board knows no such operation",
    Status.BAD_ARGUMENT: "address or count is no multiple of a register or beat, or too large",
    Status.REFUSED: "a register answered with an error; those before it were accessed",
    Status.NO_MEMORY: "memory answered with an error; beats before it were accessed",
    Status.NO_ANSWER: "memory did not answer in time, or still owes the answer of a request before",
}


class Beat(enum.IntEnum, shape=2):
    """Kinds of beats in the stream of the queues."""

    BUNDLE = 0
    ROW = 1
    RESULT = 2


#: Bit of a beat's first byte: it ends its row, or its program.
BEAT_LAST = 1 << 7


class ErrorCount(enum.IntEnum):
    """Counts of `READ_ERRORS`, in their order."""

    GOOD = 0
    BAD = 1
    OVERRUN = 2
    REPEATED = 3
    OUT_OF_ORDER = 4


ERROR_COUNT_TEXTS: dict[ErrorCount, str] = {
    ErrorCount.GOOD: "frames received without an error",
    ErrorCount.BAD: "frames dropped: CRC, length, or a broken escape",
    ErrorCount.OVERRUN: "frames dropped because requests before them were not yet done",
    ErrorCount.REPEATED: "requests that had been executed already",
    ErrorCount.OUT_OF_ORDER: "requests before which one is missing",
}


@dataclass(frozen=True)
class Frame:
    """A request or an answer.

    Attributes
    ----------
    operation, session, sequence, status : int
        Fields of the header.
    payload : bytes
        Arguments and data.
    """

    operation: int
    session: int
    sequence: int
    status: int = 0
    payload: bytes = b""


def pack(layout: tuple[tuple[str, int, str], ...], values: dict[str, int]) -> bytes:
    """Return fields as bytes, in the order of their layout.

    Raises
    ------
    ValueError
        A value doesn't fit its field.
    """
    packed = b""
    for name, size, _ in layout:
        if not 0 <= values[name] < 1 << 8 * size:
            raise ValueError(f"{name} must fit in {size} bytes, not {values[name]!r}")
        packed += values[name].to_bytes(size, "little")
    return packed


def unpack(layout: tuple[tuple[str, int, str], ...], content: bytes) -> dict[str, int]:
    """Return the fields that bytes hold, in the order of their layout.

    Examples
    --------
    >>> unpack(ARGUMENTS, bytes([0, 16, 0, 0, 0, 4, 0, 0]))
    {'address': 4096, 'count': 4}
    """
    values: dict[str, int] = {}
    at = 0
    for name, size, _ in layout:
        values[name] = int.from_bytes(content[at : at + size], "little")
        at += size
    return values


def encode(frame: Frame) -> bytes:
    """Return the bytes of a frame, both flags included.

    Raises
    ------
    ValueError
        A field of the header doesn't fit, or the payload is too long.

    Examples
    --------
    >>> encode(Frame(Operation.READ_ERRORS, 0x7E, 1, payload=b"")).hex(" ")
    '7e 08 7d 5e 01 00 00 00 05 1a cf a3 7e'
    """
    most = ARGUMENT_BYTES + MAX_DATA_BYTES
    if len(frame.payload) > most:
        raise ValueError(f"payload must be at most {most} bytes, not {len(frame.payload)}")
    header = {name: getattr(frame, name) for name, _, _ in HEADER if name != "length"}
    body = pack(HEADER, {**header, "length": len(frame.payload)}) + frame.payload
    body += zlib.crc32(body).to_bytes(CRC_BYTES, "little")
    stuffed = bytearray([FLAG])
    for byte in body:
        if byte in (FLAG, ESCAPE):
            stuffed += bytes([ESCAPE, byte ^ ESCAPE_XOR])
        else:
            stuffed.append(byte)
    return bytes(stuffed + bytes([FLAG]))


class FrameDecoder:
    """Finds the frames in the bytes of a channel.

    Attributes
    ----------
    good, bad : int
        Frames found, and pieces between flags that were none.
    """

    def __init__(self) -> None:
        self.good = self.bad = 0
        self._body = bytearray()
        self._escaped = False
        self._broken = False

    def feed(self, content: bytes) -> list[Frame]:
        """Take bytes and return the frames that they complete."""
        frames: list[Frame] = []
        for byte in content:
            if byte == FLAG:
                frame = self._end()
                if frame is not None:
                    frames.append(frame)
            elif byte == ESCAPE:
                self._broken |= self._escaped
                self._escaped = True
            elif len(self._body) == MAX_FRAME_BYTES:
                self._broken = True
            else:
                self._body.append(byte ^ ESCAPE_XOR if self._escaped else byte)
                self._escaped = False
        return frames

    def _end(self) -> Frame | None:
        body, broken = bytes(self._body), self._broken or self._escaped
        self._body.clear()
        self._escaped = self._broken = False
        if not body and not broken:
            return None  # flags side by side: one frame's end, the next one's begin
        content, crc = body[:-CRC_BYTES], body[-CRC_BYTES:]
        is_good = (
            not broken
            and len(content) >= HEADER_BYTES
            and zlib.crc32(content) == int.from_bytes(crc, "little")
        )
        if is_good:
            header = unpack(HEADER, content)
            if header.pop("length") == len(content) - HEADER_BYTES:
                self.good += 1
                return Frame(**header, payload=content[HEADER_BYTES:])
        self.bad += 1
        return None
