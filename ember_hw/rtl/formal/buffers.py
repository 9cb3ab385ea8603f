"""What buffers with reserved places promise: no place is given twice, each beat leaves in turn."""

from __future__ import annotations

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Array, Assert, Assume, Cat, Const, Cover, Mux, Signal, Value

from ember_hw.rtl.credits import Credits
from ember_hw.rtl.formal.bench import Bench
from ember_hw.rtl.read_table import ReadTable
from ember_hw.rtl.reorder_buffer import ReorderBuffer

# A beat that has come is at the output at the latest so many cycles after it could be.
_LATE_CYCLES = 3


def credits(block: Credits) -> Bench:
    """Return the bench of `Credits`.

    `used` is what was taken less what was given, never beyond `places`; `fits` says exactly whether
    the burst has its places. Induction over one cycle proves it.
    """
    bench = Bench(block)
    m = bench.m
    places = block.places
    used = Signal(range(2 * places))
    m.d.comb += [
        Assume(block.length < block.burst_beats),
        Assume(~block.take | block.fits),
        Assume(~block.give | (used != 0)),
        Assert(block.used == used),
        Assert(used <= places),
        Assert(block.fits == (used + block.length + 1 <= places)),
        Cover(used == places),
    ]
    m.d.sync += used.eq(used + (block.length + 1 & block.take.replicate(8)) - block.give)
    return bench


def reorder_buffer(block: ReorderBuffer) -> Bench:
    """Return the bench of a `ReorderBuffer`.

    If bursts are taken while they fit, and each reserved place is filled once, in any order: each
    beat leaves once, in the order of the places, unchanged; no beat overwrites one that has not
    left; `used` and `fits` are right; a beat whose turn it is leaves at the latest four cycles
    after it was put. Memory holds anything at first. Induction over `_LATE_CYCLES + 2` cycles.
    """
    bench = Bench(block)
    m, inside = bench.m, bench.block
    places = block.places
    place_bits = len(block.start) - 1
    leaves = block.o.valid & block.o.ready

    head = Signal.like(block.start)  # the position whose beat leaves next
    there = Signal(places)  # places whose beat came and hasn't left
    used = Signal.like(block.start)
    distance = Signal.like(block.start)
    m.d.sync += head.eq(head + leaves)
    m.d.comb += [
        used.eq(block.start - head),
        distance.eq(block.position - head),
        Assume(block.length < block.burst_beats),
        Assume(~block.take | (block.fits & block.cleared)),
        Assume(~block.put | (distance < used)),
        Assume(~block.put | ~there.bit_select(block.position[:place_bits], 1)),
        Assert(block.used == used),
        Assert(used <= places),
        Assert(block.fits == (used + block.length + 1 <= places)),
    ]
    with m.If(block.put):
        m.d.sync += there.bit_select(block.position[:place_bits], 1).eq(1)
    with m.If(leaves):
        m.d.sync += there.bit_select(head[:place_bits], 1).eq(0)

    # A beat, whichever, from its coming to its leaving.
    active, where, value = Signal(), Signal.like(head), Signal(len(Value.cast(block.beat)))
    at_front = there.bit_select(head[:place_bits], 1)
    with m.If(leaves & active & (head == where)):
        m.d.sync += active.eq(0)
    with m.Elif(~active & block.put & AnySeq(1)):
        m.d.sync += [active.eq(1), where.eq(block.position), value.eq(block.beat)]
    m.d.comb += Assert(~block.o.valid | (at_front & (used != 0)))
    with m.If(block.o.valid & active & (where == head)):
        m.d.comb += Assert(Value.cast(block.o.payload) == value)
    bench.stays(block.o)
    late = Signal(range(_LATE_CYCLES + 1))
    with m.If(at_front & ~block.o.valid):
        m.d.sync += late.eq(late + 1)
        m.d.comb += Assert(late < _LATE_CYCLES)
    with m.Else():
        m.d.sync += late.eq(0)

    # Where the beats are.
    memory, position = inside.inner("beats"), inside.signal("position")
    clearing, ahead = inside.signal("clearing"), inside.signal("ahead")
    was_read, read_clean = inside.signal("was_read"), inside.signal("read_clean")
    read_for_nothing = inside.signal("read_for_nothing")
    read, beat_bits = memory.read(), len(value)
    words = []
    for place in range(places):
        number = Signal(place_bits, init=place, name=f"place{place}")
        m.d.comb += number.eq(place)
        words.append(memory.look(number))
    with m.If(block.cleared):
        # The position that a place has now, or will have next.
        for place, word in enumerate(words):
            lap = head[place_bits] ^ (Const(place, place_bits) < head[:place_bits])
            m.d.comb += [
                Assert(there[place] == (word[beat_bits] != lap)),
                Assert(
                    ~there[place]
                    | ((Cat(Const(place, place_bits), lap) - head)[: len(used)] < used)
                ),
            ]
        awaited = Signal.like(head)  # what has not come out of the memory yet
        m.d.comb += [
            awaited.eq(head + block.o.valid),
            Assert(~block.o.valid | ahead),
        ]
        with m.If(read_for_nothing):
            m.d.comb += Assert(position == awaited)
        with m.Else():
            m.d.comb += [
                Assert(was_read == awaited),
                Assert(position == (awaited + ahead)[: len(head)]),
            ]
            with m.If(read_clean & (read[beat_bits] != was_read[place_bits])):
                m.d.comb += [
                    Assert(there.bit_select(was_read[:place_bits], 1)),
                    Assert(~active | (where != was_read) | (read[:beat_bits] == value)),
                ]
        with m.If(active):
            m.d.comb += [
                Assert((where - head)[: len(used)] < used),
                Assert(there.bit_select(where[:place_bits], 1)),
                Assert(Array(words)[where[:place_bits]][:beat_bits] == value),
            ]
    with m.Else():
        m.d.comb += [
            Assert(Cat(head, block.start, position, there, active, ahead, block.o.valid) == 0),
            Assert(read_for_nothing),
            Assert(clearing < places),
            *(Assert((clearing <= k) | ~word[beat_bits]) for k, word in enumerate(words)),
        ]
    m.d.comb += [Cover(block.used == places), Cover(head[place_bits] & block.o.valid)]
    return bench


