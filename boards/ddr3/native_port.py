"""The ports of a LiteDRAM controller, and the parts of requests that go through them."""

from __future__ import annotations

from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.boards.ddr3.chip import Ddr3Chip

#: Places of the buffer that puts beats in order.
PLACES = 256


class NativePortSignature(wiring.Signature):
    """A LiteDRAM native port without its data, named as LiteDRAM names the signals; the user's end.

    All ports of a controller share the wires of the data: at most one has `rdata_valid`, and at
    most one `wdata_ready`, in a cycle. Neither waits: data that was read must be taken, and data to
    write must be there, in that cycle. A port's commands are executed in order.

    Parameters
    ----------
    address_bits : int
        Width of a beat's number.

    Members
    -------
    cmd_valid, cmd_we, cmd_addr : out; cmd_ready : in
        A command: write or read, and its beat.
    wdata_ready : in
        The data of the oldest write is taken in this cycle.
    rdata_valid : in
        The data of the oldest read is here in this cycle.
    """

    def __init__(self, *, address_bits: int):
        self.address_bits = address_bits
        super().__init__(
            {
                "cmd_valid": Out(1),
                "cmd_ready": In(1),
                "cmd_we": Out(1),
                "cmd_addr": Out(address_bits),
                "wdata_ready": In(1),
                "rdata_valid": In(1),
            }
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NativePortSignature) and self.address_bits == other.address_bits


def part_layout(chip: Ddr3Chip) -> data.StructLayout:
    """Return the part of a request that lies in one row of the chip.

    Its first beat, its beats less one, whether they are written, and the place of the first one
    that is read (see `ReorderBuffer`).
    """
    return data.StructLayout(
        {
            "beat": chip.beat_address_bits,
            "length": chip.page_beat_bits,
            "write": 1,
            "place": PLACES.bit_length(),
        }
    )
