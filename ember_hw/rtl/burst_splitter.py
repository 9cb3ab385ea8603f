"""Cuts rows into bursts that a memory port may ask for."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw import isa
from ember_hw.config import AcceleratorConfig
from ember_hw.rtl.layouts import descriptor_layout, length_bits

#: No burst crosses a multiple of this. Ref: AMBA AXI protocol, IHI 0022, A3.4.1.
BOUNDARY_BYTES = 4096


def chunk_beats(config: AcceleratorConfig) -> int:
    """Return the beats of the longest burst: rows are cut at multiples of it.

    That is what AXI and the ports' interleave allow, and the largest power of two within
    `config.max_burst_beats`.
    """
    longest = 1 << (config.max_burst_beats.bit_length() - 1)
    return min(longest, min(BOUNDARY_BYTES, config.port_interleave_bytes) // config.bus_bytes)


def burst_layout(config: AcceleratorConfig) -> data.StructLayout:
    """Return a burst: its `length` are its beats less one.

    `row_last`: it ends the row; `last_bytes` are the bytes of its last beat that are the row's.
    """
    return data.StructLayout(
        {
            "address": config.address_width_bits,
            "length": length_bits(config),
            "row_last": 1,
            "last_bytes": config.bus_bytes.bit_length(),
            "hint": isa.Hint,
            "entry": range(config.row_entries),
        }
    )


class BurstSplitter(wiring.Component):
    """Cuts each row at multiples of `chunk_beats`.

    One burst a cycle, in order; a row that is one burst takes one cycle. Rows start on a multiple
    of the bus width. The bursts of a row are its bytes, rounded up to whole beats, and nothing
    else.

    Members
    -------
    descriptor : stream, in
    burst : stream, out
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        super().__init__(
            {
                "descriptor": In(stream.Signature(descriptor_layout(config))),
                "burst": Out(stream.Signature(burst_layout(config))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        beat_shift = (config.bus_bytes - 1).bit_length()
        chunk_bits = (chunk_beats(config) - 1).bit_length()

        # What a row's further bursts begin with: the number of the next one's first beat, and the
        # beats that are left, less one. The descriptor stays until its last burst has been cut.
        descriptor = self.descriptor.payload
        next_beat = Signal(config.address_width_bits - beat_shift)
        next_left = Signal(len(descriptor.last_byte) - beat_shift)

        beat = Signal.like(next_beat)
        left = Signal.like(next_left)
        to_boundary = Signal.like(left)  # beats to the end of the chunk, less one
        final = Signal()
        free = Signal()
        begun = self.burst.valid & ~self.burst.payload.row_last
        m.d.comb += [
            beat.eq(Mux(begun, next_beat, descriptor.address[beat_shift:])),
            left.eq(Mux(begun, next_left, descriptor.last_byte[beat_shift:])),
            to_boundary[:chunk_bits].eq(~beat[:chunk_bits]),
            final.eq(left <= to_boundary),
            free.eq(~self.burst.valid | self.burst.ready),
            self.descriptor.ready.eq(free & final),
        ]
        with m.If(free):
            m.d.sync += [
                next_beat.eq(Cat(Const(0, chunk_bits), beat[chunk_bits:] + 1)),
                next_left.eq(left + ~to_boundary),  # one adder
                self.burst.valid.eq(self.descriptor.valid),
                self.burst.payload.address.eq(beat << beat_shift),
                self.burst.payload.length.eq(Mux(final, left, to_boundary)),
                self.burst.payload.row_last.eq(final),
                self.burst.payload.last_bytes.eq(descriptor.last_byte[:beat_shift] + 1),
                self.burst.payload.hint.eq(descriptor.hint),
                self.burst.payload.entry.eq(descriptor.entry),
            ]
        return m
