"""Lines of a memory stream: asked for ahead of use, kept while elements of them are read."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.config import LINE_BYTES, VALUE_WIDTH_BITS, AcceleratorConfig
from ember_hw.rtl.fifos import StreamFifo
from ember_hw.rtl.layouts import line_address_bits
from ember_hw.rtl.wide_memory import WideMemory

#: Lines that may wait for a place.
QUEUE_LINES = 16

#: Cycles from `offset` to `data`.
READ_CYCLES = 2

#: Bytes of `data`.
HALF_BYTES = 4

# The longest element, and its bits that are all alike if it fits a value.
_WORD_BITS = 64
_SIGN_BITS = _WORD_BITS - VALUE_WIDTH_BITS + 1


class LineStore(wiring.Component):
    """Holds up to `config.lines_per_stream` lines of one stream, in order.

    A line's place is reserved before it is asked for, so returned words always have one. The oldest
    line is the current one; `advance` makes the next one current and frees its place. A line may
    become current before all of it has arrived.

    Lines of the input queue are taken whenever there is a place, and those that the stream wants
    are not asked for: the first line that came is the first that was wanted.

    Members
    -------
    wanted, wanted_valid : in; level : out
        Lines to ask for. The caller keeps `level`, the lines waiting here, below `QUEUE_LINES`.
    from_queue : in
        Lines come from the input queue. Constant while lines are wanted; a change empties
        the store.
    request : stream, out
        Lines to read, one a cycle, while places are free.
    room : out
        A word of the input queue may come in this cycle: only with `from_queue`.
    word_valid, word : in
        Words of the lines, in order.
    offset, new : in; available : out
        A byte within the current line or, if `new`, within the line after it, and whether it has
        arrived.
    advance : in
        Make the next line current; only while `new` and `available`.
    data, fits : out
        `READ_CYCLES` later the `HALF_BYTES` that hold the byte at `offset` of the line that is
        current after `advance`, and whether the 8 bytes there are a value of 32 bits, signed.
    whole : out
        All of the current line has arrived.
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        super().__init__(
            {
                "wanted": In(line_address_bits(config)),
                "wanted_valid": In(1),
                "level": Out(range(QUEUE_LINES + 1)),
                "from_queue": In(1),
                "request": Out(stream.Signature(line_address_bits(config))),
                "room": Out(1),
                "word_valid": In(1),
                "word": In(config.index_bits),
                "offset": In(range(LINE_BYTES)),
                "new": In(1),
                "available": Out(1),
                "advance": In(1),
                "whole": Out(1),
                "data": Out(8 * HALF_BYTES),
                "fits": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        lines, words = config.lines_per_stream, config.line_words

        # Free places: one goes with a line that is asked for, or with the first word that the queue
        # brings, and comes back when the line after it becomes current.
        m.submodules.queue = queue = StreamFifo(
            shape=line_address_bits(config), depth_entries=QUEUE_LINES
        )
        free = Signal(range(lines + 1), init=lines)
        some_free = Signal(init=1)
        fill = Signal(range(max(2, lines * words)))
        line_begins = Signal()
        line_ends = Signal()
        taken = Signal()
        held = Signal()
        freed = Signal()
        was_from_queue = Signal()
        word_in_line = fill[: (words - 1).bit_length()]
        m.d.comb += [
            line_begins.eq(word_in_line == 0),
            line_ends.eq(word_in_line == words - 1),
            queue.i.payload.eq(self.wanted),
            queue.i.valid.eq(self.wanted_valid),
            self.level.eq(queue.level),
            self.request.payload.eq(queue.o.payload),
            self.request.valid.eq(queue.o.valid & some_free & ~self.from_queue),
            queue.o.ready.eq((self.request.ready & some_free) | self.from_queue),
            self.room.eq(self.from_queue & was_from_queue & (some_free | ~line_begins)),
            freed.eq(self.advance & held),
        ]
        with m.If(self.from_queue):
            m.d.comb += taken.eq(self.word_valid & line_begins)
        with m.Else():
            m.d.comb += taken.eq(self.request.valid & self.request.ready)
        with m.If(taken & ~freed):
            m.d.sync += [free.eq(free - 1), some_free.eq(free != 1)]
        with m.Elif(freed & ~taken):
            m.d.sync += [free.eq(free + 1), some_free.eq(1)]
        with m.If(self.advance):
            m.d.sync += held.eq(1)

        # Lines that have arrived and are not current yet; -1: the current one has not. Words of the
        # first that has not are counted by `fill`.
        waiting = Signal(range(-1, lines + 1))
        arrived = Signal()
        came = Signal()
        m.d.comb += [
            arrived.eq(self.word_valid & line_ends),
            came.eq(self.offset[(config.index_bits // 8 - 1).bit_length() :] < word_in_line),
            self.whole.eq(waiting >= 0),
            self.available.eq(
                Mux(self.new, (waiting > 0) | ((waiting == 0) & came), came | self.whole)
            ),
        ]
        with m.If(self.word_valid):
            m.d.sync += fill.eq(fill + 1)
        with m.If(arrived & ~self.advance):
            m.d.sync += waiting.eq(waiting + 1)
        with m.Elif(self.advance & ~arrived):
            m.d.sync += waiting.eq(waiting - 1)

        # A line is current at the earliest in the cycle after its last word was written.
        current = Signal(range(lines), init=lines - 1)
        chosen = Signal.like(current)
        # Each half carries its word's `fits`: the memory blocks have bits to spare.
        halves = []
        for i in range(config.index_bits // _WORD_BITS):
            word = self.word.word_select(i, _WORD_BITS)
            sign = word[-_SIGN_BITS:]
            fits = sign.all() | ~sign.any()
            halves += [Cat(word[: 8 * HALF_BYTES], fits), Cat(word[8 * HALF_BYTES :], fits)]
        m.submodules.words = store = WideMemory(
            word_bits=8 * HALF_BYTES + 1,
            group_words=len(halves),
            groups=lines * words,
        )
        m.d.comb += [
            chosen.eq(current + self.advance),
            store.write.eq(self.word_valid),
            store.write_group.eq(fill),
            store.write_data.eq(Cat(*halves)),
            store.read.eq(1),
            store.read_word.eq(Cat(self.offset[(HALF_BYTES - 1).bit_length() :], chosen)),
        ]
        m.d.sync += [
            current.eq(chosen),
            Cat(self.data, self.fits).eq(store.read_data),
        ]

        # Lines of the input queue that nobody read are not those of memory: with another source,
        # which programs choose at rest, the store is empty.
        m.d.sync += was_from_queue.eq(self.from_queue)
        with m.If(was_from_queue != self.from_queue):
            m.d.sync += [
                free.eq(lines),
                some_free.eq(1),
                fill.eq(0),
                held.eq(0),
                waiting.eq(0),
                current.eq(lines - 1),
            ]
        return m
