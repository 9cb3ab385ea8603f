"""Cuts rows into bursts that a memory port may ask for."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw import isa
from ember_hw.config import AcceleratorConfig
from ember_hw.rtl.layouts import beat_count_bits, descriptor_layout

#: No burst crosses a multiple of this. Ref: AMBA AXI protocol, IHI 0022, A3.4.1.
BOUNDARY_BYTES = 4096


def burst_layout(config: AcceleratorConfig) -> data.StructLayout:
    """Return a burst; `last_bytes` are the bytes of its last beat that are the row's."""
    return data.StructLayout(
        {
            "address": config.address_width_bits,
            "beats": beat_count_bits(config),
            "row_last": 1,
            "last_bytes": config.bus_bytes.bit_length(),
            "hint": isa.Hint,
            "entry": range(config.row_entries),
        }
    )


class BurstSplitter(wiring.Component):
    """Cuts each row at multiples of 4096 bytes and after `config.max_burst_beats` beats.

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
        boundary_beats = BOUNDARY_BYTES // config.bus_bytes

        loaded = Signal()
        address = Signal(config.address_width_bits)
        beats_left = Signal(len(self.descriptor.payload.length) - beat_shift + 1)
        last_bytes = Signal(config.bus_bytes.bit_length())
        hint = Signal(isa.Hint)
        entry = Signal(range(config.row_entries))

        to_boundary = Signal(range(boundary_beats + 1))
        allowed = Signal(beat_count_bits(config))
        beats = Signal(beat_count_bits(config))
        final = Signal()
        steps = Signal()
        free = Signal()
        m.d.comb += [
            to_boundary.eq(boundary_beats - address[beat_shift : BOUNDARY_BYTES.bit_length() - 1]),
            allowed.eq(
                Mux(to_boundary < config.max_burst_beats, to_boundary, config.max_burst_beats)
            ),
            final.eq(beats_left <= allowed),
            beats.eq(Mux(final, beats_left, allowed)),
            free.eq(~self.burst.valid | self.burst.ready),
            steps.eq(loaded & free),
            self.descriptor.ready.eq(~loaded | (steps & final)),
        ]
        length = self.descriptor.payload.length
        tail = length[:beat_shift]
        with m.If(self.descriptor.ready):
            m.d.sync += [
                loaded.eq(self.descriptor.valid),
                address.eq(self.descriptor.payload.address),
                beats_left.eq(length[beat_shift:] + tail.any()),
                last_bytes.eq(Mux(tail.any(), tail, config.bus_bytes)),
                hint.eq(self.descriptor.payload.hint),
                entry.eq(self.descriptor.payload.entry),
            ]
        with m.Elif(steps):
            m.d.sync += [
                address.eq(address + (beats << beat_shift)),
                beats_left.eq(beats_left - beats),
            ]
        with m.If(free):
            m.d.sync += [
                self.burst.valid.eq(loaded),
                self.burst.payload.address.eq(address),
                self.burst.payload.beats.eq(beats),
                self.burst.payload.row_last.eq(final),
                self.burst.payload.last_bytes.eq(last_bytes),
                self.burst.payload.hint.eq(hint),
                self.burst.payload.entry.eq(entry),
            ]
        return m
