"""From the root token to the queues: everything that a fault resets."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.config import AcceleratorConfig
from ember_hw.rtl.counters import HIGH_WATER, LEVEL_BITS
from ember_hw.rtl.faults import FaultSignature
from ember_hw.rtl.fifos import StreamFifo
from ember_hw.rtl.gather_engine import GatherEngine
from ember_hw.rtl.index_reader import IndexReader
from ember_hw.rtl.issue import Issue
from ember_hw.rtl.layouts import (
    bundle_layout,
    index_beat_layout,
    index_word_layout,
    read_beat_layout,
    read_request_layout,
    record_layout,
    row_beat_layout,
    streams,
    token_layout,
)
from ember_hw.rtl.microcode_memory import record_name, register_paths
from ember_hw.rtl.row_address import RowAddress
from ember_hw.rtl.traversal_unit import TraversalUnit

# Rows are counted modulo this many bits; rows in flight are far fewer than half of that.
_ROW_COUNT_BITS = 24


class Datapath(wiring.Component):
    """The traversal units in a chain, the issue stage, the gather engine and the queues.

    Members
    -------
    <record>, row_events : in
        As `MicrocodeMemory` gives them.
    row_select : out; row_record : in
        A row entry, and its record.
    root : stream, in
        One token a request; taken at once while fewer than `config.request_entries` are in flight.
    index_request, row_request : streams, out
    index_valid, index_beat, row_valid, row_beat : in
        The memory ports.
    index_queue : stream, in
        With `config.input_queue`.
    bundle, row : streams, out
        The control queue and the data queue.
    queue_reset : in
        Both queues show nothing.
    faults : out
    cleared : out
        Ready after a reset.
    ended : out
        High for a cycle when a request's last bundle and last row have been delivered.
    moves : out
        A token, bundle or beat moved.
    blocked_execute, blocked_outstanding, blocked_reorder, lines_asked, rows_asked, row_bytes, \
    levels : out
        For the counters.
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        records = {
            record_name(path): In(record_layout(path, config)) for path in register_paths(config)
        }
        queue = (
            {"index_queue": In(stream.Signature(index_word_layout(config)))}
            if config.input_queue
            else {}
        )
        super().__init__(
            {
                **records,
                **queue,
                "row_events": In(config.events).array(config.row_entries),
                "row_select": Out(range(config.row_entries)),
                "row_record": In(record_layout("row0", config)),
                "root": In(stream.Signature(token_layout(config))),
                "index_request": Out(stream.Signature(read_request_layout(config))),
                "row_request": Out(stream.Signature(read_request_layout(config))),
                "index_valid": In(1),
                "index_beat": In(index_beat_layout(config)),
                "row_valid": In(1),
                "row_beat": In(read_beat_layout(config)),
                "bundle": Out(stream.Signature(bundle_layout(config))),
                "row": Out(stream.Signature(row_beat_layout(config))),
                "queue_reset": In(1),
                "faults": Out(FaultSignature(config)).array(config.traversal_units + 3),
                "cleared": Out(1),
                "ended": Out(1),
                "moves": Out(1),
                "blocked_execute": Out(1),
                "blocked_outstanding": Out(1),
                "blocked_reorder": Out(1),
                "lines_asked": Out(streams(config)),
                "rows_asked": Out(config.row_entries),
                "row_bytes": Out(17),
                "levels": Out(LEVEL_BITS).array(len(HIGH_WATER)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.index_reader = index_reader = IndexReader(config=config)
        if config.input_queue:
            wiring.connect(m, wiring.flipped(self.index_queue), index_reader.queue)
        m.submodules.issue = issue = Issue(config=config)
        m.submodules.row_address = row_address = RowAddress(config=config)
        m.submodules.gather = gather = GatherEngine(config=config)
        m.submodules.bundles = bundles = StreamFifo(
            shape=bundle_layout(config), depth_entries=config.bundle_entries
        )

        # Requests, and the chain of units.
        m.submodules.requests = requests = StreamFifo(
            shape=token_layout(config), depth_entries=max(2, config.request_entries)
        )
        wiring.connect(m, wiring.flipped(self.root), requests.i)
        faults = [index_reader.fault, gather.fault]
        whole = []
        tokens = requests.o
        for level in range(config.traversal_units):
            unit = TraversalUnit(config=config, level=level)
            m.submodules[f"unit{level}"] = unit
            tokens = self._through(m, level, tokens, unit)
            faults.append(unit.fault)
            whole.append(unit.whole)
            first_port = level * config.streams_per_unit
            m.d.comb += [
                unit.record.eq(getattr(self, f"unit{level}")),
                unit.word_valid.eq(index_reader.word_valid[first_port:]),
                unit.word.eq(index_reader.word),
                index_reader.room[first_port : first_port + config.streams_per_unit].eq(unit.room),
            ]
            for s in range(config.streams_per_unit):
                line = index_reader.lines[first_port + s]
                wiring.connect(m, unit.requests[s], line)
                m.d.comb += [
                    unit.streams[s].eq(getattr(self, f"unit{level}_stream{s}")),
                    index_reader.hints[first_port + s].eq(unit.streams[s].hint),
                    self.lines_asked[first_port + s].eq(line.valid & line.ready),
                ]
            with m.If(unit.record.enable):  # the innermost unit that the program uses
                m.d.comb += self.levels[3].eq(unit.waiting)

        # Issue, rows, queues.
        wiring.connect(m, tokens, issue.token)
        wiring.connect(m, issue.bundle, bundles.i)
        wiring.connect(m, issue.row, row_address.row)
        wiring.connect(m, row_address.descriptor, gather.descriptor)
        wiring.connect(m, index_reader.request, wiring.flipped(self.index_request))
        wiring.connect(m, gather.request, wiring.flipped(self.row_request))
        faults.append(row_address.fault)
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
            gather.beat.eq(self.row_beat),
            index_reader.beat_valid.eq(self.index_valid),
            index_reader.beat.eq(self.index_beat),
            self.cleared.eq(gather.cleared & index_reader.cleared),
        ]
        for selected, events in zip(issue.row_events, self.row_events, strict=True):
            m.d.comb += selected.eq(events)
        m.d.comb += [self.row_select.eq(row_address.entry), row_address.record.eq(self.row_record)]
        self._notice_ends(m, issue, Cat(*whole).all())

        bundle_waits = bundles.i.valid & ~bundles.i.ready
        row_waits = self.row.valid & ~self.row.ready
        m.d.comb += [
            self.moves.eq(
                (self.bundle.valid & self.bundle.ready)
                | (self.row.valid & self.row.ready)
                | (issue.token.valid & issue.token.ready)
            ),
            self.blocked_execute.eq(bundle_waits | row_waits),
            self.blocked_outstanding.eq(gather.blocked_outstanding),
            self.blocked_reorder.eq(gather.blocked_reorder),
            self.rows_asked.eq(row_address.asked),
            self.row_bytes.eq(row_address.bytes_asked),
            self.levels[0].eq(bundles.level),
            self.levels[1].eq(gather.reserved),
            self.levels[2].eq(gather.outstanding),
        ]
        return m

    def _through(self, m: Module, level: int, tokens, unit: TraversalUnit):
        """Lead tokens through a unit, or past one that the program does not use."""
        out = stream.Signature(token_layout(self.config)).create(path=(f"tokens{level}",))
        enable = unit.record.enable
        m.d.comb += [
            unit.parent.payload.eq(tokens.payload),
            unit.parent.valid.eq(tokens.valid & enable),
            unit.token.ready.eq(out.ready),
            tokens.ready.eq(Mux(enable, unit.parent.ready, out.ready)),
            out.valid.eq(Mux(enable, unit.token.valid, tokens.valid)),
            out.payload.eq(Mux(enable, unit.token.payload.as_value(), tokens.payload.as_value())),
        ]
        return out

    def _notice_ends(self, m: Module, issue: Issue, whole) -> None:
        """Notice when a request's last bundle and all its rows have been delivered.

        When its last token has been issued the number of rows so far is noted; the request has its
        rows when as many have been delivered. The last one that is here also waits for the rest of
        its lines, so that nothing of it comes when the unit is at rest.
        """
        m.submodules.marks = marks = StreamFifo(
            shape=_ROW_COUNT_BITS, depth_entries=max(2, self.config.request_entries)
        )
        issued = Signal(_ROW_COUNT_BITS)
        delivered = Signal(_ROW_COUNT_BITS)
        behind = Signal(signed(_ROW_COUNT_BITS))
        bundles_ended = Signal(range(self.config.request_entries + 1))
        here = Signal(range(self.config.request_entries + 1))
        settled = Signal()
        row_opens = issue.row.valid & issue.row.ready
        row_closes = self.row.valid & self.row.ready & self.row.payload.last
        bundle_closes = self.bundle.valid & self.bundle.ready & self.bundle.payload.last
        m.d.sync += [
            issued.eq(issued + row_opens),
            delivered.eq(delivered + row_closes),
            marks.i.valid.eq(issue.finished),
            bundles_ended.eq(bundles_ended + bundle_closes - self.ended),
            here.eq(here + self.root.valid - self.ended),
            settled.eq(whole | ((here > 1) & ~self.ended)),
        ]
        m.d.comb += [
            marks.i.payload.eq(issued),
            behind.eq(delivered - marks.o.payload),
            self.ended.eq(marks.o.valid & (bundles_ended != 0) & (behind >= 0) & settled),
            marks.o.ready.eq(self.ended),
        ]