def read_table(table: ReadTable) -> Bench:
    """Return the bench of a `ReadTable`.

    No more than `reads_per_tag` reads of a tag are in flight; beats are those of reads in flight, a
    tag's in the order in which they were asked for, `read_beats` of a read at most. Then the note
    and the count of each beat are right, a cycle after it. Memory holds anything at first.
    Induction over two cycles proves it.
    """
    bench = Bench(table)
    m, inside = bench.m, bench.block
    reads, count_bits = table.reads_per_tag, len(table.count)
    tag = Signal(range(table.tags))  # whichever
    asks, comes, ends = Signal(), Signal(), Signal()
    flying = Signal(range(reads + 1))
    beats = Signal(range(table.read_beats + 1))  # of the oldest read
    m.d.comb += [
        tag.eq(AnyConst(len(tag))),
        Assume(tag < table.tags),
        Assume(table.ask_tag < table.tags),
        Assume(table.beat_tag < table.tags),
        Assume(table.cleared | ~(table.ask | table.beat)),
        asks.eq(table.ask & (table.ask_tag == tag)),
        comes.eq(table.beat & (table.beat_tag == tag)),
        ends.eq(comes & table.beat_last),
        Assume(~asks | (flying != reads)),
        Assume(~comes | (flying != 0)),
        Assume(~comes | table.beat_last | (beats != table.read_beats - 1)),
        Assert(flying <= reads),
        Assert(beats < table.read_beats),
    ]
    m.d.sync += flying.eq(flying + asks - ends)
    with m.If(comes):
        m.d.sync += beats.eq(Mux(table.beat_last, 0, beats + 1))

    # A read of that tag, whichever.
    active, ahead = Signal(), Signal(range(reads + 1))
    note = Signal(len(Value.cast(table.ask_note)))
    with m.If(active & ends):
        m.d.sync += [active.eq(ahead != 0), ahead.eq(ahead - 1)]
    with m.Elif(~active & asks & AnySeq(1)):
        m.d.sync += [active.eq(1), ahead.eq(flying - ends), note.eq(table.ask_note)]
    looked, counted = Signal(), Signal.like(beats)
    m.d.sync += [looked.eq(active & comes & (ahead == 0)), counted.eq(beats)]
    noted = Signal.like(note)
    m.d.sync += noted.eq(note)
    with m.If(looked):
        m.d.comb += [Assert(Value.cast(table.note) == noted), Assert(table.count == counted)]

    # What the memories hold of the tag.
    place = Signal(len(tag))
    m.d.comb += [place.eq(tag), Assert(~active | (ahead < flying))]
    state = inside.inner("come").look(place)
    first = state[count_bits:]  # the oldest read's number
    clearing = inside.signal("clearing")
    with m.If(table.cleared):
        if reads > 1:
            asked = inside.inner("asked").look(place)
            m.d.comb += Assert((asked - first - flying)[: len(asked)] == 0)
        m.d.comb += Assert(state[:count_bits] == beats)
        number = Signal(len(tag) + len(first))
        m.d.comb += number.eq(Cat(tag, (first + ahead)[: len(first)]))
        held = inside.inner("notes").look(number)
        m.d.comb += Assert(~active | (held == note))
    with m.Else():
        m.d.comb += [
            Assert(Cat(flying, beats, active, looked) == 0),
            Assert((clearing <= tag) | (state == 0)),
        ]
        if reads > 1:
            asked = inside.inner("asked").look(place)
            m.d.comb += Assert((clearing <= tag) | (asked == 0))
    m.d.comb += [Cover(looked & (counted == table.read_beats - 1)), Cover(flying == reads)]
    return bench
