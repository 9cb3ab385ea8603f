"""What executes requests of one kind: bytes in, bytes out."""

from __future__ import annotations

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ember_hw.boards.links.frame import ADDRESS_BITS, COUNT_BITS, MAX_DATA_BYTES, Status
from ember_hw.boards.links.ports import byte_stream


class EngineSignature(wiring.Signature):
    """One request at a time, seen from `RequestExecutor`.

    Members
    -------
    start : out
        Strobe: a request begins.
    is_write, is_check : out
        The request brings data; it wants a check sum of what it reads. Both hold until `done`.
    address, count, length : out
        Its arguments, and the bytes of data that it brings; to be taken with `start`.
    i : stream, out
        Those bytes.
    o : stream, in
        Bytes of the answer.
    done, status : in
        Strobe after the last byte of `o`: what became of it. Bytes of `i` may be left.
    """

    def __init__(self):
        super().__init__(
            {
                "start": Out(1),
                "is_write": Out(1),
                "is_check": Out(1),
                "address": Out(ADDRESS_BITS),
                "count": Out(COUNT_BITS),
                "length": Out(range(MAX_DATA_BYTES + 1)),
                "i": Out(byte_stream()),
                "o": In(byte_stream()),
                "done": In(1),
                "status": In(Status),
            }
        )
