"""One hardware loop: bounds, iterator, streams and join, wired."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.config import AcceleratorConfig
from ember_hw.rtl import axi, stream_address
from ember_hw.rtl.bounds import Bounds
from ember_hw.rtl.control import FaultSignature
from ember_hw.rtl.delay import delay
from ember_hw.rtl.fifos import ReservedFifo
from ember_hw.rtl.iterator import Iterator
from ember_hw.rtl.join import STEPS as JOIN_STEPS
from ember_hw.rtl.join import Join
from ember_hw.rtl.layouts import (
    line_address_bits,
    record_layout,
    step_layout,
    token_layout,
    values_layout,
)
from ember_hw.rtl.line_store import QUEUE_LINES, LineStore

# Lines that may still come when the iterator is told to stop: its steps in the address pipeline,
# and two registers.
_LINES_ON_THE_WAY = stream_address.CYCLES + 2


class TraversalUnit(wiring.Component):
    """Turns each token of the unit above into the tokens of its loop.

    Order and event bits are those of `ember_hw.isa`. One token a cycle when its lines are there; no
    bubble between loop entries. Up to `config.token_entries` steps wait for their lines.

    Members
    -------
    record, streams : in
        Microcode records.
    parent, token : streams
    requests : streams, out
        Lines to read, for each memory stream.
    beat_valid (one a stream), beat_data, beat_last, beat_response : in
        Returned beats.
    faults : out
        For each stream its address and its line store, then the join.
    waiting : out
        Steps that wait for their lines.
    """

    def __init__(self, *, config: AcceleratorConfig, level: int):
        self.config = config
        self.level = level
        streams = config.streams_per_unit
        super().__init__(
            {
                "record": In(record_layout("unit0", config)),
                "streams": In(record_layout("unit0.stream0", config)).array(streams),
                "parent": In(stream.Signature(token_layout(config))),
                "token": Out(stream.Signature(token_layout(config))),
                "requests": Out(stream.Signature(line_address_bits(config))).array(streams),
                "beat_valid": In(streams),
                "beat_data": In(config.data_width_bits),
                "beat_last": In(1),
                "beat_response": In(axi.Response),
                "faults": Out(FaultSignature(config)).array(self.fault_ports(config)),
                "waiting": Out(range(config.token_entries + 1)),
            }
        )

    @staticmethod
    def fault_ports(config: AcceleratorConfig) -> int:
        """Return the number of fault ports."""
        return 2 * config.streams_per_unit + 1

    def elaborate(self, platform):
        m = Module()
        config, level = self.config, self.level
        m.submodules.bounds = bounds = Bounds(config=config, level=level)
        m.submodules.iterator = iterator = Iterator(config=config, level=level)
        m.submodules.join = join = Join(config=config, level=level)
        m.submodules.steps = steps = ReservedFifo(
            shape=step_layout(config), credits=config.token_entries
        )
        # An entry's frame waits from the iterator to the join's end, and at least one step with it
        # up to the join's beginning. With room for both, entries of one step run as far ahead of
        # their loads as others.
        m.submodules.frames = frames = ReservedFifo(
            shape=values_layout(config), credits=config.token_entries + JOIN_STEPS
        )
        wiring.connect(m, wiring.flipped(self.parent), bounds.parent)
        wiring.connect(m, frames.o, join.frame)
        wiring.connect(m, steps.o, join.step)
        wiring.connect(m, join.token, wiring.flipped(self.token))
        wiring.connect(m, join.fault, wiring.flipped(self.faults[-1]))
        m.d.comb += [
            bounds.record.eq(self.record),
            iterator.record.eq(self.record),
            join.record.eq(self.record),
        ]

        # An entry goes to the iterator together with its frame to the join.
        m.d.comb += [
            iterator.entry.payload.eq(bounds.entry.payload),
            iterator.entry.valid.eq(bounds.entry.valid & frames.room),
            bounds.entry.ready.eq(iterator.entry.ready & frames.room),
            frames.payload.eq(bounds.entry.payload.exports),
            frames.take.eq(bounds.entry.valid & bounds.entry.ready),
            frames.push.eq(frames.take),
        ]

        quiet = []
        for s in range(config.streams_per_unit):
            address = stream_address.StreamAddress(config=config, level=level, index=s)
            store = LineStore(config=config, level=level, index=s)
            m.submodules[f"address{s}"] = address
            m.submodules[f"store{s}"] = store
            wiring.connect(m, store.request, wiring.flipped(self.requests[s]))
            wiring.connect(m, address.fault, wiring.flipped(self.faults[2 * s]))
            wiring.connect(m, store.fault, wiring.flipped(self.faults[2 * s + 1]))
            m.d.comb += [
                address.record.eq(self.streams[s]),
                address.valid.eq(iterator.valid),
                address.iteration.eq(iterator.iteration),
                address.exports.eq(iterator.exports),
                store.wanted.eq(address.line),
                store.wanted_valid.eq(address.line_valid),
                store.beat_valid.eq(self.beat_valid[s]),
                store.beat_data.eq(self.beat_data),
                store.beat_last.eq(self.beat_last),
                store.beat_response.eq(self.beat_response),
                join.streams[s].eq(self.streams[s]),
                join.lines[s].available.eq(store.available),
                store.advance.eq(join.lines[s].advance),
                store.offset.eq(join.lines[s].offset),
                join.lines[s].data.eq(store.data),
                steps.payload.loads[s].eq(address.load),
            ]
            calm = Signal(name=f"calm{s}")
            m.d.sync += calm.eq(store.level <= QUEUE_LINES - _LINES_ON_THE_WAY)
            quiet.append(calm)
        m.d.comb += [
            iterator.room.eq(steps.room & Cat(*quiet).all()),
            steps.take.eq(iterator.valid),
        ]

        valid, iteration = delay(
            m, "step", iterator.valid, iterator.iteration, stream_address.CYCLES
        )
        m.d.comb += [
            steps.push.eq(valid[-1]),
            steps.payload.iteration.eq(iteration[-1]),
            self.waiting.eq(steps.level),
        ]
        return m
