"""What writes of results promise: the rules of AXI, and that no byte lies beyond the region.

Ref: AMBA AXI protocol, IHI 0022, A3.2 (handshakes), A3.3.1 (responses), A3.4.1 (bursts).
"""

from __future__ import annotations

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Cover, Mux, Signal, Value

from ember_hw.rtl import axi
from ember_hw.rtl.burst_splitter import BOUNDARY_BYTES
from ember_hw.rtl.execute.result_bursts import ResultBursts
from ember_hw.rtl.formal.bench import Bench
from ember_hw.rtl.formal.ports import follow
from ember_hw.rtl.write_port import WritePort, write_beats


def write_port(port: WritePort) -> Bench:
    """Return the bench of a `WritePort`.

    Memory answers bursts whose address and beats it has taken, and no others. Then AWVALID and
    WVALID and all beside them hold until they are taken, whatever `stop` does; each burst that is
    taken is shown in the next cycle, has as many beats as it says, and WLAST with its last; while
    `stop` is high none is taken; no more than `writes_in_flight` are, counted without
    overflow; an error is a fault with the address of the burst that it answers; `answered` comes a
    cycle after that; `idle` is exact. Induction over one cycle proves it.
    """
    bench = Bench(port)
    m, bus, after, block = bench.m, port.axi, bench.after, bench.block
    bus_bytes, most = port.config.bus_bytes, port.writes_in_flight
    bench.offer(port.beat)
    shown = Cat(bus.awid, bus.awaddr, bus.awlen, bus.awsize, bus.awburst, bus.awlock, bus.awcache)
    for valid, ready, payload in (
        (bus.awvalid, bus.awready, shown),
        (bus.wvalid, bus.wready, Cat(bus.wdata, bus.wstrb, bus.wlast)),
    ):
        with m.If(after(valid & ~ready)):
            m.d.comb += [Assert(valid), Assert(payload == after(payload))]
    m.d.comb += [
        Assert(bus.awsize == (bus_bytes - 1).bit_length()),
        Assert(bus.awburst == axi.Burst.INCREMENTING),
        Assert(Cat(bus.awlock, bus.awprot) == 0),
        Assert(bus.bready),
    ]

    # Bursts, and the beats that are still due of the last one.
    takes = port.burst.valid & port.burst.ready
    beat_moves = bus.wvalid & bus.wready
    due = Signal(range(write_beats(port.config) + 1))
    m.d.sync += due.eq(Mux(takes, port.burst.payload.length + 1, due - beat_moves))
    m.d.comb += [
        Assert(~(takes & port.stop)),
        Assert(~takes | (due == beat_moves)),
        Assert(bus.awvalid == after(takes | (bus.awvalid & ~bus.awready))),
        Assert(~bus.wvalid | (due != 0)),
        Assert(~bus.wvalid | (bus.wlast == (due == 1))),
        Assert(bus.wvalid == ((due != 0) & port.beat.valid)),
        Assert(beat_moves == (port.beat.valid & port.beat.ready)),
        Assert(bus.wdata == port.beat.payload.data),
        Assert(~bus.wvalid | (bus.wstrb == (1 << port.beat.payload.bytes) - 1)),
        Assume(port.beat.payload.bytes <= bus_bytes),
        Assert(block.signal("sends") == (due != 0)),
        Assert((due == 0) | (block.signal("left") == due - 1)),
    ]
    with m.If(after(takes)):
        m.d.comb += [
            Assert(bus.awaddr == after(port.burst.payload.address)),
            Assert(bus.awlen == after(port.burst.payload.length)),
        ]

    # What memory has taken and not answered.
    addressed, written = Signal(range(2 * most)), Signal(range(2 * most))
    m.d.sync += [
        addressed.eq(addressed + (bus.awvalid & bus.awready) - bus.bvalid),
        written.eq(written + (beat_moves & bus.wlast) - bus.bvalid),
    ]
    returns, in_flight = block.signal("returns"), block.signal("in_flight")
    addresses = follow(bench, block.inner("addresses"), most)
    m.d.comb += [
        Assume(~bus.bvalid | ((addressed != 0) & (written != 0))),
        Assert(returns == after(bus.bvalid)),
        Assert(in_flight == addressed + bus.awvalid + returns),
        Assert(in_flight == written + (due != 0) + returns),
        Assert(in_flight <= most),
        Assert(block.signal("may_fly") == (in_flight != most)),
        Assert(addresses.inside == in_flight),
        Assert(port.idle == ((addressed == 0) & (written == 0) & ~returns & ~bus.awvalid)),
        Assert(port.answered == after(returns)),
        Assert(port.fault.valid == after(bus.bvalid & axi.failed(bus.bresp))),
        Cover(in_flight == most),
        Cover(port.fault.valid & (addressed > 1)),
    ]
    with m.If(port.fault.valid & addresses.active & (addresses.ahead == 0)):
        m.d.comb += Assert(port.fault.payload.address == addresses.value)
    return bench


