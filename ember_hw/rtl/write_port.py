"""One memory port for writes: bursts whose beats are there, as an AXI write manager."""

from __future__ import annotations

from amaranth.hdl import Assert, Const, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.config import AcceleratorConfig
from ember_hw.registers import NO_UNIT
from ember_hw.rtl import axi
from ember_hw.rtl.burst_splitter import chunk_beats
from ember_hw.rtl.faults import FaultSignature
from ember_hw.rtl.fifos import StreamFifo
from ember_hw.rtl.layouts import row_beat_layout

#: Of 16 beats each, so many hide a latency of 240 cycles.
WRITES_IN_FLIGHT = 16

# AWCACHE for ordinary memory: bufferable, modifiable, allocate. Ref: IHI 0022, A4.4.
_CACHE_NORMAL = 0b1111


def write_beats(config: AcceleratorConfig) -> int:
    """Return the beats of the longest burst that is written, a power of two."""
    return min(16, chunk_beats(config))


def write_burst_layout(config: AcceleratorConfig) -> data.StructLayout:
    """Return a burst to write: its byte address, and its beats less one."""
    return data.StructLayout(
        {
            "address": config.address_width_bits,
            "length": max(1, (write_beats(config) - 1).bit_length()),
        }
    )


class WritePort(wiring.Component):
    """Writes one burst after the other, a beat a cycle, without a cycle between them.

    A burst is shown on AW and its beats on W at the same time, neither waits for the other. All of
    its beats must be on their way when it is taken: what was begun is ended whatever `stop` says,
    and a stopped unit owes memory nothing. All writes have one ID, so responses come in order;
    BREADY is always high.

    Error: SLVERR and DECERR are faults with the address of the burst. `answered` follows such a
    fault by a cycle, so that no request ends before its fault is known.

    Parameters
    ----------
    config : AcceleratorConfig
    writes_in_flight : int, optional
        Bursts that are not answered yet, at most: 2, 4, 8 or 16.

    Members
    -------
    burst : stream, in
    beat : stream, in
        The beats of the bursts, in order; the strobes of each are its first `bytes`.
    stop : in
        Take no further burst.
    idle : out
        Nothing is in flight or shown.
    answered : out
        Strobe: memory has answered one more burst, two cycles ago.
    fault : out
        Memory answered with an error, a cycle ago.
    moves : out
        An address, a beat or a response was taken.
    axi : AXI write channels, manager
    """

    def __init__(self, *, config: AcceleratorConfig, writes_in_flight: int = WRITES_IN_FLIGHT):
        if writes_in_flight not in (2, 4, 8, 16):
            raise ValueError(f"writes_in_flight must be 2, 4, 8 or 16, not {writes_in_flight!r}")
        self.config = config
        self.writes_in_flight = writes_in_flight
        super().__init__(
            {
                "burst": In(stream.Signature(write_burst_layout(config))),
                "beat": In(stream.Signature(row_beat_layout(config))),
                "stop": In(1),
                "idle": Out(1),
                "answered": Out(1),
                "fault": Out(FaultSignature(config)),
                "moves": Out(1),
                "axi": Out(axi.WriteSignature(config)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config, bus, most = self.config, self.axi, self.writes_in_flight
        m.submodules.addresses = addresses = StreamFifo(
            shape=config.address_width_bits, depth_entries=most
        )

        # Address. There is room for it in `addresses` while a write may fly.
        in_flight = Signal(range(most + 1))
        may_fly = Signal(init=1)
        sends = Signal()  # beats of the burst that was taken last
        takes = Signal()
        sent_last = Signal()
        m.d.comb += [
            self.burst.ready.eq(
                (~bus.awvalid | bus.awready) & (~sends | sent_last) & may_fly & ~self.stop
            ),
            takes.eq(self.burst.valid & self.burst.ready),
            addresses.i.valid.eq(takes),
            addresses.i.payload.eq(self.burst.payload.address),
            bus.awsize.eq(Const((config.bus_bytes - 1).bit_length(), 3)),
            bus.awburst.eq(axi.Burst.INCREMENTING),
            bus.awcache.eq(_CACHE_NORMAL),
        ]
        with m.If(bus.awready):
            m.d.sync += bus.awvalid.eq(0)
        with m.If(takes):
            m.d.sync += [
                bus.awvalid.eq(1),
                bus.awaddr.eq(self.burst.payload.address),
                bus.awlen.eq(self.burst.payload.length),
            ]

        # Beats.
        left = Signal.like(self.burst.payload.length)  # behind this one
        m.d.comb += [
            bus.wvalid.eq(sends & self.beat.valid),
            bus.wdata.eq(self.beat.payload.data),
            bus.wlast.eq(left == 0),
            self.beat.ready.eq(sends & bus.wready),
            sent_last.eq(bus.wvalid & bus.wready & bus.wlast),
        ]
        for byte in range(config.bus_bytes):
            m.d.comb += bus.wstrb[byte].eq(self.beat.payload.bytes > byte)
        with m.If(bus.wvalid & bus.wready):
            m.d.sync += left.eq(left - 1)
        with m.If(takes):
            m.d.sync += [sends.eq(1), left.eq(self.burst.payload.length)]
        with m.Elif(sent_last):
            m.d.sync += sends.eq(0)

        # Responses.
        returns = Signal()
        response = Signal(axi.Response)
        m.d.comb += [
            bus.bready.eq(1),
            addresses.o.ready.eq(returns),
            self.fault.valid.eq(returns & axi.failed(response)),
            self.fault.payload.code.eq(axi.write_fault(response)),
            self.fault.payload.unit.eq(NO_UNIT),
            self.fault.payload.address.eq(addresses.o.payload),
            self.moves.eq(
                (bus.awvalid & bus.awready) | (bus.wvalid & bus.wready) | bus.bvalid | returns
            ),
        ]
        m.d.sync += [
            returns.eq(bus.bvalid),
            response.eq(bus.bresp),
            self.answered.eq(returns),
            Assert(addresses.o.valid | ~returns),
            Assert(addresses.i.ready | ~takes),
        ]
        m.d.comb += self.idle.eq((in_flight == 0) & ~bus.awvalid & ~sends)
        with m.If(takes & ~returns):
            m.d.sync += [
                in_flight.eq(in_flight + 1),
                may_fly.eq(in_flight != most - 1),
            ]
        with m.Elif(returns & ~takes):
            m.d.sync += [in_flight.eq(in_flight - 1), may_fly.eq(1)]
        return m
