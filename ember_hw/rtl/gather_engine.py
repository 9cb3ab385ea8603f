"""Reads rows with many bursts in flight and delivers their beats in order."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ember_hw.config import AcceleratorConfig
from ember_hw.registers import NO_UNIT
from ember_hw.rtl import axi
from ember_hw.rtl.burst_splitter import BurstSplitter
from ember_hw.rtl.control import FaultSignature
from ember_hw.rtl.fifos import ReservedFifo, StreamFifo
from ember_hw.rtl.layouts import (
    beat_count_bits,
    descriptor_layout,
    read_beat_layout,
    read_request_layout,
    row_beat_layout,
    tag_bits,
)

# Phase check, buffer read, and what the queue adds: one beat a cycle needs six.
_OUTPUT_CREDITS = 8


class GatherEngine(wiring.Component):
    """Turns row descriptors into reads, and beats that return in any order into rows in order.

    One burst asked for and one beat delivered a cycle. Each burst has its tag and its place in the
    reorder buffer before it is asked for, so a returned beat is always taken; delivering a beat
    frees its place, delivering a burst's last beat frees its tag. `config.outstanding_reads *
    beats` beyond latency + 10 keeps the port busy.

    A beat's place is valid if its phase bit is that of the current pass through the buffer, so
    nothing is cleared while a program runs; after a reset, `cleared` rises when the phase bits and
    the tags' counts have been walked through.

    Members
    -------
    limit : in
        Bursts in flight at most; 0: as many as there are tags.
    descriptor : stream, in
    request : stream, out
    beat_valid, beat : in
        Returned beats of this engine's tags.
    row : stream, out
    fault : out
        Memory answered with an error.
    cleared : out
        Ready after a reset.
    blocked_outstanding, blocked_reorder : out
        A burst waits for a tag, or for room in the reorder buffer.
    outstanding, reserved : out
        Bursts in flight, beats reserved or waiting.
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        super().__init__(
            {
                "limit": In(10),
                "descriptor": In(stream.Signature(descriptor_layout(config))),
                "request": Out(stream.Signature(read_request_layout(config))),
                "beat_valid": In(1),
                "beat": In(read_beat_layout(config)),
                "row": Out(stream.Signature(row_beat_layout(config))),
                "fault": Out(FaultSignature(config)),
                "cleared": Out(1),
                "blocked_outstanding": Out(1),
                "blocked_reorder": Out(1),
                "outstanding": Out(range(config.outstanding_reads + 1)),
                "reserved": Out(range(config.reorder_buffer_beats + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        tags, places = config.outstanding_reads, config.reorder_buffer_beats
        place_bits = (places - 1).bit_length()
        pointer_shape = place_bits + 1  # the top bit is the pass through the buffer

        m.submodules.splitter = splitter = BurstSplitter(config=config)
        wiring.connect(m, wiring.flipped(self.descriptor), splitter.descriptor)
        m.submodules.order = order = StreamFifo(
            shape=data.StructLayout(
                {
                    "beats": beat_count_bits(config),
                    "row_last": 1,
                    "last_bytes": config.bus_bytes.bit_length(),
                }
            ),
            depth_entries=tags + 2,
        )
        m.submodules.output = output = ReservedFifo(
            shape=row_beat_layout(config), credits=_OUTPUT_CREDITS
        )
        wiring.connect(m, output.o, wiring.flipped(self.row))

        # Places and tags are given out in order, and freed in order.
        burst = splitter.burst.payload
        next_tag = Signal(range(tags))
        write_pointer = Signal(pointer_shape)
        read_pointer = Signal(pointer_shape)
        beat_leaves = Signal()
        burst_leaves = Signal()
        asks = Signal()
        may_ask = Signal()
        tag_limit = Signal(range(tags + 1))
        reorder_free = Signal(range(places + 1), init=places)
        tag_free = Signal()
        place_free = Signal()
        m.d.sync += tag_limit.eq(Mux((self.limit == 0) | (self.limit > tags), tags, self.limit))
        m.d.comb += [
            tag_free.eq(self.outstanding < tag_limit),
            place_free.eq(burst.beats <= reorder_free),
            self.blocked_outstanding.eq(splitter.burst.valid & ~tag_free),
            self.blocked_reorder.eq(splitter.burst.valid & tag_free & ~place_free),
            may_ask.eq(tag_free & place_free & self.cleared),
            self.request.valid.eq(splitter.burst.valid & may_ask),
            splitter.burst.ready.eq(self.request.ready & may_ask),
            asks.eq(self.request.valid & self.request.ready),
            self.request.payload.address.eq(burst.address),
            self.request.payload.beats.eq(burst.beats),
            self.request.payload.hint.eq(burst.hint),
            self.request.payload.tag.eq(Cat(next_tag, 0)),
            order.i.valid.eq(asks),
            order.i.payload.beats.eq(burst.beats),
            order.i.payload.row_last.eq(burst.row_last),
            order.i.payload.last_bytes.eq(burst.last_bytes),
            self.reserved.eq(places - reorder_free),
        ]
        with m.If(asks):
            m.d.sync += [
                next_tag.eq(Mux(next_tag == tags - 1, 0, next_tag + 1)),
                write_pointer.eq(write_pointer + burst.beats),
            ]
        m.d.sync += [
            self.outstanding.eq(self.outstanding + asks - burst_leaves),
            reorder_free.eq(reorder_free - Mux(asks, burst.beats, 0) + beat_leaves),
        ]

        # After a reset every place is given the phase that means "not in the first pass", and every
        # tag a count of 0: a reset of the whole system may have come amid a burst.
        clear_cycles = max(places, tags)
        clearing = Signal(range(clear_cycles + 1))
        m.d.comb += self.cleared.eq(clearing == clear_cycles)
        with m.If(~self.cleared):
            m.d.sync += clearing.eq(clearing + 1)

        store_valid, store_pointer, store_data = self._place_beats(
            m, asks, next_tag, write_pointer, burst, clearing
        )

        # The buffer and its phase bits.
        m.submodules.buffer = buffer = Memory(shape=config.data_width_bits, depth=places, init=[])
        m.submodules.phases = phases = Memory(shape=1, depth=places, init=[])
        buffer_write, buffer_read = buffer.write_port(), buffer.read_port()
        phase_write, phase_read = phases.write_port(), phases.read_port(domain="comb")
        with m.If(~self.cleared):
            m.d.comb += [phase_write.addr.eq(clearing), phase_write.en.eq(1)]
        with m.Else():
            m.d.comb += [
                phase_write.addr.eq(store_pointer),
                phase_write.data.eq(~store_pointer[-1]),
                phase_write.en.eq(store_valid),
            ]
        m.d.comb += [
            buffer_write.addr.eq(store_pointer),
            buffer_write.data.eq(store_data),
            buffer_write.en.eq(store_valid),
        ]

        # Delivery: the oldest burst's next beat, when its phase says that it is there.
        here = Signal()
        count = Signal(beat_count_bits(config))
        current = order.o.payload
        m.d.comb += [
            phase_read.addr.eq(read_pointer),
            here.eq(phase_read.data != read_pointer[-1]),
            beat_leaves.eq(order.o.valid & here & output.room),
            burst_leaves.eq(beat_leaves & (count + 1 == current.beats)),
            order.o.ready.eq(burst_leaves),
            output.take.eq(beat_leaves),
            buffer_read.addr.eq(read_pointer),
            buffer_read.en.eq(1),
        ]
        with m.If(beat_leaves):
            m.d.sync += [read_pointer.eq(read_pointer + 1), count.eq(count + 1)]
        with m.If(burst_leaves):
            m.d.sync += count.eq(0)

        read_valid = Signal()
        read_last = Signal()
        read_bytes = Signal(config.bus_bytes.bit_length())
        row_last = burst_leaves & current.row_last
        m.d.sync += [
            read_valid.eq(beat_leaves),
            read_last.eq(row_last),
            read_bytes.eq(Mux(row_last, current.last_bytes, config.bus_bytes)),
            output.push.eq(read_valid),
            output.payload.data.eq(buffer_read.data),
            output.payload.last.eq(read_last),
            output.payload.bytes.eq(read_bytes),
        ]
        return m

    def _place_beats(self, m: Module, asks, next_tag, write_pointer, burst, clearing):
        """Find each returned beat's place: its burst's start, and its beats that came before."""
        config = self.config
        tags = config.outstanding_reads
        m.submodules.starts = starts = Memory(shape=len(write_pointer), depth=tags, init=[])
        m.submodules.counts = counts = Memory(shape=beat_count_bits(config), depth=tags, init=[])
        # Where a burst came from, only to name the one that failed.
        origin = data.StructLayout(
            {"address": config.address_width_bits, "entry": range(config.row_entries)}
        )
        m.submodules.origins = origins = Memory(shape=origin, depth=tags, init=[])
        start_write, start_read = starts.write_port(), starts.read_port(domain="comb")
        count_write, count_read = counts.write_port(), counts.read_port(domain="comb")
        origin_write, origin_read = origins.write_port(), origins.read_port(domain="comb")

        beat_valid = Signal()
        beat = Signal(read_beat_layout(config))
        m.d.sync += [beat_valid.eq(self.beat_valid), beat.eq(self.beat)]
        tag = beat.tag[: tag_bits(config) - 1]
        m.d.comb += [
            start_write.addr.eq(next_tag),
            start_write.data.eq(write_pointer),
            start_write.en.eq(asks),
            origin_write.addr.eq(next_tag),
            origin_write.data.address.eq(burst.address),
            origin_write.data.entry.eq(burst.entry),
            origin_write.en.eq(asks),
            start_read.addr.eq(tag),
            count_read.addr.eq(tag),
            origin_read.addr.eq(tag),
            # The counts are 0 between bursts, so none has to be set when a burst is asked for.
            count_write.addr.eq(Mux(self.cleared, tag, clearing)),
            count_write.data.eq(Mux(beat.last | ~self.cleared, 0, count_read.data + 1)),
            count_write.en.eq(beat_valid | ~self.cleared),
        ]
        store_valid = Signal()
        store_pointer = Signal(len(write_pointer))
        store_data = Signal(config.data_width_bits)
        m.d.sync += [
            store_valid.eq(beat_valid),
            store_pointer.eq(start_read.data + count_read.data),
            store_data.eq(beat.data),
            self.fault.valid.eq(beat_valid & axi.failed(beat.response)),
            self.fault.payload.code.eq(axi.read_fault(beat.response)),
            self.fault.payload.unit.eq(NO_UNIT),
            self.fault.payload.stream.eq(origin_read.data.entry),
            self.fault.payload.address.eq(origin_read.data.address),
        ]
        return store_valid, store_pointer, store_data
