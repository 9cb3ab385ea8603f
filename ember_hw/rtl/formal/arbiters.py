"""What the arbiters promise: one grant a cycle, what was granted comes out, turns are fair."""

from __future__ import annotations

from typing import NamedTuple

from amaranth.asserts import AnyConst
from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Module, Mux, Signal, Value

from ember_hw.rtl import axi
from ember_hw.rtl.formal.bench import Bench
from ember_hw.rtl.index_port import IndexPort
from ember_hw.rtl.read_arbiter import ReadArbiter
from ember_hw.rtl.stream_arbiter import StreamArbiter


class Request(NamedTuple):
    """Signals that keep the rules of a stream."""

    valid: Value
    ready: Value
    payload: Value


def _one_grant(m: Module, inputs, output) -> Value:
    """Assert that one waiting stream at most is served in a cycle, and one if any may be.

    Return which.
    """
    waits = Cat(port.valid for port in inputs)
    grants = Signal(len(inputs))
    free = ~output.valid | output.ready
    m.d.comb += [
        grants.eq(waits & Cat(port.ready for port in inputs)),
        Assert((grants & (grants - 1)[: len(inputs)]) == 0),
        Assert(grants.any() == (free & waits.any())),
    ]
    return grants


def _next_is(m: Module, grants, output, fields) -> None:
    """Assert that what was granted stands at the output a cycle later, and nothing else."""
    granted = Signal()
    kept = Signal()
    m.d.sync += [granted.eq(grants.any()), kept.eq(output.valid & ~output.ready)]
    m.d.comb += Assert(output.valid == (granted | kept))
    for port_values, value in fields:
        chosen = Signal(len(Value.cast(value)))
        for number, port_value in enumerate(port_values):
            with m.If(grants[number]):
                m.d.sync += chosen.eq(port_value)
        with m.If(granted):
            m.d.comb += Assert(Value.cast(value) == chosen)


def stream_arbiter(arbiter: StreamArbiter) -> Bench:
    """Return the bench of a `StreamArbiter`.

    In each cycle in which the output is free and a stream waits, exactly one is served; its payload
    and number stand at the output in the next cycle, and wait unchanged; a stream that waits is
    served after each other one at most once. Induction over one cycle proves it.
    """
    bench = Bench(arbiter)
    m = bench.m
    inputs = arbiter.inputs
    for port in arbiter.i:
        bench.offer(port)
    bench.stays(arbiter.o)
    grants = _one_grant(m, arbiter.i, arbiter.o)
    out = arbiter.o.payload
    _next_is(
        m,
        grants,
        arbiter.o,
        [
            ([port.payload for port in arbiter.i], out.payload),
            (list(range(inputs)), out.source),
        ],
    )

    # Two streams, whichever: how often the other was served while this one waited.
    last = bench.block.signal("last")
    this, other = Signal(range(max(2, inputs))), Signal(range(max(2, inputs)))
    waits, served_this, served_other = Signal(), Signal(), Signal()
    turns = Signal()  # of the other one since this one waits

    def rank(number) -> Value:
        """Return how many streams are in front of this one."""
        behind = Mux(number > last, number - last, number + inputs - last)
        return behind[: len(last) + 1] - 1

    m.d.comb += [
        this.eq(AnyConst(len(this))),
        other.eq(AnyConst(len(other))),
        Assume(this < inputs),
        Assume(other < inputs),
        waits.eq(Array(port.valid for port in arbiter.i)[this]),
        served_this.eq(Array(grants)[this]),
        served_other.eq(Array(grants)[other]),
        Assert(last < inputs),
    ]
    with m.If(this != other):
        m.d.comb += [
            Assert(~(turns & waits & served_other)),
            Assert(~turns | waits),
            Assert(~turns | (rank(other) > rank(this))),
        ]
        with m.If(served_this | ~waits):
            m.d.sync += turns.eq(0)
        with m.Elif(served_other):
            m.d.sync += turns.eq(1)
    m.d.comb += Cover(served_this & turns if inputs > 1 else served_this)
    return bench


def index_port(port: IndexPort) -> Bench:
    """Return the bench of an `IndexPort`.

    In each cycle in which the output is free and a stream waits, exactly one is served, the first
    of those that wait; its line, number and hint stand at the output in the next cycle, and wait
    unchanged. Induction over one cycle proves it.
    """
    bench = Bench(port)
    m = bench.m
    for line in port.lines:
        bench.offer(line)
    bench.stays(port.request)
    grants = _one_grant(m, port.lines, port.request)
    waits = Cat(line.valid for line in port.lines)
    m.d.comb += [
        Assert(~grants.any() | (grants == (waits & -waits)[: len(waits)])),
        Cover(grants[len(waits) - 1]),
    ]
    out = port.request.payload
    _next_is(
        m,
        grants,
        port.request,
        [
            ([line.payload for line in port.lines], out.line),
            (list(range(len(port.lines))), out.stream),
            (list(port.hints), out.hint),
        ],
    )
    return bench


def read_arbiter(arbiter: ReadArbiter) -> Bench:
    """Return the bench of a `ReadArbiter`.

    The units keep ARVALID and AR until ARREADY, and beats carry IDs of reads that were asked for.
    Then the channel keeps them as well; exactly one waiting unit is served when the channel's AR is
    free; its read stands there in the next cycle, with its number above its ID; each beat is shown
    to the unit whose number its ID has, to no other, as it is, and waits for that unit's RREADY.
    Fairness is that of the `StreamArbiter` within. Induction over one cycle proves it.
    """
    bench = Bench(arbiter)
    m, channel, units = bench.m, arbiter.channel, arbiter.units
    id_bits = len(units[0].arid)
    requests = []
    for unit in units:
        payload = Cat(unit.arid, unit.araddr, unit.arlen, unit.arcache)
        requests.append(Request(unit.arvalid, unit.arready, payload))
        bench.offer(requests[-1])
    shown = Cat(channel.arid[:id_bits], channel.araddr, channel.arlen, channel.arcache)
    number = channel.arid[id_bits:]
    output = Request(channel.arvalid, channel.arready, Cat(shown, number))
    bench.stays(output)
    grants = _one_grant(m, requests, output)
    _next_is(
        m,
        grants,
        output,
        [
            ([request.payload for request in requests], shown),
            (list(range(len(units))), number),
        ],
    )
    m.d.comb += [
        Assert(bench.block.inner("arbiter").signal("last") < len(units)),
        Assume(channel.rid[id_bits:] < len(units)),
        Assert(channel.arsize == (arbiter.config.bus_bytes - 1).bit_length()),
        Assert(channel.arburst == axi.Burst.INCREMENTING),
    ]
    beat = Cat(channel.rid[:id_bits], channel.rdata, channel.rresp, channel.rlast)
    for unit_number, unit in enumerate(units):
        is_its = channel.rid[id_bits:] == unit_number
        m.d.comb += [
            Assert(unit.rvalid == (channel.rvalid & is_its)),
            Assert(~unit.rvalid | (Cat(unit.rid, unit.rdata, unit.rresp, unit.rlast) == beat)),
            Assert(~is_its | (channel.rready == unit.rready)),
        ]
    m.d.comb += Cover(output.valid & ~output.ready & (number == len(units) - 1))
    return bench
