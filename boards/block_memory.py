"""On-chip block RAM as the memory of a board."""

from __future__ import annotations

from amaranth.hdl import ClockSignal, Instance, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory

from ember_hw.boards.memory import memory_members
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
    is_modelled : bool
        Leave the memory itself to the module `block_ram`, which a simulation brings: Verilog would
        have a statement for the initial value of each beat, and take minutes to compile.

    Members
    -------
    unit, link
        See `memory_members`.
    """

    def __init__(
        self,
        *,
        config: AcceleratorConfig,
        base: int,
        num_bytes: int,
        link_address_bits: int = 32,
        is_modelled: bool = False,
    ):
        members = memory_members(config, link_address_bits=link_address_bits)
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
        self.is_modelled = is_modelled
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        config, unit, link = self.config, self.unit, self.link
        beats = self.num_bytes // config.bus_bytes
        write_en, read_en = Signal(), Signal()
        write_address, read_address = Signal(range(beats)), Signal(range(beats))
        write_data, read_data = Signal(config.data_width_bits), Signal(config.data_width_bits)
        if self.is_modelled:
            m.submodules.memory = Instance(
                "block_ram",
                p_WIDTH=config.data_width_bits,
                p_ADDRESS_WIDTH=len(read_address),
                i_clk=ClockSignal(),
                i_write_en=write_en,
                i_write_address=write_address,
                i_write_data=write_data,
                i_read_en=read_en,
                i_read_address=read_address,
                o_read_data=read_data,
            )
        else:
            m.submodules.memory = memory = Memory(
                shape=config.data_width_bits, depth=beats, init=[], attrs=NO_BYPASS
            )
            write, read = memory.write_port(), memory.read_port()
            m.d.comb += [
                write.en.eq(write_en),
                write.addr.eq(write_address),
                write.data.eq(write_data),
                read.en.eq(read_en),
                read.addr.eq(read_address),
                read_data.eq(read.data),
            ]
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
            read_address.eq(Mux(link.request.valid, wanted.address >> beat_shift, beat)),
            read_en.eq(steps | link_asks),
            unit.rdata.eq(read_data),
            write_address.eq(wanted.address >> beat_shift),
            write_data.eq(wanted.data),
            write_en.eq(
                link_asks
                & wanted.is_write
                & ((wanted.address >> size_shift) == self.base >> size_shift)
            ),
            link.answer_data.eq(read_data),
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
