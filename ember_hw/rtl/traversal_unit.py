"""One hardware loop: bounds, iterator, streams and join, wired."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw import isa
from ember_hw.config import AcceleratorConfig
from ember_hw.rtl import stream_address
from ember_hw.rtl.bounds import Bounds
from ember_hw.rtl.delay import delay
from ember_hw.rtl.faults import FaultSignature, first_fault
from ember_hw.rtl.fifos import ReservedFifo, StreamFifo
from ember_hw.rtl.iterator import Iterator
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
    word_valid (one a stream), word : in; room (one a stream) : out
        Words of lines, and whether the line stores take one of the input queue.
    fault : out
        The first of its streams and its join.
    waiting : out
        Steps that wait for their lines.
    whole : out
        All of each line that was loaded from has arrived, as of the cycle before.
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
                "word_valid": In(streams),
                "word": In(config.index_bits),
                "room": Out(streams),
                "fault": Out(FaultSignature(config)),
                "waiting": Out(range(config.token_entries + 1)),
                "whole": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config, level = self.config, self.level
        m.submodules.bounds = bounds = Bounds(config=config, level=level)
        m.submodules.iterator = iterator = Iterator(config=config, level=level)
        m.submodules.join = join = Join(config=config, level=level)
        m.submodules.steps = steps = ReservedFifo(
            shape=step_layout(config), credits=config.token_entries
        )
        # An entry's frame waits from the bounds to the join's end. With room for all entries that
        # the bounds, the steps and the join may hold, entries of one step run as far ahead of their
        # loads as others.
        m.submodules.frames = frames = StreamFifo(
            shape=values_layout(config), depth_entries=config.token_entries + 48
        )
        wiring.connect(m, bounds.entry, iterator.entry)
        wiring.connect(m, frames.o, join.frame)
        wiring.connect(m, steps.o, join.step)
        wiring.connect(m, join.token, wiring.flipped(self.token))
        m.d.comb += [
            bounds.parent.payload.eq(self.parent.payload),
            bounds.parent.valid.eq(self.parent.valid & frames.i.ready),
            self.parent.ready.eq(bounds.parent.ready & frames.i.ready),
            frames.i.payload.eq(self.parent.payload.exports),
            frames.i.valid.eq(self.parent.valid & bounds.parent.ready),
            bounds.record.eq(self.record),
            iterator.record.eq(self.record),
            join.record.eq(self.record),
        ]

        quiet = []
        whole = []
        faults = []
        for s in range(config.streams_per_unit):
            address = stream_address.StreamAddress(config=config, level=level, index=s)
            store = LineStore(config=config)
            m.submodules[f"address{s}"] = address
            m.submodules[f"store{s}"] = store
            wiring.connect(m, store.request, wiring.flipped(self.requests[s]))
            faults.append(address.fault)
            m.d.comb += [
                address.record.eq(self.streams[s]),
                address.valid.eq(iterator.valid),
                address.iteration.eq(iterator.iteration),
                address.window.eq(iterator.windows[s]),
                store.wanted.eq(address.line),
                store.wanted_valid.eq(address.line_valid),
                store.word_valid.eq(self.word_valid[s]),
                store.word.eq(self.word),
                store.from_queue.eq(self.streams[s].source == isa.StreamSource.QUEUE),
                self.room[s].eq(store.room),
                bounds.streams[s].eq(self.streams[s]),
                join.streams[s].eq(self.streams[s]),
                store.offset.eq(join.lines[s].offset),
                store.new.eq(join.lines[s].new),
                join.lines[s].available.eq(store.available),
                store.advance.eq(join.lines[s].advance),
                join.lines[s].data.eq(store.data),
                join.lines[s].fits.eq(store.fits),
                steps.payload.loads[s].eq(address.load),
            ]
            calm = Signal(name=f"calm{s}")
            m.d.sync += calm.eq(store.level <= QUEUE_LINES - _LINES_ON_THE_WAY)
            quiet.append(calm)
            whole.append(store.whole)
        m.d.sync += [
            *first_fault(self.fault, [*faults, join.fault]),
            self.whole.eq(Cat(*whole).all()),
        ]
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
