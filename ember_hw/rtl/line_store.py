"""Lines of a memory stream: asked for ahead of use, kept while elements of them are read."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ember_hw.config import LINE_BYTES, AcceleratorConfig
from ember_hw.rtl import axi
from ember_hw.rtl.control import FaultSignature
from ember_hw.rtl.fifos import StreamFifo
from ember_hw.rtl.layouts import line_address_bits

#: Lines that may wait for a place.
QUEUE_LINES = 16

#: Cycles from `offset` to `data`.
READ_CYCLES = 2


class LineStore(wiring.Component):
    """Holds up to `config.lines_per_stream` lines of one stream, in the order they were asked for.

    A line's place is reserved before it is asked for, so returned beats always have one. The oldest
    line is the current one; `advance` makes the next one current and frees its place.

    Parameters
    ----------
    config : AcceleratorConfig
    level, index : int
        Unit and number of the stream, for faults.

    Members
    -------
    wanted, wanted_valid : in; level : out
        Lines to ask for. The caller keeps `level`, the lines waiting here, below `QUEUE_LINES`.
    request : stream, out
        Lines to read, one a cycle, while places are free.
    beat_valid, beat_data, beat_last, beat_response : in
        Beats of the lines, in order.
    available : out
        A line after the current one has arrived.
    advance : in
        Make it current.
    offset : in; data : out
        Byte within the line that is current after this cycle's `advance`; `READ_CYCLES` later the
        beat that holds it.
    fault : out
        Memory answered with an error.
    """

    def __init__(self, *, config: AcceleratorConfig, level: int, index: int):
        self.config = config
        self.unit = level
        self.index = index
        super().__init__(
            {
                "wanted": In(line_address_bits(config)),
                "wanted_valid": In(1),
                "level": Out(range(QUEUE_LINES + 1)),
                "request": Out(stream.Signature(line_address_bits(config))),
                "beat_valid": In(1),
                "beat_data": In(config.data_width_bits),
                "beat_last": In(1),
                "beat_response": In(axi.Response),
                "available": Out(1),
                "advance": In(1),
                "offset": In(range(LINE_BYTES)),
                "data": Out(config.data_width_bits),
                "fault": Out(FaultSignature(config)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        lines, beats = config.lines_per_stream, config.line_beats

        m.submodules.queue = queue = StreamFifo(
            shape=line_address_bits(config), depth_entries=QUEUE_LINES
        )
        free = Signal(range(lines + 1), init=lines)
        asked = Signal()
        held = Signal()
        freed = Signal()
        m.d.comb += [
            queue.i.payload.eq(self.wanted),
            queue.i.valid.eq(self.wanted_valid),
            self.level.eq(queue.level),
            self.request.payload.eq(queue.o.payload),
            self.request.valid.eq(queue.o.valid & (free != 0)),
            queue.o.ready.eq(self.request.ready & (free != 0)),
            asked.eq(self.request.valid & self.request.ready),
            freed.eq(self.advance & held),
        ]
        with m.If(self.advance):
            m.d.sync += held.eq(1)
        m.d.sync += free.eq(free - asked + freed)

        # Addresses of lines in flight, only to name the one that failed.
        m.submodules.addresses = addresses = Memory(
            shape=line_address_bits(config), depth=lines, init=[]
        )
        address_write, address_read = addresses.write_port(), addresses.read_port(domain="comb")
        ask_index = Signal(range(lines))
        m.d.comb += [
            address_write.addr.eq(ask_index),
            address_write.data.eq(self.request.payload),
            address_write.en.eq(asked),
        ]
        with m.If(asked):
            m.d.sync += ask_index.eq(ask_index + 1)

        m.submodules.beats = store = Memory(
            shape=config.data_width_bits, depth=max(2, lines * beats), init=[]
        )
        store_write, store_read = store.write_port(), store.read_port()
        fill = Signal(range(lines * beats))
        arrived = Signal()
        m.d.comb += [
            store_write.addr.eq(fill),
            store_write.data.eq(self.beat_data),
            store_write.en.eq(self.beat_valid),
            arrived.eq(self.beat_valid & self.beat_last),
            address_read.addr.eq(fill[(beats - 1).bit_length() :]),
        ]
        with m.If(self.beat_valid):
            m.d.sync += fill.eq(fill + 1)
        m.d.sync += [
            self.fault.valid.eq(self.beat_valid & axi.failed(self.beat_response)),
            self.fault.payload.code.eq(axi.read_fault(self.beat_response)),
            self.fault.payload.unit.eq(self.unit),
            self.fault.payload.stream.eq(self.index),
            self.fault.payload.address.eq(address_read.data << (LINE_BYTES - 1).bit_length()),
        ]

        # Lines that have arrived and are not current yet. The beat is readable the cycle after it
        # was written.
        waiting = Signal(range(lines + 1))
        m.d.sync += waiting.eq(waiting + arrived - self.advance)
        m.d.comb += self.available.eq(waiting != 0)

        current = Signal(range(lines), init=lines - 1)
        chosen = Signal.like(current)
        m.d.comb += chosen.eq(current + self.advance)
        m.d.sync += current.eq(chosen)
        beat_of_line = self.offset[(config.bus_bytes - 1).bit_length() :]
        m.d.comb += [store_read.addr.eq(Cat(beat_of_line, chosen)), store_read.en.eq(1)]
        m.d.sync += self.data.eq(store_read.data)
        return m
