"""Sums across rows: one element of up to three rows a cycle, several sums side by side."""

from __future__ import annotations

from itertools import pairwise

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.config import AcceleratorConfig
from ember_hw.isa.dot import Chain, Fold, Place
from ember_hw.isa.reduce import ACCUMULATOR_BEATS, NUMBER_BYTES
from ember_hw.rtl.delay import delay
from ember_hw.rtl.execute.dot_rows import PAGE_BEATS, PAGES, DotRows
from ember_hw.rtl.execute.float_combine import Combine, FloatCombine
from ember_hw.rtl.execute.float_format import FLOAT32
from ember_hw.rtl.execute.float_multiply import FloatMultiply
from ember_hw.rtl.execute.reduce_layouts import header_layout, pass_layout
from ember_hw.rtl.layouts import row_beat_layout

_BITS = FLOAT32.width_bits
_BEAT_BITS = (ACCUMULATOR_BEATS - 1).bit_length()
_PAGE_BITS = (PAGE_BEATS - 1).bit_length()
#: From an address to the number that it is of: the memory, and the lane.
_READ_CYCLES = 2
#: Sums side by side: a sum's next element comes as the adder is done with the one before.
THREADS = FloatCombine.cycles


class RowDot(wiring.Component):
    """Takes rows, and gives the sums across them that `isa.dot` says.

    A chain of a multiplier, two adders, a multiplier and the adder of the sum: the second row joins
    before the first or the second of them, the third one before the third or the last. Rows that
    don't join there are read so much later, and what isn't used of the chain's end is left out.

    Throughput: an element a cycle, where four sums have their rows: each of the four has every
    fourth cycle. One sum takes 4 cycles an element. Rows come a beat a cycle meanwhile, see
    `DotRows`: rows of more than 128 beats leave no room for four sums and the rows behind them.

    Ordering: results in the order of the passes that emit; each sum from column 0 on.

    Backpressure: a sum begins only if its result has room; then nothing stalls.

    Error: as `DotRows`. Sums that were asked for before a misfit end.

    Parameters
    ----------
    config : AcceleratorConfig
        Gives the width.

    Members
    -------
    header : in
        Record ``reduce``; constant while there are passes or sums.
    todo, differs, row, misfit
        As of `DotRows`.
    room : in
        A result may be reserved in this cycle.
    take : out
        Strobe: one is.
    push, number : out
        Strobe, and a reserved result.
    moves : out
        A beat was taken, or a sum goes on.
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        super().__init__(
            {
                "header": In(header_layout(config)),
                "todo": In(stream.Signature(pass_layout(config))),
                "differs": In(1),
                "row": In(stream.Signature(row_beat_layout(config))),
                "room": In(1),
                "take": Out(1),
                "push": Out(1),
                "number": Out(_BITS),
                "misfit": Out(1),
                "moves": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.rows = rows = DotRows(config=config)
        wiring.connect(m, wiring.flipped(self.todo), rows.todo)
        wiring.connect(m, wiring.flipped(self.row), rows.row)
        m.d.comb += [
            rows.header.eq(self.header),
            rows.differs.eq(self.differs),
            self.misfit.eq(rows.misfit),
            rows.done.eq(self.push),
        ]

        # Threads: four registers in a ring, each as far as its sum is.
        lane_bits = (config.beat_numbers - 1).bit_length()
        thread = data.StructLayout(
            {"is_active": 1, "element": lane_bits + _BEAT_BITS, "pages": PAGES}
        )
        ring = [Signal(thread, name=f"thread{i}") for i in range(THREADS)]
        head, tail = ring[0], ring[-1]
        last_element = Signal(lane_bits + _BEAT_BITS)
        is_last, goes_on = Signal(), Signal()
        pages = Mux(head.is_active, head.pages.as_value(), rows.waiting.payload.as_value())
        m.d.sync += last_element.eq((self.header.length - 1)[(NUMBER_BYTES - 1).bit_length() :])
        m.d.comb += [
            self.take.eq(~head.is_active & rows.waiting.valid & self.room),
            rows.waiting.ready.eq(~head.is_active & self.room),
            goes_on.eq(head.is_active | rows.waiting.valid & self.room),
            is_last.eq(head.element == last_element),
            self.moves.eq(rows.takes | goes_on),
        ]
        for earlier, later in pairwise(ring):
            m.d.sync += earlier.eq(later)
        m.d.sync += [
            tail.is_active.eq(goes_on & ~is_last),
            tail.element.eq(Mux(goes_on & ~is_last, head.element + 1, 0)),
            tail.pages.eq(pages),
        ]

        # Which element, whether it is the first or the last of its sum: known that much later.
        element = Signal(data.StructLayout({"number": lane_bits + _BEAT_BITS, "pages": PAGES}))
        flags = Signal(data.StructLayout({"is_first": 1, "is_last": 1}))
        issued = Signal()
        m.d.sync += [
            issued.eq(goes_on),
            element.number.eq(head.element),
            element.pages.eq(pages),
            flags.is_first.eq(~head.is_active),
            flags.is_last.eq(is_last),
        ]
        m.submodules.multiply = multiply = FloatMultiply()
        m.submodules.second_multiply = second_multiply = FloatMultiply()
        at_add = _READ_CYCLES + multiply.cycles
        at_second_add = at_add + FloatCombine.cycles
        at_multiply = at_second_add + FloatCombine.cycles
        at_sum = at_multiply + second_multiply.cycles
        _, elements = delay(m, "element", issued, element, at_multiply - _READ_CYCLES)
        valids, all_flags = delay(m, "flags", issued, flags, at_sum)

        # Numbers of the rows, when the chain wants them.
        chain = (self.header.second, self.header.third)
        multiplies = [held == Chain.MULTIPLY for held in chain]
        first_element = Mux(
            multiplies[0], element.as_value(), elements[at_add - _READ_CYCLES - 1].as_value()
        )
        third_element = Mux(
            multiplies[1],
            elements[at_multiply - _READ_CYCLES - 1].as_value(),
            elements[at_second_add - _READ_CYCLES - 1].as_value(),
        )
        wanted = (first_element, first_element, third_element)
        numbers = [self._read(m, rows, *pair) for pair in zip(Place, wanted, strict=True)]

        # The chain.
        m.submodules.add = add = FloatCombine()
        m.submodules.second_add = second_add = FloatCombine()
        m.submodules.sum = total = FloatCombine()
        squares, ends_in_product = Signal(), Signal()
        summand = Signal(_BITS)
        is_valid = Signal()
        at = Signal.like(flags)
        m.d.comb += [
            multiply.a.eq(numbers[0]),
            multiply.b.eq(numbers[1]),
            add.a.eq(Mux(multiplies[0], multiply.product, numbers[0])),
            add.b.eq(numbers[1]),
            add.operation.eq(Mux(chain[0] == Chain.ADD, Combine.SUM, Combine.TAKE_A)),
            second_add.a.eq(add.result),
            second_add.b.eq(numbers[2]),
            second_add.operation.eq(Mux(chain[1] == Chain.ADD, Combine.SUM, Combine.TAKE_A)),
            squares.eq(self.header.fold == Fold.SQUARE),
            ends_in_product.eq(squares | multiplies[1]),
            second_multiply.a.eq(second_add.result),
            second_multiply.b.eq(Mux(squares, second_add.result, numbers[2])),
            summand.eq(Mux(ends_in_product, second_multiply.product, second_add.result)),
            is_valid.eq(Mux(ends_in_product, valids[at_sum - 1], valids[at_multiply - 1])),
            at.eq(
                Mux(
                    ends_in_product,
                    all_flags[at_sum - 1].as_value(),
                    all_flags[at_multiply - 1].as_value(),
                )
            ),
            total.operation.eq(Combine.SUM),
            total.a.eq(Cat(summand[:-1], summand[-1] & (self.header.fold != Fold.ABSOLUTE))),
            # What leaves the adder is the sum of this thread.
            total.b.eq(total.result & (~at.is_first).replicate(_BITS)),
        ]
        ends, end_flags = delay(m, "sum", is_valid, at, FloatCombine.cycles)
        m.d.comb += [
            self.push.eq(ends[-1] & end_flags[-1].is_last),
            self.number.eq(total.result),
        ]
        return m

    def _read(self, m: Module, rows: DotRows, place: Place, wanted) -> Signal:
        """Return the number of a place's row, `_READ_CYCLES` after its element was told."""
        lane_bits = (self.config.beat_numbers - 1).bit_length()
        name = place.name.lower()
        wanted = data.View(
            data.StructLayout({"number": lane_bits + _BEAT_BITS, "pages": PAGES}), wanted
        )
        page = Cat(Const(0, _PAGE_BITS), getattr(wanted.pages, name))
        lane = Signal(lane_bits, name=f"{name}_lane")
        number = Signal(_BITS, name=f"{name}_number")
        m.d.comb += rows.addresses[place].eq(wanted.number[lane_bits:] | page)
        m.d.sync += [
            lane.eq(wanted.number[:lane_bits]),
            number.eq(rows.beats[place].word_select(lane, _BITS)),
        ]
        return number
