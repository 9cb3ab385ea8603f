"""From the root token to the queues: everything that a fault resets."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw import isa
from ember_hw.config import AcceleratorConfig
from ember_hw.rtl.control import FaultSignature
from ember_hw.rtl.counters import HIGH_WATER
from ember_hw.rtl.fifos import StreamFifo
from ember_hw.rtl.gather_engine import GatherEngine
from ember_hw.rtl.index_port import IndexPort
from ember_hw.rtl.issue import Issue
from ember_hw.rtl.layouts import (
    bundle_layout,
    read_beat_layout,
    read_request_layout,
    record_layout,
    row_beat_layout,
    token_layout,
)
from ember_hw.rtl.microcode_memory import record_name
from ember_hw.rtl.row_address import RowAddress
from ember_hw.rtl.traversal_unit import TraversalUnit


class Datapath(wiring.Component):
    """The traversal units in a chain, the issue stage, the gather engine and the queues.

    Members
    -------
    <record> : in
        Each record of `isa.layouts`, ``.`` in its path being ``_``.
    root : stream, in
        One token a program.
    index_request, row_request : streams, out; index_valid, row_valid, beat : in
        The memory port.
    bundle, row : streams, out
        The control queue and the data queue.
    queue_reset : in
        Both queues show nothing.
    faults : out
    cleared : out
        Ready after a reset.
    ended : out
        High for a cycle when the program's last bundle and last row have been delivered.
    blocked_execute, blocked_outstanding, blocked_reorder, row_asked, row_bytes, levels : out
        For the counters.
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        fault_ports = config.traversal_units * TraversalUnit.fault_ports(config) + 2
        records = {
            record_name(path): In(record_layout(path, config)) for path in isa.layouts(config)
        }
        super().__init__(
            {
                **records,
                "root": In(stream.Signature(token_layout(config))),
                "index_request": Out(stream.Signature(read_request_layout(config))),
                "row_request": Out(stream.Signature(read_request_layout(config))),
                "index_valid": In(1),
                "row_valid": In(1),
                "beat": In(read_beat_layout(config)),
                "bundle": Out(stream.Signature(bundle_layout(config))),
                "row": Out(stream.Signature(row_beat_layout(config))),
                "queue_reset": In(1),
                "faults": Out(FaultSignature(config)).array(fault_ports),
                "cleared": Out(1),
                "ended": Out(1),
                "blocked_execute": Out(1),
                "blocked_outstanding": Out(1),
                "blocked_reorder": Out(1),
                "row_asked": Out(1),
                "row_bytes": Out(17),
                "levels": Out(16).array(len(HIGH_WATER)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.index_port = index_port = IndexPort(config=config)
        m.submodules.issue = issue = Issue(config=config)
        m.submodules.row_address = row_address = RowAddress(config=config)
        m.submodules.gather = gather = GatherEngine(config=config)
        m.submodules.bundles = bundles = StreamFifo(
            shape=bundle_layout(config), depth_entries=config.bundle_entries
        )

        # The chain of units.
        faults = []
        tokens = wiring.flipped(self.root)
        for level in range(config.traversal_units):
            unit = TraversalUnit(config=config, level=level)
            m.submodules[f"unit{level}"] = unit
            wiring.connect(m, tokens, unit.parent)
            tokens = unit.token
            faults += list(unit.faults)
            m.d.comb += [
                unit.record.eq(getattr(self, f"unit{level}")),
                unit.beat_data.eq(self.beat.data),
                unit.beat_last.eq(self.beat.last),
                unit.beat_response.eq(self.beat.response),
            ]
            for s in range(config.streams_per_unit):
                port = level * config.streams_per_unit + s
                wiring.connect(m, unit.requests[s], index_port.lines[port])
                m.d.comb += [
                    unit.streams[s].eq(getattr(self, f"unit{level}_stream{s}")),
                    unit.beat_valid[s].eq(self.index_valid & (self.beat.tag == port)),
                    index_port.hints[port].eq(unit.streams[s].hint),
                ]
            with m.If(unit.record.enable):  # the innermost unit that the program uses
                m.d.comb += self.levels[3].eq(unit.waiting)

        # Issue, rows, queues.
        wiring.connect(m, tokens, issue.token)
        wiring.connect(m, issue.bundle, bundles.i)
        wiring.connect(m, issue.row, row_address.row)
        wiring.connect(m, row_address.descriptor, gather.descriptor)
        wiring.connect(m, index_port.request, wiring.flipped(self.index_request))
        wiring.connect(m, gather.request, wiring.flipped(self.row_request))
        faults += [row_address.fault, gather.fault]
        for reported, seen in zip(faults, self.faults, strict=True):
            wiring.connect(m, reported, wiring.flipped(seen))
        for queue, port in ((bundles.o, self.bundle), (gather.row, self.row)):
            m.d.comb += [
                port.payload.eq(queue.payload),
                port.valid.eq(queue.valid & ~self.queue_reset),
                queue.ready.eq(port.ready & ~self.queue_reset),
            ]
        m.d.comb += [
            issue.issue.eq(self.issue),
            gather.limit.eq(self.header.outstanding_reads),
            gather.beat_valid.eq(self.row_valid),
            gather.beat.eq(self.beat),
            self.cleared.eq(gather.cleared),
        ]
        for entry in range(config.row_entries):
            record = getattr(self, f"row{entry}")
            m.d.comb += [issue.rows[entry].eq(record), row_address.rows[entry].eq(record)]

        # The end: the last token has been issued, and all that it and those before it asked for was
        # delivered.
        rows_open = Signal(16)
        issued = Signal()
        last_bundle_left = Signal()
        row_opens = issue.row.valid & issue.row.ready
        row_closes = self.row.valid & self.row.ready & self.row.payload.last
        bundle_closes = self.bundle.valid & self.bundle.ready & self.bundle.payload.last
        m.d.sync += rows_open.eq(rows_open + row_opens - row_closes)
        m.d.comb += self.ended.eq(issued & last_bundle_left & (rows_open == 0))
        with m.If(self.ended):
            m.d.sync += [issued.eq(0), last_bundle_left.eq(0)]
        with m.Else():
            with m.If(issue.finished):
                m.d.sync += issued.eq(1)
            with m.If(bundle_closes):
                m.d.sync += last_bundle_left.eq(1)

        bundle_waits = bundles.i.valid & ~bundles.i.ready
        row_waits = self.row.valid & ~self.row.ready
        m.d.comb += [
            self.blocked_execute.eq(bundle_waits | row_waits),
            self.blocked_outstanding.eq(gather.blocked_outstanding),
            self.blocked_reorder.eq(gather.blocked_reorder),
            self.row_asked.eq(row_address.rows_asked),
            self.row_bytes.eq(row_address.bytes_asked),
            self.levels[0].eq(bundles.level),
            self.levels[1].eq(gather.reserved),
            self.levels[2].eq(gather.outstanding),
        ]
        return m
