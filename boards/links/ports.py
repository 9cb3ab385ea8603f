"""The ports where a link meets the rest of a board: bytes on one side, memory on the other."""

from __future__ import annotations

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out


def byte_stream() -> stream.Signature:
    """Return the stream that every physical layer carries: bytes, in both directions alike."""
    return stream.Signature(8)


class MemoryAccessSignature(wiring.Signature):
    """Single beats of memory for the host, seen from the link.

    A request is a whole beat at an address that is a multiple of it. Requests may follow each other
    without waiting; each is answered once, in order, a write when all later reads, also those of
    the access unit, see it. The link has room for the answer before it asks, so an answer has no
    `ready`. Requests and answers are rare on a slow link: a memory serves the access unit first,
    but a request must be taken at last.

    Parameters
    ----------
    address_bits : int
        Width of byte addresses.
    data_bits : int
        Width of a beat.

    Members
    -------
    request : stream, out
        `address`, `is_write`, and `data` to write.
    answer_valid : in
        An answer is here, for one cycle.
    answer_data : in
        What was read; of no meaning after a write.
    answer_error : in
        There is no memory at the address.
    """

    def __init__(self, *, address_bits: int, data_bits: int):
        self.address_bits = address_bits
        self.data_bits = data_bits
        request = data.StructLayout({"address": address_bits, "is_write": 1, "data": data_bits})
        super().__init__(
            {
                "request": Out(stream.Signature(request)),
                "answer_valid": In(1),
                "answer_data": In(data_bits),
                "answer_error": In(1),
            }
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, MemoryAccessSignature)
            and self.address_bits == other.address_bits
            and self.data_bits == other.data_bits
        )