def result_bursts(block: ResultBursts) -> Bench:
    """Return the bench of `ResultBursts`.

    The region begins on a beat and ends within the address space, and a restart comes while nothing
    is open. Then every beat that is taken has its bytes in the region, the first of them at its
    base, each of the others behind the one before; each is in one burst, which begins at the first
    beat that is in none before it; no burst has more than `write_beats` beats, or crosses a
    multiple of 4096 bytes; what is flushed is closed; a beat that does not lie in the region is a
    fault with its address. Induction over one cycle proves it.
    """
    bench = Bench(block)
    m, after, opened = bench.m, bench.after, bench.block
    config = block.config
    bus_bytes, longest = config.bus_bytes, write_beats(config)
    region = block.region
    top = 1 << config.address_width_bits
    bench.offer(block.beat)
    m.d.comb += [
        Assume(Value.cast(region) == AnyConst(len(Value.cast(region)))),
        Assume(region.base % bus_bytes == 0),
        Assume(region.base + region.region_bytes <= top),
        Assume(block.beat.payload.bytes <= bus_bytes),
        Assume(block.beat.payload.bytes != 0),
    ]

    # Beats that were taken since the restart, and those of them that are in no burst.
    started = Signal()
    position = Signal(config.address_width_bits - (bus_bytes - 1).bit_length() + 1)
    open_beats = Signal(range(longest + 1))
    takes = block.beat.valid & block.beat.ready
    at = Signal(config.address_width_bits + 2)
    fits = Signal()
    m.d.comb += [
        at.eq(region.base + position * bus_bytes),
        fits.eq(started & (position * bus_bytes + block.beat.payload.bytes <= region.region_bytes)),
        Assume(~block.restart | ((open_beats == 0) & ~block.beat.valid)),
        Assert(~takes | fits),
    ]
    with m.If(block.restart):
        m.d.sync += [started.eq(1), position.eq(0)]
    with m.Elif(takes):
        m.d.sync += position.eq(position + 1)
    m.d.sync += open_beats.eq(Mux(block.closes, 0, open_beats + takes))

    # Bursts.
    burst = opened.inner("bursts").signal("write__data")
    length_bits = len(block.burst.payload.length)
    address, length = burst[:-length_bits], burst[-length_bits:]
    end = Signal.like(at)  # of the beats that are closed
    m.d.comb += end.eq(at + Mux(takes, bus_bytes, 0))
    with m.If(block.closes):
        m.d.comb += [
            Assert(opened.inner("bursts").signal("push")),
            Assert(length + 1 == open_beats + takes),
            Assert(address + (length + 1) * bus_bytes == end),
            Assert((address ^ (end - 1)) >> (BOUNDARY_BYTES - 1).bit_length() == 0),
        ]
    with m.Else():
        m.d.comb += Assert(~opened.inner("bursts").signal("push"))
    with m.If(after(block.flushed)):
        m.d.comb += Assert(open_beats == 0)
    with m.If(block.fault.valid & after(started)):
        m.d.comb += Assert(block.fault.payload.address == after(at)[: config.address_width_bits])
    m.d.comb += [
        Assert(opened.inner("beats").signal("push") == takes),
        Assert(~(block.flushed & takes)),
        Assert(block.fault.valid == after(block.beat.valid & ~fits)),
        Cover(block.closes & takes & (length == longest - 1)),
        Cover(block.closes & block.flush & (length != 0)),
        Cover(block.fault.valid & (position > 2)),
    ]

    # Where all this is kept.
    region_beats = region.region_bytes // bus_bytes
    has_tail = region.region_bytes % bus_bytes != 0
    number = opened.signal("number")
    m.d.comb += [
        Assert(position <= Mux(started, region_beats + has_tail, 0)),
        Assert(opened.signal("count") == open_beats),
        Assert(open_beats <= position),
        Assert(open_beats < longest),
        Assert(open_beats <= number[: (longest - 1).bit_length()]),
        Assert(opened.signal("some_left") == (started & (position < region_beats))),
        Assert(opened.signal("tail_left") == (started & (position <= region_beats))),
    ]
    with m.If(started):
        m.d.comb += Assert(number * bus_bytes == at[: config.address_width_bits])
    with m.If(opened.signal("some_left")):
        m.d.comb += Assert(opened.signal("left") == region_beats - position)
    with m.If(open_beats != 0):
        start = opened.signal("start")
        m.d.comb += Assert(start == (number - open_beats)[: len(start)])
    return bench
