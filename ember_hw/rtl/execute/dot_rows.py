"""Keeps the rows that are summed across until their sums are done, several of each place."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ember_hw.config import AcceleratorConfig
from ember_hw.isa.dot import Chain, Place
from ember_hw.isa.reduce import ACCUMULATOR_BEATS
from ember_hw.rtl.execute.float_format import FLOAT32
from ember_hw.rtl.execute.reduce_layouts import header_layout, pass_layout
from ember_hw.rtl.fifos import NO_BYPASS, StreamFifo
from ember_hw.rtl.layouts import row_beat_layout

#: Most rows of a place, and most sums that are not done.
ROWS = 16
#: Beats of the pages of a place's memory; a row takes 1, 2, 4, 8 or all of them.
PAGE_BEATS = ACCUMULATOR_BEATS // ROWS

_BEAT_BITS = (ACCUMULATOR_BEATS - 1).bit_length()
_PAGE_BITS = (PAGE_BEATS - 1).bit_length()
# Numbers of rows are compared modulo twice as many as there can be.
_NUMBER_BITS = ROWS.bit_length()

#: The first page of the row of each place.
PAGES = data.StructLayout({place.name.lower(): range(ROWS) for place in Place})
_NUMBERS = data.StructLayout({place.name.lower(): _NUMBER_BITS for place in Place})


class DotRows(wiring.Component):
    """Puts rows into memory, a beat a cycle, and tells which of them make a result.

    Each place has a memory of `ACCUMULATOR_BEATS` beats: for 16 rows of up to 32 beats, 8 of up to
    64, 4 of up to 128, 2 of up to 256, or one. A row waits while the one that it would overwrite is
    needed by a sum that is not done, and what asks for a sum while 16 are not.

    Error: a row of another length, or a result of a place that never had a row, is a `misfit`; from
    then on nothing is taken until a reset.

    Parameters
    ----------
    config : AcceleratorConfig
        Gives the width.

    Members
    -------
    header : in
        Record ``reduce``; constant while there are passes.
    todo : stream, in
        Passes.
    differs : in
        The pass that is shown has another length than the one before.
    row : stream, in
        Beats of rows, fp32.
    waiting : stream, out
        Sums that may begin, by the pages of their rows, in order.
    done : in
        Strobe: the oldest sum is done.
    addresses : in
        Beat and page to read, of each place; combined already.
    beats : out
        What is there, a cycle later.
    misfit : out
        Strobe, see above.
    takes : out
        Strobe: a beat, or a pass without a row, was taken.
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        width_bits = config.data_width_bits
        super().__init__(
            {
                "header": In(header_layout(config)),
                "todo": In(stream.Signature(pass_layout(config))),
                "differs": In(1),
                "row": In(stream.Signature(row_beat_layout(config))),
                "waiting": Out(stream.Signature(PAGES)),
                "done": In(1),
                "addresses": In(_BEAT_BITS).array(len(Place)),
                "beats": Out(width_bits).array(len(Place)),
                "misfit": Out(1),
                "takes": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        current, row = self.todo.payload, self.row.payload
        m.submodules.begin = begin = StreamFifo(shape=PAGES, depth_entries=ROWS)
        m.submodules.end = end = StreamFifo(shape=_NUMBERS, depth_entries=ROWS)
        wiring.connect(m, begin.o, wiring.flipped(self.waiting))

        # Pages of a row, as a power of two.
        size = Signal(range((ROWS - 1).bit_length() + 1))
        above = _last_beat(self.header, self.config)[_PAGE_BITS:]
        m.d.sync += size.eq(0)
        for bit in range(len(above)):
            with m.If(above[bit]):
                m.d.sync += size.eq(bit + 1)
        capacity = Signal(range(ROWS + 1))
        m.d.comb += capacity.eq(Const(ROWS) >> size)

        # The number of the latest row of each place, and of the one that comes.
        latest = [Signal(_NUMBER_BITS, name=f"latest{p}") for p in range(len(Place))]
        filled = [Signal(name=f"filled{p}") for p in range(len(Place))]
        comes, has_room = Signal(len(Place)), Signal(len(Place))
        following = [Signal(_NUMBER_BITS, name=f"following{p}") for p in range(len(Place))]
        for place in Place:
            oldest = getattr(end.o.payload, place.name.lower())
            distance = Signal(_NUMBER_BITS, name=f"distance{int(place)}")
            m.d.comb += [
                following[place].eq(latest[place] + 1),
                distance.eq(following[place] - oldest),
                comes[place].eq(current.takes_row & (current.place == place)),
                has_room[place].eq(~end.o.valid | (distance < capacity)),
            ]

        # A beat, or a pass without a row.
        number = Signal(range(ACCUMULATOR_BEATS))
        is_last, halts = Signal(), Signal()
        takes = self.takes
        m.d.comb += [
            is_last.eq(~current.takes_row | (number == current.groups)),
            takes.eq(
                self.todo.valid
                & (self.row.valid | ~current.takes_row)
                & ((comes & ~has_room) == 0)
                & (end.i.ready | ~current.emits)
                & ~halts
            ),
            self.row.ready.eq(takes & current.takes_row),
            self.todo.ready.eq(takes & is_last),
        ]
        with m.If(takes):
            m.d.sync += number.eq(Mux(is_last, 0, number + 1))

        is_wrong, lacks = Signal(), Signal()
        uses = (1, self.header.second != Chain.NONE, self.header.third != Chain.NONE)
        row_differs = (row.last != is_last) | (is_last & (row.bytes != current.bytes))
        m.d.comb += [
            lacks.eq(Cat(u & ~f for u, f in zip(uses, filled, strict=True)) & ~comes != 0),
            is_wrong.eq(
                self.differs | (current.takes_row & row_differs) | (current.emits & is_last & lacks)
            ),
            self.misfit.eq(takes & is_wrong),
        ]
        with m.If(self.misfit):
            m.d.sync += halts.eq(1)

        # In memory.
        sign = 1 << (FLOAT32.width_bits - 1)
        signs = Const(
            sum(sign << (FLOAT32.width_bits * i) for i in range(self.config.beat_numbers))
        )
        numbers = row.data ^ (signs & current.negated.replicate(len(row.data)))
        for place in Place:
            memory = Memory(shape=len(row.data), depth=ACCUMULATOR_BEATS, init=[], attrs=NO_BYPASS)
            m.submodules[f"memory{int(place)}"] = memory
            write, read = memory.write_port(), memory.read_port()
            page = (following[place] << size)[: _BEAT_BITS - _PAGE_BITS]
            m.d.comb += [
                write.addr.eq(number | Cat(Const(0, _PAGE_BITS), page)),
                write.data.eq(numbers),
                write.en.eq(takes & comes[place]),
                read.addr.eq(self.addresses[place]),
                read.en.eq(1),
                self.beats[place].eq(read.data),
            ]
            with m.If(takes & is_last & comes[place]):
                m.d.sync += [latest[place].eq(following[place]), filled[place].eq(1)]

        # A sum.
        asks = takes & is_last & current.emits & ~is_wrong
        m.d.comb += [begin.i.valid.eq(asks), end.i.valid.eq(asks), end.o.ready.eq(self.done)]
        for place in Place:
            chosen = Mux(comes[place], following[place], latest[place])
            name = place.name.lower()
            m.d.comb += [
                getattr(end.i.payload, name).eq(chosen),
                getattr(begin.i.payload, name).eq(chosen << size),
            ]
        return m


def _last_beat(header, config: AcceleratorConfig):
    """Return the beats of a row of the program, less one."""
    beat_bits = (config.bus_bytes - 1).bit_length()
    return (header.length - 1)[beat_bits : beat_bits + _BEAT_BITS]
