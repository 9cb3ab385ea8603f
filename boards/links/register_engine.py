"""Register accesses of the host, over AXI4-Lite."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ember_hw import registers
from ember_hw.boards.links.engine import EngineSignature
from ember_hw.boards.links.frame import BOARD_REGISTERS, Status
from ember_hw.rtl import axi

#: Width of an address of the board's own registers.
BOARD_ADDRESS_BITS = (BOARD_REGISTERS - 1).bit_length()


class RegisterEngine(wiring.Component):
    """Reads or writes 32-bit registers one after the other, one access at a time.

    A request ends with the first access that is answered with an error or leads nowhere.

    Parameters
    ----------
    has_board_bus : bool
        The board has registers of its own.

    Members
    -------
    engine : EngineSignature
        Addresses and numbers of bytes are multiples of four.
    bus : AXI4-Lite, manager
        Of the access unit, from address 0.
    board_bus : AXI4-Lite, manager
        With `has_board_bus`: from `BOARD_REGISTERS`.
    """

    def __init__(self, *, has_board_bus: bool = False):
        self.has_board_bus = has_board_bus
        members = {"engine": In(EngineSignature()), "bus": Out(axi.LiteSignature())}
        if has_board_bus:
            members["board_bus"] = Out(axi.LiteSignature(address_bits=BOARD_ADDRESS_BITS))
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        engine = self.engine
        buses = [(self.bus, 0, registers.ADDRESS_WIDTH_BITS)]
        if self.has_board_bus:
            buses.append((self.board_bus, BOARD_REGISTERS, BOARD_ADDRESS_BITS))

        address = Signal.like(engine.address)
        left = Signal.like(engine.count)
        word = Signal(32)
        bytes_here = Signal(range(5))
        address_goes, data_goes = Signal(), Signal()
        selected = Signal(len(buses))
        answers, refused, read_word = Signal(), Signal(), Signal(32)
        for number, (bus, base, bits) in enumerate(buses):
            chosen = selected[number]
            m.d.comb += [
                chosen.eq(address[bits:] == base >> bits),
                bus.awaddr.eq(address),
                bus.awvalid.eq(chosen & address_goes & engine.is_write),
                bus.wdata.eq(word),
                bus.wstrb.eq(0b1111),
                bus.wvalid.eq(chosen & data_goes),
                bus.bready.eq(1),
                bus.araddr.eq(address),
                bus.arvalid.eq(chosen & address_goes & ~engine.is_write),
                bus.rready.eq(1),
            ]
            with m.If((bus.awvalid & bus.awready) | (bus.arvalid & bus.arready)):
                m.d.sync += address_goes.eq(0)
            with m.If(bus.wvalid & bus.wready):
                m.d.sync += data_goes.eq(0)
            with m.If(bus.bvalid):
                m.d.comb += [answers.eq(1), refused.eq(axi.failed(bus.bresp))]
            with m.If(bus.rvalid):
                m.d.comb += [
                    answers.eq(1),
                    refused.eq(axi.failed(bus.rresp)),
                    read_word.eq(bus.rdata),
                ]

        def end(status: Status) -> None:
            m.d.comb += [engine.done.eq(1), engine.status.eq(status)]
            m.next = "REST"

        def access() -> None:
            m.d.sync += [address_goes.eq(1), data_goes.eq(engine.is_write)]
            m.next = "ACCESS"

        with m.FSM(name="work"):
            with m.State("REST"):
                m.d.sync += [address.eq(engine.address), bytes_here.eq(0)]
                with m.If(engine.start):
                    m.d.sync += left.eq(engine.length)
                    m.next = "COLLECT"
                    with m.If(~engine.is_write):
                        m.d.sync += left.eq(engine.count)
                        m.next = "BEGIN"
            with m.State("BEGIN"):
                with m.If(left == 0):
                    end(Status.OK)
                with m.Else():
                    access()
            with m.State("COLLECT"):
                with m.If(left == 0):
                    end(Status.OK)
                with m.Else():
                    m.d.comb += engine.i.ready.eq(1)
                    with m.If(engine.i.valid):
                        m.d.sync += [
                            word.eq(engine.i.payload << 24 | word >> 8),
                            bytes_here.eq(bytes_here + 1),
                        ]
                        with m.If(bytes_here == 3):
                            access()
            with m.State("ACCESS"):
                with m.If(~selected.any()):
                    m.d.sync += [address_goes.eq(0), data_goes.eq(0)]
                    end(Status.REFUSED)
                with m.Elif(answers):
                    m.d.sync += [
                        word.eq(read_word),
                        address.eq(address + 4),
                        left.eq(left - 4),
                        bytes_here.eq(0),
                    ]
                    m.next = "DELIVER"
                    with m.If(refused):
                        end(Status.REFUSED)
                    with m.Elif(engine.is_write):
                        m.next = "COLLECT"
            with m.State("DELIVER"):
                m.d.comb += [engine.o.valid.eq(1), engine.o.payload.eq(word[:8])]
                with m.If(engine.o.ready):
                    m.d.sync += [word.eq(word >> 8), bytes_here.eq(bytes_here + 1)]
                    with m.If(bytes_here == 3):
                        m.next = "BEGIN"
        return m
