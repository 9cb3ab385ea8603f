"""What a memory port promises: the rules of AXI reads, and that no beat is lost.

Ref: AMBA AXI protocol, IHI 0022, A3.2 (handshakes), A3.4.1 (bursts).
"""

from __future__ import annotations

from amaranth.hdl import Assert, Assume, Cat, Const, Cover, Mux, Signal
from amaranth.lib import data

from ember_hw import isa
from ember_hw.rtl import axi
from ember_hw.rtl.fifos import LUT_MEMORY_ENTRIES
from ember_hw.rtl.formal.bench import Bench, Opened
from ember_hw.rtl.formal.queues import Followed, say_where
from ember_hw.rtl.layouts import port_of, read_request_layout, request_tag_bits
from ember_hw.rtl.memory_port import MemoryPort, most_reads, port_beat_layout
from ember_hw.rtl.memory_ports import REQUEST_ENTRIES, MemoryPorts


def memory_port(port: MemoryPort) -> Bench:
    """Return the bench of a `MemoryPort`.

    The clients keep their limits, and memory returns beats of reads in flight alone. Then ARVALID
    and all of AR hold until ARREADY, whatever `stop` and the clients do; a request is taken once,
    is the one shown in the next cycle, with the client's bit above its tag; while `stop` is high
    nothing more is taken; RREADY is always high and each beat is at its client in the next cycle;
    the reads in flight are counted without overflow; `idle` is high exactly if nothing is in
    flight, waits on AR, or is on its way to a client. Induction over one cycle proves it.
    """
    bench = Bench(port)
    after = bench.after
    m, bus, config = bench.m, port.axi, port.config
    shown = Cat(
        bus.arid,
        bus.araddr,
        bus.arlen,
        bus.arsize,
        bus.arburst,
        bus.arlock,
        bus.arcache,
        bus.arprot,
    )
    with m.If(after(bus.arvalid & ~bus.arready)):
        m.d.comb += [Assert(bus.arvalid), Assert(shown == after(shown))]
    m.d.comb += [
        Assert(bus.arsize == (len(bus.rdata) // 8 - 1).bit_length()),
        Assert(bus.arburst == axi.Burst.INCREMENTING),
        Assert(Cat(bus.arlock, bus.arprot) == 0),
        Assert(port.waiting == (bus.arvalid & ~bus.arready)),
    ]

    # Requests.
    takes = []
    for is_index, request in ((1, port.index_request), (0, port.row_request)):
        take = request.valid & request.ready
        takes.append(take)
        beats = max(config.max_burst_beats, config.line_beats)
        m.d.comb += [
            Assume(request.payload.length < beats),
            Assert(~(request.ready & port.stop)),
        ]
        with m.If(after(take)):
            hint = after(request.payload.hint)
            cache = Mux(hint == isa.Hint.NON_TEMPORAL.value, 0b0011, 0b1111)
            tag = after(request.payload.tag)
            m.d.comb += [
                Assert(bus.araddr == after(request.payload.address)),
                Assert(bus.arlen == after(request.payload.length)),
                Assert(bus.arcache == cache),
                Assert(bus.arid == (tag if port.index else Cat(tag, Const(is_index, 1)))),
            ]
    taken = Cat(*takes).any()
    m.d.comb += [
        Assert(~Cat(*takes).all()),
        Assert(bus.arvalid == after(taken | (bus.arvalid & ~bus.arready))),
    ]
    if port.index:
        m.d.comb += Assume(~port.row_request.valid)

    # Reads in flight.
    most = len(bench.block.signal("in_flight"))
    flying = Signal(most + 1)
    asked = bus.arvalid & bus.arready
    returned = bus.rvalid & bus.rready & bus.rlast
    limit = most_reads(config)
    m.d.sync += flying.eq(flying + asked - returned)
    m.d.comb += [
        Assume(~taken | (flying + bus.arvalid < limit)),
        Assume(~bus.rvalid | (flying + asked != 0)),
        Assert(flying + bus.arvalid <= limit),
        Assert(bench.block.signal("in_flight") == flying),
        Assert(bus.rready),
    ]

    # Beats.
    tag_bits = request_tag_bits(config)
    of_index = Const(1) if port.index else bus.rid[tag_bits]
    m.d.comb += [
        Assert(port.index_valid == after(bus.rvalid & of_index)),
        Assert(port.row_valid == after(bus.rvalid & ~of_index)),
        Assert(port.idle == ((flying == 0) & ~bus.arvalid & ~port.index_valid & ~port.row_valid)),
        Cover(flying == min(limit, 8)),
        Cover(port.idle & after(port.index_valid | port.row_valid)),
        Cover(port.stop & after(port.stop) & bus.arvalid & after(bus.arvalid & port.stop)),
    ]
    with m.If(port.index_valid | port.row_valid):
        m.d.comb += [
            Assert(port.beat.tag == after(bus.rid[:tag_bits])),
            Assert(port.beat.data == after(bus.rdata)),
            Assert(port.beat.last == after(bus.rlast)),
            Assert(port.beat.response == after(bus.rresp)),
        ]
    return bench


def requests_of_a_port(ports: MemoryPorts, *, number: int) -> Bench:
    """Return the bench of the requests of one of several ports.

    A request goes to this port's queue if its address belongs to the port, and to no other; from
    there to AR, once, in order, as it is, unless `stop` drops it; while any waits, `idle` is low.
    Induction over one cycle proves it.
    """
    bench = Bench(ports)
    m, bus = bench.m, ports.memory[number]
    empty = [
        _queue_of_a_port(bench, number, client, request, bus)
        for client, request in (("row", ports.row_request), ("index", ports.index_request))
    ]
    for other, its_bus in enumerate(ports.memory):
        _beats_of_a_port(bench, other, its_bus, follows=False)
    m.d.comb += [
        Assert(~ports.idle | (Cat(*empty).all() & ~bus.arvalid)),
        Cover(ports.stop & ~Cat(*empty).any()),
        Cover(bench.after(ports.stop & Cat(*empty).any()) & Cat(*empty).all() & bus.arvalid),
    ]
    return bench


def beats_of_a_port(ports: MemoryPorts, *, number: int) -> Bench:
    """Return the bench of the beats of one of several ports.

    Memory returns what was asked for, and clients keep their limits. Then the port's queue has room
    for every beat, so none is lost with RREADY always high; each beat reaches its client once, in
    order, as it is, with the port's number in its tag; while one is due or on its way, `idle` is
    low. Induction over one cycle proves it.
    """
    bench = Bench(ports)
    m = bench.m
    none_due = [
        _beats_of_a_port(bench, other, bus, follows=other == number)
        for other, bus in enumerate(ports.memory)
    ]
    m.d.comb += [
        Assert(~ports.idle | (Cat(*none_due).all() & ~ports.index_valid & ~ports.row_valid)),
        Cover(ports.idle & bench.after(ports.row_valid)),
    ]
    return bench


def follow(bench: Bench, queue: Opened, depth_entries: int, picks=None) -> Followed:
    """Follow an entry of a queue within the block."""
    front_valid = queue.signal("o__valid")
    followed = Followed(
        bench.m,
        comes=queue.signal("push"),
        entry=queue.signal("write__data"),
        leaves=_leaves(queue, depth_entries),
        front_valid=front_valid,
        front=queue.signal("o__payload"),
        entries=depth_entries + 2,
        picks=picks,
    )
    say_where(bench.m, queue, depth=depth_entries, front_valid=front_valid, followed=followed)
    bench.m.d.comb += Assert(queue.signal("level") == followed.inside)
    return followed


def _leaves(queue: Opened, depth_entries: int):
    """Return whether an entry leaves a queue within the block."""
    if depth_entries <= LUT_MEMORY_ENTRIES:
        return queue.signal("pop")
    return queue.signal("o__valid") & queue.signal("moves")


def _queue_of_a_port(bench: Bench, number: int, client: str, request, bus):
    """Assert the way of a request through the queue of a port. Return whether it is empty."""
    m, config, stop = bench.m, bench.component.config, bench.component.stop
    queue = bench.block.inner(f"{client}_queue{number}")
    followed = follow(bench, queue, REQUEST_ENTRIES)
    held = data.View(read_request_layout(config), followed.value)
    is_here = port_of(request.payload.address, config) == number
    leaves = Signal()
    m.d.comb += [
        Assert(queue.signal("push") == (request.valid & request.ready & is_here)),
        leaves.eq(followed.active & (followed.ahead == 0)),
        Assert(~followed.active | (port_of(held.address, config) == number)),
    ]
    moved = bench.after(leaves & _leaves(queue, REQUEST_ENTRIES) & ~stop)
    address, length, tag = (bench.after(held[name]) for name in ("address", "length", "tag"))
    is_index = Const(client == "index", 1)
    m.d.comb += [
        Assert(~moved | (bus.arvalid & (bus.araddr == address) & (bus.arlen == length))),
        Assert(~moved | (bus.arid == Cat(tag, is_index))),
    ]
    return followed.inside == 0


def _beats_of_a_port(bench: Bench, number: int, bus, *, follows: bool):
    """Assert that the beats of a port have room, and if it `follows` them, their way.

    Return whether none is due.
    """
    m, ports = bench.m, bench.component
    config = ports.config
    places = config.reorder_buffer_beats
    port, queue = bench.block.inner(f"port{number}"), bench.block.inner(f"beats{number}")
    followed = follow(bench, queue, places, None if follows else Const(0))

    # Beats and reads that memory owes.
    owed, flying = Signal(range(2 * places)), Signal(range(2 * places))
    owed_next, flying_next = Signal.like(owed), Signal.like(flying)
    asked = bus.arvalid & bus.arready
    come, used = Signal(), Signal.like(owed)
    m.d.comb += [
        owed_next.eq(owed + Mux(asked, bus.arlen + 1, 0) - bus.rvalid),
        flying_next.eq(flying + asked - (bus.rvalid & bus.rlast)),
        Assume(~bus.rvalid | (owed != 0)),
        Assume(~(bus.rvalid & bus.rlast) | (flying != 0)),
        Assume((owed_next == 0) == (flying_next == 0)),
        Assume(~bus.arvalid | (flying < most_reads(config))),
        Assume(flying_next <= owed_next),
        Assert(port.signal("in_flight") == flying),
        Assert(bus.rready),
        come.eq(port.signal("index_valid") | port.signal("row_valid")),
        Assert(~(port.signal("index_valid") & port.signal("row_valid"))),
        used.eq(bench.block.inner(f"credits{number}").signal("used")),
        Assert(used <= places),
        Assert(used == owed + Mux(bus.arvalid, bus.arlen + 1, 0) + come + followed.inside),
        Assert(queue.signal("push") == come),
    ]
    m.d.sync += [owed.eq(owed_next), flying.eq(flying_next)]
    if follows:
        _way_of_a_beat(bench, number, queue, followed)
    return (owed == 0) & ~bus.arvalid & ~come & (followed.inside == 0)


def _way_of_a_beat(bench: Bench, number: int, queue: Opened, followed: Followed) -> None:
    """Assert that a beat is at the arbiter's output in the cycle after it left its port's queue."""
    m, ports = bench.m, bench.component
    config = ports.config
    layout = data.StructLayout({"is_index": 1, "beat": port_beat_layout(config, index=False)})
    held = data.View(layout, followed.value)
    moved = bench.after(
        followed.active & (followed.ahead == 0) & _leaves(queue, config.reorder_buffer_beats)
    )
    is_index, beat = bench.after(held.is_index), bench.after(held.beat)
    before = data.View(port_beat_layout(config, index=False), beat)
    m.d.comb += Assert(~moved | Mux(is_index, ports.index_valid, ports.row_valid))
    for out in (ports.index_beat, ports.row_beat):
        m.d.comb += [
            Assert(
                ~moved
                | (
                    out.tag
                    == Cat(before.tag, Const(number, (config.memory_ports - 1).bit_length()))
                )
            ),
            Assert(~moved | (out.data == before.data)),
            Assert(~moved | (out.last == before.last)),
            Assert(~moved | (out.response == before.response)),
        ]
