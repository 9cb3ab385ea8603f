"""Reads rows with many bursts in flight and delivers their beats in order."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.config import AcceleratorConfig
from ember_hw.registers import NO_UNIT
from ember_hw.rtl import axi
from ember_hw.rtl.burst_splitter import BurstSplitter, chunk_beats
from ember_hw.rtl.faults import FaultSignature
from ember_hw.rtl.layouts import (
    beat_tag_bits,
    descriptor_layout,
    port_of,
    read_beat_layout,
    read_request_layout,
    row_beat_layout,
    row_tags,
)
from ember_hw.rtl.read_table import ReadTable
from ember_hw.rtl.reorder_buffer import ReorderBuffer


class GatherEngine(wiring.Component):
    """Turns row descriptors into reads, and beats that return in any order into rows in order.

    One burst asked for and one beat delivered a cycle. Each burst has its places in the reorder
    buffer before it is asked for, so a returned beat is always taken; delivering a beat frees its
    place. `config.outstanding_reads * beats` beyond latency + 12 keeps the port busy, with as many
    places and 16 more.

    Members
    -------
    limit : in
        Bursts in flight at most; 0, or more than `config.outstanding_reads`: as many as that.
    descriptor : stream, in
    request : stream, out
    beat_valid, beat : in
        Returned beats.
    row : stream, out
    fault : out
        Memory answered with an error.
    cleared : out
        Ready after a reset.
    blocked_outstanding, blocked_reorder : out
        A burst waits for others to return, or for room in the reorder buffer.
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
        places, tags = config.reorder_buffer_beats, row_tags(config)

        m.submodules.splitter = splitter = BurstSplitter(config=config)
        m.submodules.buffer = buffer = ReorderBuffer(
            shape=row_beat_layout(config), places=places, burst_beats=chunk_beats(config)
        )
        # A burst has one place or more, and tags take turns: so many have each tag at most.
        m.submodules.reads = reads = ReadTable(
            tags=1 << beat_tag_bits(config),
            reads_per_tag=max(1, places // tags),
            read_beats=chunk_beats(config),
            note=data.StructLayout(
                {
                    "start": len(buffer.start),
                    "row_last": 1,
                    "last_bytes": config.bus_bytes.bit_length(),
                    "entry": range(config.row_entries),
                    "address": config.address_width_bits,
                }
            ),
        )
        wiring.connect(m, wiring.flipped(self.descriptor), splitter.descriptor)
        wiring.connect(m, buffer.o, wiring.flipped(self.row))

        # A burst is asked for when it may be in flight and has its places.
        burst = splitter.burst.payload
        tag = Signal(range(tags))
        most = Signal(range(config.outstanding_reads + 1))
        may_fly = Signal()
        may_ask = Signal()
        asks = Signal()
        returns = Signal()
        with m.If((self.limit == 0) | (self.limit > config.outstanding_reads)):
            m.d.sync += most.eq(config.outstanding_reads)
        with m.Else():
            m.d.sync += most.eq(self.limit)
        m.d.comb += [
            self.cleared.eq(buffer.cleared & reads.cleared),
            buffer.length.eq(burst.length),
            buffer.take.eq(asks),
            may_fly.eq(self.outstanding < most),
            may_ask.eq(may_fly & buffer.fits & self.cleared),
            self.blocked_outstanding.eq(splitter.burst.valid & ~may_fly),
            self.blocked_reorder.eq(splitter.burst.valid & may_fly & ~buffer.fits),
            self.request.valid.eq(splitter.burst.valid & may_ask),
            splitter.burst.ready.eq(self.request.ready & may_ask),
            asks.eq(self.request.valid & self.request.ready),
            returns.eq(self.beat_valid & self.beat.last),
            self.request.payload.address.eq(burst.address),
            self.request.payload.length.eq(burst.length),
            self.request.payload.hint.eq(burst.hint),
            self.request.payload.tag.eq(tag),
            reads.ask.eq(asks),
            reads.ask_tag.eq(Cat(self.request.payload.tag, port_of(burst.address, config))),
            reads.ask_note.start.eq(buffer.start),
            reads.ask_note.row_last.eq(burst.row_last),
            reads.ask_note.last_bytes.eq(burst.last_bytes),
            reads.ask_note.entry.eq(burst.entry),
            reads.ask_note.address.eq(burst.address),
            self.reserved.eq(buffer.used),
        ]
        with m.If(asks):
            m.d.sync += tag.eq(tag + 1)
        with m.If(asks & ~returns):
            m.d.sync += self.outstanding.eq(self.outstanding + 1)
        with m.Elif(returns & ~asks):
            m.d.sync += self.outstanding.eq(self.outstanding - 1)

        # A returned beat: its read's note, then its place.
        m.d.comb += [
            reads.beat.eq(self.beat_valid),
            reads.beat_tag.eq(self.beat.tag),
            reads.beat_last.eq(self.beat.last),
        ]
        noted = Signal()
        beat = Signal(read_beat_layout(config))
        row_last = Signal()
        m.d.comb += row_last.eq(beat.last & reads.note.row_last)
        m.d.sync += [
            noted.eq(self.beat_valid),
            beat.eq(self.beat),
            buffer.put.eq(noted),
            buffer.position.eq(reads.note.start + reads.count),
            buffer.beat.data.eq(beat.data),
            buffer.beat.last.eq(row_last),
            buffer.beat.bytes.eq(Mux(row_last, reads.note.last_bytes, config.bus_bytes)),
            self.fault.valid.eq(0),
            self.fault.payload.eq(0),
        ]
        with m.If(noted & axi.failed(beat.response)):
            m.d.sync += [
                self.fault.valid.eq(1),
                self.fault.payload.code.eq(axi.read_fault(beat.response)),
                self.fault.payload.unit.eq(NO_UNIT),
                self.fault.payload.stream.eq(reads.note.entry),
                self.fault.payload.address.eq(reads.note.address),
            ]
        return m
