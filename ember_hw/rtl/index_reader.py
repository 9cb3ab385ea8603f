"""Reads index lines for all memory streams, and hands each stream the words of its own."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw import isa
from ember_hw.config import LINE_BYTES, AcceleratorConfig
from ember_hw.rtl import axi
from ember_hw.rtl.faults import FaultSignature
from ember_hw.rtl.index_port import IndexPort
from ember_hw.rtl.layouts import (
    beat_tag_bits,
    index_beat_layout,
    index_tags,
    index_word_layout,
    line_address_bits,
    line_port_bits,
    lines_reorder,
    port_of,
    read_request_layout,
    stream_bits,
    streams,
)
from ember_hw.rtl.line_queue import LineQueue
from ember_hw.rtl.read_table import ReadTable
from ember_hw.rtl.reorder_buffer import ReorderBuffer


class IndexReader(wiring.Component):
    """Turns the streams' lines into reads, and beats into words for the line stores.

    One line asked for a cycle, the outer unit's first; one word handed out a cycle. Each line has
    its place in a line store before it is asked for, and the queues here hold as many, so a
    returned beat is always taken. Words of a stream keep the order in which it asked for its lines:
    where lines go through several ports, a reorder buffer restores it.

    A word of the input queue is taken in a cycle without one from memory, if its stream's line
    store has a place.

    Members
    -------
    lines : streams, in
        Line numbers, stream ``unit * streams_per_unit + index``.
    hints, room : in
        The streams' hints, and whether their line stores take a word of the input queue.
    request : stream, out
    beat_valid, beat : in
        Returned beats.
    queue : stream, in
        With `config.input_queue`: words, and the stream that each is for.
    word_valid, word : out
        A word of a line, and for each stream whether it is its own.
    fault : out
        Memory answered with an error.
    cleared : out
        Ready after a reset.
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        number = streams(config)
        members = {
            "lines": In(stream.Signature(line_address_bits(config))).array(number),
            "hints": In(isa.Hint).array(number),
            "room": In(number),
            "request": Out(stream.Signature(read_request_layout(config))),
            "beat_valid": In(1),
            "beat": In(index_beat_layout(config)),
            "word_valid": Out(number),
            "word": Out(config.index_bits),
            "fault": Out(FaultSignature(config)),
            "cleared": Out(1),
        }
        if config.input_queue:
            members["queue"] = In(stream.Signature(index_word_layout(config)))
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.port = port = IndexPort(config=config)
        for number in range(streams(config)):
            wiring.connect(m, wiring.flipped(self.lines[number]), port.lines[number])
            m.d.comb += port.hints[number].eq(self.hints[number])
        line = port.request.payload
        m.d.comb += [
            self.request.payload.address.eq(line.line << (LINE_BYTES - 1).bit_length()),
            self.request.payload.length.eq(config.line_beats - 1),
            self.request.payload.hint.eq(line.hint),
        ]
        if lines_reorder(config):
            beats = self._read_in_any_order(m, port.request)
        else:
            beats = self._read_in_order(m, port.request)
        word_valid, word = self._words(m, *beats)
        self._hand_out(m, word_valid, word)
        return m

    def _read_in_order(self, m: Module, line):
        """Give each stream a tag. Return the beats: valid, data, stream."""
        config = self.config
        m.submodules.reads = reads = ReadTable(
            tags=index_tags(config),
            reads_per_tag=config.lines_per_stream,
            read_beats=1,
            note=line_address_bits(config),
        )
        self._ask(m, line, reads, line.payload.stream, 1)
        m.d.comb += reads.ask_note.eq(line.payload.line)
        tag = Signal(stream_bits(config))
        m.d.sync += tag.eq(self.beat.tag)
        self._report(m, reads.note, tag)
        return self.beat_valid, self.beat.data, self.beat.tag

    def _read_in_any_order(self, m: Module, line):
        """Give each line a tag in turn and places in a reorder buffer. Return its beats."""
        config = self.config
        lines = 1 << (streams(config) * config.lines_per_stream - 1).bit_length()
        beat_layout = data.StructLayout(
            {"data": line_port_bits(config), "stream": stream_bits(config)}
        )
        m.submodules.buffer = buffer = ReorderBuffer(
            shape=beat_layout, places=lines * config.line_beats, burst_beats=config.line_beats
        )
        m.submodules.reads = reads = ReadTable(
            tags=1 << beat_tag_bits(config),
            reads_per_tag=max(1, lines // index_tags(config)),
            read_beats=config.line_beats,
            note=data.StructLayout(
                {
                    "start": len(buffer.start),
                    "stream": stream_bits(config),
                    "line": line_address_bits(config),
                }
            ),
        )
        tag = Signal(range(index_tags(config)))
        self._ask(m, line, reads, tag, buffer.fits & buffer.cleared)
        with m.If(reads.ask):
            m.d.sync += tag.eq(tag + 1)
        m.d.comb += [
            buffer.length.eq(config.line_beats - 1),
            buffer.take.eq(reads.ask),
            reads.ask_note.start.eq(buffer.start),
            reads.ask_note.stream.eq(line.payload.stream),
            reads.ask_note.line.eq(line.payload.line),
        ]
        noted = Signal()
        beat_data = Signal(line_port_bits(config))
        m.d.sync += [
            noted.eq(self.beat_valid),
            beat_data.eq(self.beat.data),
            buffer.put.eq(noted),
            buffer.position.eq(reads.note.start + reads.count),
            buffer.beat.data.eq(beat_data),
            buffer.beat.stream.eq(reads.note.stream),
        ]
        self._report(m, reads.note.line, reads.note.stream)

        # A beat leaves when the words of the one before it have.
        words = line_port_bits(config) // config.index_bits
        words_left = Signal(range(words))
        leaves = Signal()
        m.d.comb += [
            buffer.o.ready.eq(words_left == 0),
            leaves.eq(buffer.o.valid & buffer.o.ready),
        ]
        with m.If(leaves):
            m.d.sync += words_left.eq(words - 1)
        with m.Elif(words_left != 0):
            m.d.sync += words_left.eq(words_left - 1)
        return leaves, buffer.o.payload.data, buffer.o.payload.stream

    def _ask(self, m: Module, line, reads: ReadTable, tag, may_ask):
        """Ask for a line and note it."""
        may_ask = may_ask & reads.cleared
        address = self.request.payload.address
        m.d.comb += [
            self.cleared.eq(reads.cleared),
            self.request.valid.eq(line.valid & may_ask),
            line.ready.eq(self.request.ready & may_ask),
            self.request.payload.tag.eq(tag),
            reads.ask.eq(self.request.valid & self.request.ready),
            reads.ask_tag.eq(Cat(self.request.payload.tag, port_of(address, self.config))),
            reads.beat.eq(self.beat_valid),
            reads.beat_tag.eq(self.beat.tag),
            reads.beat_last.eq(self.beat.last),
        ]

    def _report(self, m: Module, line, number):
        """Report a beat that failed, a cycle after it came: `line` and `number` are its read's."""
        failed = Signal()
        response = Signal(axi.Response)
        per_unit = self.config.streams_per_unit
        units = Array(i // per_unit for i in range(streams(self.config)))
        indices = Array(i % per_unit for i in range(streams(self.config)))
        m.d.sync += [
            failed.eq(self.beat_valid & axi.failed(self.beat.response)),
            response.eq(self.beat.response),
            self.fault.valid.eq(0),
            self.fault.payload.eq(0),
        ]
        with m.If(failed):
            m.d.sync += [
                self.fault.valid.eq(1),
                self.fault.payload.code.eq(axi.read_fault(response)),
                self.fault.payload.unit.eq(units[number]),
                self.fault.payload.stream.eq(indices[number]),
                self.fault.payload.address.eq(line << (LINE_BYTES - 1).bit_length()),
            ]

    def _words(self, m: Module, beat_valid, beat, beat_stream):
        """Cut beats into words. Return whose a word is, one bit a stream, and the word."""
        config = self.config
        number = streams(config)
        if line_port_bits(config) == config.index_bits:
            word_valid = Signal(number)
            for i in range(number):
                m.d.comb += word_valid[i].eq(beat_valid & (beat_stream == i))
            return word_valid, beat
        waiting = 1 if lines_reorder(config) else number * config.lines_per_stream
        m.submodules.queue = queue = LineQueue(
            beat_bits=line_port_bits(config),
            word_bits=config.index_bits,
            depth_beats=max(2, 1 << (waiting * config.line_beats - 1).bit_length()),
            streams=number,
        )
        m.d.comb += [
            queue.beat_valid.eq(beat_valid),
            queue.beat.eq(beat),
            queue.beat_stream.eq(beat_stream),
        ]
        return queue.word_valid, queue.word

    def _hand_out(self, m: Module, word_valid, word):
        """Hand out words of memory, and in the cycles between those of the input queue."""
        if not self.config.input_queue:
            m.d.comb += [self.word_valid.eq(word_valid), self.word.eq(word)]
            return
        queue = self.queue
        from_memory = Signal()
        m.d.comb += [
            from_memory.eq(word_valid.any()),
            queue.ready.eq(~from_memory & self.room.bit_select(queue.payload.stream, 1)),
            self.word.eq(Mux(from_memory, word, queue.payload.data)),
        ]
        for i in range(streams(self.config)):
            moves = queue.valid & queue.ready & (queue.payload.stream == i)
            m.d.comb += self.word_valid[i].eq(word_valid[i] | moves)
