"""On-chip block RAM as the memory of a board."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In

from ember_hw.boards.links.ports import MemoryAccessSignature
from ember_hw.config import AcceleratorConfig
from ember_hw.rtl import axi
from ember_hw.rtl.fifos import NO_BYPASS


class BlockMemory(wiring.Component):
    """Answers the access unit's bursts in order, a beat a cycle from two cycles after a request.

    An access of the link takes one cycle of the memory, before the unit's. Beats outside of the
    memory are answered with DECERR.

    Parameters
    ----------
    config : AcceleratorConfig
        One memory port, no port for index lines.
    base : int
        Address of the first byte, a multiple of a beat.
    num_bytes : int
        A power of two, at least two beats.
    link_address_bits : int
        Width of the link's addresses.

    Members
    -------
    unit : AXI read channels, subordinate
    link : MemoryAccessSignature, flipped
    """

    def __init__(
        self, *, config: AcceleratorConfig, base: int, num_bytes: int, link_address_bits: int = 32
    ):
        if config.memory_ports != 1 or config.index_port_bits:
            raise ValueError(
                f"block memory must serve one port, not the {config.memory_ports} memory ports and "
                f"{config.index_port_bits} bits of index port of config {config.name!r}"
            )
        if num_bytes < 2 * config.bus_bytes or num_bytes & (num_bytes - 1):
            raise ValueError(
                f"num_bytes must be a power of two and at least {2 * config.bus_bytes}, "
                f"not {num_bytes!r}"
            )
        if base % num_bytes:
            raise ValueError(f"base must be a multiple of num_bytes ({num_bytes}), not {base!r}")
        self.config = config
        self.base = base
        self.num_bytes = num_bytes
        link = MemoryAccessSignature(
            address_bits=link_address_bits, data_bits=config.data_width_bits
        )
        super().__init__({"unit": In(axi.ReadSignature(config)), "link": In(link)})

    def elaborate(self, platform):
        m = Module()
        config, unit, link = self.config, self.unit, self.link
        beats = self.num_bytes // config.bus_bytes
        m.submodules.memory = memory = Memory(
            shape=config.data_width_bits, depth=beats, init=[], attrs=NO_BYPASS
        )
        write, read = memory.write_port(), memory.read_port()
        beat_shift = (config.bus_bytes - 1).bit_length()
        size_shift = (self.num_bytes - 1).bit_length()

        active = Signal()
        beat = Signal(config.address_width_bits - beat_shift)
        left = Signal(8)
        tag = Signal.like(unit.arid)
        flows = Signal()  # the beat that is shown is taken, if there is one
        steps = Signal()
        ends = Signal()
        link_asks = Signal()
        wanted = link.request.payload
        is_outside = (beat >> size_shift - beat_shift) != self.base >> size_shift
        m.d.comb += [
            flows.eq(~unit.rvalid | unit.rready),
            link_asks.eq(link.request.valid & link.request.ready),
            link.request.ready.eq(flows),
            steps.eq(active & flows & ~link.request.valid),
            ends.eq(steps & (left == 0)),
            unit.arready.eq(~active | ends),
            read.addr.eq(Mux(link.request.valid, wanted.address >> beat_shift, beat)),
            read.en.eq(steps | link_asks),
            unit.rdata.eq(read.data),
            write.addr.eq(wanted.address >> beat_shift),
            write.data.eq(wanted.data),
            write.en.eq(
                link_asks
                & wanted.is_write
                & ((wanted.address >> size_shift) == self.base >> size_shift)
            ),
            link.answer_data.eq(read.data),
        ]
        m.d.sync += [
            link.answer_valid.eq(link_asks),
            link.answer_error.eq((wanted.address >> size_shift) != self.base >> size_shift),
        ]
        with m.If(flows):
            m.d.sync += [
                unit.rvalid.eq(steps),
                unit.rid.eq(tag),
                unit.rlast.eq(left == 0),
                unit.rresp.eq(Mux(is_outside, axi.Response.DECODE_ERROR, axi.Response.OKAY)),
            ]
        with m.If(steps):
            m.d.sync += [beat.eq(beat + 1), left.eq(left - 1)]
        with m.If(unit.arvalid & unit.arready):
            m.d.sync += [
                active.eq(1),
                beat.eq(unit.araddr >> beat_shift),
                left.eq(unit.arlen),
                tag.eq(unit.arid),
            ]
        with m.Elif(ends):
            m.d.sync += active.eq(0)
        return m
