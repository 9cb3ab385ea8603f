"""Writes results into memory, and says when a request's are there."""

from __future__ import annotations

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.config import AcceleratorConfig
from ember_hw.rtl import axi
from ember_hw.rtl.execute.reduce_layouts import region_layout
from ember_hw.rtl.execute.result_bursts import ResultBursts
from ember_hw.rtl.faults import FaultSignature
from ember_hw.rtl.fifos import StreamFifo
from ember_hw.rtl.layouts import row_beat_layout
from ember_hw.rtl.write_port import WritePort

# Bursts are counted modulo this many bits; those in flight are far fewer than half of that.
_BURST_COUNT_BITS = 16


class ResultWriter(wiring.Component):
    """Takes results in order and writes them one behind the other into a region.

    One beat a cycle. `ResultBursts` says where they lie and how they become bursts, `WritePort` how
    those are written. A result is written as its burst is full, at the end of its request at the
    latest.

    Error: faults of both, see there. What was written is right, and lies in the region.

    Members
    -------
    region : in
        Record ``result``.
    restart : in
        Strobe: the next result lies at the region's base. Nothing is inside then.
    result : stream, in
    left : in
        Strobe: all results of a request have been taken from here.
    ended : out
        Strobe: memory has answered all writes of a request, and no fault is among them.
    stop : in
        Begin no further burst.
    idle : out
        Memory owes no answer.
    legal : out
        The region may be written.
    bounds_fault, memory_fault : out
    moves : out
        Something moved at the port.
    axi : AXI write channels, manager
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        super().__init__(
            {
                "region": In(region_layout(config)),
                "restart": In(1),
                "result": In(stream.Signature(row_beat_layout(config))),
                "left": In(1),
                "ended": Out(1),
                "stop": In(1),
                "idle": Out(1),
                "legal": Out(1),
                "bounds_fault": Out(FaultSignature(config)),
                "memory_fault": Out(FaultSignature(config)),
                "moves": Out(1),
                "axi": Out(axi.WriteSignature(config)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.bursts = bursts = ResultBursts(config=config)
        m.submodules.port = port = WritePort(config=config)
        wiring.connect(m, wiring.flipped(self.result), bursts.beat)
        wiring.connect(m, bursts.burst, port.burst)
        wiring.connect(m, bursts.burst_beat, port.beat)
        wiring.connect(m, bursts.fault, wiring.flipped(self.bounds_fault))
        wiring.connect(m, port.fault, wiring.flipped(self.memory_fault))
        wiring.connect(m, port.axi, wiring.flipped(self.axi))
        m.d.comb += [
            bursts.region.eq(self.region),
            bursts.restart.eq(self.restart),
            port.stop.eq(self.stop),
            self.idle.eq(port.idle),
            self.moves.eq(port.moves),
        ]

        end = Signal(config.address_width_bits + 1)
        is_aligned = (self.region.base % config.bus_bytes) == 0
        m.d.comb += end.eq(self.region.base + self.region.region_bytes)
        held = Signal(reset_less=True)  # like the microcode
        m.d.sync += held.eq(is_aligned & (~end[-1] | ~end[:-1].any()))
        m.d.comb += self.legal.eq(held)

        # A request whose results are here: how many bursts there are when the last one is closed.
        m.submodules.marks = marks = StreamFifo(
            shape=_BURST_COUNT_BITS, depth_entries=max(2, config.request_entries)
        )
        here = Signal(range(config.request_entries + 1))
        closed, answered = Signal(_BURST_COUNT_BITS), Signal(_BURST_COUNT_BITS)
        behind = Signal(signed(_BURST_COUNT_BITS))
        m.d.sync += [
            here.eq(here + self.left - bursts.flushed),
            closed.eq(closed + bursts.closes),
            answered.eq(answered + port.answered),
        ]
        m.d.comb += [
            bursts.flush.eq((here != 0) & marks.i.ready),
            marks.i.valid.eq(bursts.flushed),
            marks.i.payload.eq(closed + bursts.closes),
            behind.eq(answered - marks.o.payload),
            self.ended.eq(marks.o.valid & (behind >= 0)),
            marks.o.ready.eq(self.ended),
        ]
        return m
