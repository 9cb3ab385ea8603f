"""The link alone: `HostLink` before memory, registers and queues that show what was lost."""

from __future__ import annotations

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Member, Out

from ember_hw.boards.block_memory import BlockMemory
from ember_hw.boards.description import BoardDescription
from ember_hw.boards.links.host_link import HostLink
from ember_hw.boards.links.uart import Uart
from ember_hw.rtl import axi

#: Words that hold what is written, from address 0.
SCRATCH_WORDS = 256
#: A write adds to this register: one that is done twice, or never, shows in its value.
SUM_ADDRESS = 0x800
#: Every other address answers with SLVERR.


class LinkProbe(wiring.Component):
    """`HostLink` with block RAM, probe registers, and rows that count without end.

    Each row beat holds its number in 32 bits; every fourth ends its row. There are no bundles.

    Parameters
    ----------
    description : BoardDescription
        Its config gives the widths; there is no access unit.
    baud : int or None
        Bits a second; None for a channel of a byte a cycle.

    Members
    -------
    rx, tx, or in_*, out_*
        See `physical_members`.
    """

    def __init__(self, *, description: BoardDescription, baud: int | None):
        self.description = description
        self.baud = baud
        super().__init__(physical_members(baud))

    def elaborate(self, platform):
        m = Module()
        description = self.description
        m.submodules.link = link = HostLink(
            config=description.config,
            description=description.to_bytes(),
            patience_cycles=16,
        )
        m.submodules.memory = memory = BlockMemory(
            config=description.config,
            base=description.memory_base,
            num_bytes=description.memory_bytes,
            is_modelled=True,
        )
        wiring.connect(m, link.memory, memory.link)
        connect_physical(m, self, link)
        self._registers(m, link.bus)
        number = Signal(32)
        m.d.comb += [
            link.row.valid.eq(1),
            Value.cast(link.row.payload.data).eq(number),
            link.row.payload.last.eq(number[:2] == 3),
        ]
        with m.If(link.row.ready):
            m.d.sync += number.eq(number + 1)
        return m

    def _registers(self, m: Module, bus) -> None:
        m.submodules.scratch = scratch = Memory(shape=32, depth=SCRATCH_WORDS, init=[])
        write, read = scratch.write_port(), scratch.read_port(domain="comb")
        total = Signal(32)
        writes, reads = Signal(), Signal()
        is_scratch = [Signal(name=name) for name in ("writes_scratch", "reads_scratch")]
        is_sum = [Signal(name=name) for name in ("writes_sum", "reads_sum")]
        for chosen, summed, address in zip(
            is_scratch, is_sum, (bus.awaddr, bus.araddr), strict=True
        ):
            m.d.comb += [chosen.eq(address < 4 * SCRATCH_WORDS), summed.eq(address == SUM_ADDRESS)]
        m.d.comb += [
            writes.eq(bus.awvalid & bus.wvalid & ~bus.bvalid),
            bus.awready.eq(writes),
            bus.wready.eq(writes),
            write.addr.eq(bus.awaddr[2:]),
            write.data.eq(bus.wdata),
            write.en.eq(writes & is_scratch[0]),
            reads.eq(bus.arvalid & ~bus.rvalid),
            bus.arready.eq(reads),
            read.addr.eq(bus.araddr[2:]),
        ]
        with m.If(writes):
            m.d.sync += [
                bus.bvalid.eq(1),
                bus.bresp.eq(axi.Response.SLAVE_ERROR),
            ]
            with m.If(is_scratch[0] | is_sum[0]):
                m.d.sync += bus.bresp.eq(axi.Response.OKAY)
            with m.If(is_sum[0]):
                m.d.sync += total.eq(total + bus.wdata)
        with m.Elif(bus.bready):
            m.d.sync += bus.bvalid.eq(0)
        with m.If(reads):
            m.d.sync += [
                bus.rvalid.eq(1),
                bus.rresp.eq(axi.Response.SLAVE_ERROR),
                bus.rdata.eq(read.data),
            ]
            with m.If(is_scratch[1] | is_sum[1]):
                m.d.sync += bus.rresp.eq(axi.Response.OKAY)
            with m.If(is_sum[1]):
                m.d.sync += bus.rdata.eq(total)
        with m.Elif(bus.rready):
            m.d.sync += bus.rvalid.eq(0)


def physical_members(baud: int | None) -> dict[str, Member]:
    """Return the ports of a top: a UART's pins, or two streams of bytes with flat names."""
    if baud is not None:
        return {"rx": In(1, init=1), "tx": Out(1, init=1)}
    members = {}
    for name, flow, back in (("in", In, Out), ("out", Out, In)):
        members |= {f"{name}_data": flow(8), f"{name}_valid": flow(1), f"{name}_ready": back(1)}
    return members


def connect_physical(m: Module, top, link) -> None:
    """Connect the bytes of a link to the ports of a top."""
    if top.baud is None:
        m.d.comb += [
            link.i.payload.eq(top.in_data),
            link.i.valid.eq(top.in_valid),
            top.in_ready.eq(link.i.ready),
            top.out_data.eq(link.o.payload),
            top.out_valid.eq(link.o.valid),
            link.o.ready.eq(top.out_ready),
        ]
    else:
        m.submodules.uart = uart = Uart(clock_hz=top.description.clock_hz, baud=top.baud)
        wiring.connect(m, uart.o, link.i)
        wiring.connect(m, link.o, uart.i)
        m.d.comb += [uart.rx.eq(top.rx), top.tx.eq(uart.tx)]
