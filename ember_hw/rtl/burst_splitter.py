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

        # What is left of a row: its first beat's number, and its beats less one.
        loaded = Signal()
        beat = Signal(config.address_width_bits - beat_shift)
        left = Signal(len(self.descriptor.payload.length) - beat_shift)
        last_bytes = Signal(config.bus_bytes.bit_length())
        hint = Signal(isa.Hint)
        entry = Signal(range(config.row_entries))

        to_boundary = Signal.like(left)  # beats to the end of the chunk, less one
        final = Signal()
        free = Signal()
        steps = Signal()
        m.d.comb += [
            to_boundary[:chunk_bits].eq(~beat[:chunk_bits]),
            final.eq(left <= to_boundary),
            free.eq(~self.burst.valid | self.burst.ready),
            steps.eq(loaded & free),
            self.descriptor.ready.eq(~loaded | (steps & final)),
        ]
        length = self.descriptor.payload.length
        whole = ~length[:beat_shift].any()
        with m.If(self.descriptor.ready):
            m.d.sync += [
                loaded.eq(self.descriptor.valid),
                beat.eq(self.descriptor.payload.address[beat_shift:]),
                left.eq(length[beat_shift:] - whole),
                last_bytes.eq(Cat(length[:beat_shift], whole)),
                hint.eq(self.descriptor.payload.hint),
                entry.eq(self.descriptor.payload.entry),
            ]
        with m.Elif(steps):
            m.d.sync += [
                beat.eq(Cat(Const(0, chunk_bits), beat[chunk_bits:] + 1)),
                left.eq(left + ~to_boundary),  # one adder
            ]
        with m.If(free):
            m.d.sync += [
                self.burst.valid.eq(loaded),
                self.burst.payload.address.eq(beat << beat_shift),
                self.burst.payload.length.eq(Mux(final, left, to_boundary)),
                self.burst.payload.row_last.eq(final),
                self.burst.payload.last_bytes.eq(last_bytes),
                self.burst.payload.hint.eq(hint),
                self.burst.payload.entry.eq(entry),
            ]
        return m
