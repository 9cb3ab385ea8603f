"""The reduce unit: the execute side in fabric, every block wired."""

from __future__ import annotations

from amaranth.hdl import Assert, Module, Mux, Signal, Value, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.config import AcceleratorConfig
from ember_hw.isa import Chain, Fold, Place, Source
from ember_hw.isa.reduce import ACCUMULATOR_BEATS, NUMBER_BYTES, ReduceOperation, RowFormat
from ember_hw.registers import NO_UNIT, FaultCode
from ember_hw.rtl.execute.float_combine import Combine
from ember_hw.rtl.execute.pass_sequencer import PassSequencer
from ember_hw.rtl.execute.reduce_layouts import (
    beat_layout,
    header_layout,
    lanes,
    result_layout,
    step_layout,
)
from ember_hw.rtl.execute.row_accumulate import RowAccumulate
from ember_hw.rtl.execute.row_dot import RowDot
from ember_hw.rtl.execute.row_numbers import RowNumbers
from ember_hw.rtl.execute.row_scale import RowScale
from ember_hw.rtl.faults import FaultSignature
from ember_hw.rtl.fifos import ReservedFifo, StreamFifo
from ember_hw.rtl.layouts import bundle_layout, row_beat_layout

# Beats between `take` and the consumer: the pipelines, the queue, and some to spare.
_RESULT_CREDITS = 32
# Results are counted modulo this many bits; those inside are far fewer than half of that.
_RESULT_COUNT_BITS = 16


class ReduceUnit(wiring.Component):
    """Takes bundles and rows, and gives the rows that its microcode makes of them.

    `isa.reduce` says what the microcode means.

    Throughput: a beat of fp32 numbers a cycle, of bf16 or fp16 half of one (see `RowWiden`), of
    int8 `config.int8_lanes` numbers, without a cycle between rows or bags; the result of a bag
    leaves while its last row comes, and an empty bag takes one cycle, though its zeros leave beat
    by beat.
    A row that is added to an accumulator waits until its first beat may follow that of the row
    before it: rows of less than `least_row_beats` beats take that many cycles each. A pass that is
    not scaled waits until the scaled ones before it have left the pipelines. A scaled beat with
    denormals takes ``lanes + 8`` cycles more, see `RowScale`.

    Ordering: results leave in the order of the events that emit them.

    Backpressure: nothing inside stalls. A beat whose result leaves is taken only if the queue of
    results has room for it; while it has none, the bundle and row queues wait.

    Error: a row that is not as long as the microcode says, or a length that is none, is a fault;
    from then on nothing is taken until a reset. What has left is right, but for a result whose last
    beat is missing.

    Parameters
    ----------
    config : AcceleratorConfig
        Gives widths, events and row entries.
    forwards : bool, optional
        See `RowAccumulate`: `least_row_beats` is 4 with, 7 without. The buses of 256 bits and more
        have it, as rows on them are short.

    Members
    -------
    header, steps : in
        Microcode records.
    row_events, told_events : in
        The events of each row entry; those of which bundles tell.
    bundle, row : streams, in
        The control queue and the data queue.
    taken : in
        Strobe: the last bundle and all rows of a request were taken.
    result : stream, out
        Rows of fp32 numbers.
    legal : out
        The microcode may be run.
    fault : out
        A row of another length, see above.
    ended : out
        Strobe: a request was taken, and its results have left.
    moves : out
        A beat was taken or has left.
    """

    def __init__(self, *, config: AcceleratorConfig, forwards: bool | None = None):
        self.config = config
        if forwards is None:
            forwards = config.data_width_bits >= 256
        self.forwards = forwards
        self.least_row_beats = RowAccumulate.least_distance(forwards)
        super().__init__(
            {
                "header": In(header_layout(config)),
                "steps": In(step_layout(config)).array(config.row_entries),
                "row_events": In(config.events).array(config.row_entries),
                "told_events": In(config.events),
                "bundle": In(stream.Signature(bundle_layout(config))),
                "row": In(stream.Signature(row_beat_layout(config))),
                "taken": In(1),
                "result": Out(stream.Signature(row_beat_layout(config))),
                "legal": Out(1),
                "fault": Out(FaultSignature(config)),
                "ended": Out(1),
                "moves": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.sequencer = sequencer = PassSequencer(config=config)
        m.submodules.scale = scale = RowScale(lanes=lanes(config), control=beat_layout(config))
        m.submodules.accumulate = accumulate = RowAccumulate(config=config, forwards=self.forwards)
        m.submodules.results = results = ReservedFifo(
            shape=result_layout(config), credits=_RESULT_CREDITS
        )
        m.submodules.numbers = numbers = RowNumbers(config=config)
        wiring.connect(m, wiring.flipped(self.bundle), sequencer.bundle)
        wiring.connect(m, wiring.flipped(self.row), numbers.i)
        self._repeat(m, results.o)
        m.d.comb += [sequencer.header.eq(self.header), numbers.header.eq(self.header)]
        for outer, inner in zip(self.steps, sequencer.steps, strict=True):
            m.d.comb += inner.eq(outer)
        for outer, inner in zip(self.row_events, sequencer.row_events, strict=True):
            m.d.comb += inner.eq(outer)
        self._judge(m)

        # A beat of the pass that runs.
        running, current = sequencer.todo.valid, sequencer.todo.payload
        number = Signal(range(ACCUMULATOR_BEATS))
        is_last = Signal()
        takes, halts = Signal(), Signal()
        settled, overtakes, was_scaled = Signal(), Signal(), Signal()
        m.d.comb += [
            is_last.eq(number == current.beats),
            takes.eq(
                running
                & (numbers.o.valid | ~current.takes_row)
                & (results.room | ~current.emits)
                & (settled | ~current.joins)
                & scale.room
                & ~overtakes
                & ~halts
            ),
            numbers.o.ready.eq(takes & current.takes_row),
            sequencer.todo.ready.eq(takes & is_last),
            results.take.eq(takes & current.emits),
            overtakes.eq(was_scaled & ~current.scaled & (scale.busy | accumulate.busy)),
        ]
        with m.If(takes):
            m.d.sync += [
                number.eq(Mux(is_last, 0, number + 1)),
                was_scaled.eq(current.scaled),
            ]
        self._settle(m, takes & is_last, current.beats, scale.room, settled)

        # Rows of another length.
        is_misfit = Signal()
        row = numbers.o.payload
        row_differs = (row.last != is_last) | (is_last & (row.bytes != current.bytes))
        m.d.comb += is_misfit.eq(takes & (sequencer.misfit | (current.takes_row & row_differs)))
        m.d.sync += self.fault.valid.eq(is_misfit)
        m.d.comb += [
            self.fault.payload.code.eq(FaultCode.UNEXPECTED_ROW_LENGTH),
            self.fault.payload.unit.eq(NO_UNIT),
        ]
        with m.If(is_misfit):
            m.d.sync += halts.eq(1)

        # On its way.
        beat = scale.control
        m.d.comb += [
            scale.take.eq(takes),
            scale.numbers.eq(row.data),
            scale.scaled.eq(current.scaled),
            scale.weight.eq(sequencer.weight),
            scale.blank.eq(~current.takes_row),
            beat.number.eq(number | current.repeats),
            beat.is_void.eq(~current.takes_row & ~current.joins),
            beat.joins.eq(current.joins),
            beat.keeps.eq(current.takes_row & ~current.emits),
            beat.emits.eq(current.emits & ~is_misfit),
            beat.bytes.eq(Mux(is_last, current.bytes, config.bus_bytes)),
            beat.last.eq(is_last),
            accumulate.launch.eq(scale.launch),
            accumulate.launched.eq(scale.launched),
            accumulate.numbers.eq(scale.scaled_numbers),
            results.push.eq(accumulate.valid & accumulate.beat.emits),
            results.payload.beat.data.eq(accumulate.result),
            results.payload.beat.bytes.eq(accumulate.beat.bytes),
            results.payload.beat.last.eq(accumulate.beat.last),
            results.payload.repeats.eq(Mux(accumulate.beat.is_void, accumulate.beat.number, 0)),
        ]
        with m.If(~current.takes_row):
            m.d.comb += beat.combine.eq(Combine.TAKE_B)
        with m.Else(), m.Switch(current.operation):
            with m.Case(ReduceOperation.COPY):
                m.d.comb += beat.combine.eq(Combine.TAKE_A)
            with m.Case(ReduceOperation.SUM):
                m.d.comb += beat.combine.eq(Combine.SUM)
            with m.Case(ReduceOperation.MAXIMUM):
                m.d.comb += beat.combine.eq(Combine.MAXIMUM)

        self._notice_ends(m, sequencer)
        m.d.comb += self.moves.eq(takes | (self.result.valid & self.result.ready))
        if config.reduce_dot:
            self._sum_across(m, sequencer, numbers, results, takes)
        return m

    def _sum_across(self, m: Module, sequencer: PassSequencer, numbers, results, takes) -> None:
        """Lead passes, rows and results through `RowDot` where the microcode says so."""
        m.submodules.dot = dot = RowDot(config=self.config)
        folds = Signal()
        m.d.comb += [
            folds.eq(self.header.fold != Fold.NONE),
            dot.header.eq(self.header),
            dot.todo.payload.eq(sequencer.todo.payload),
            dot.todo.valid.eq(sequencer.todo.valid & folds),
            dot.differs.eq(sequencer.misfit),
            dot.row.payload.eq(numbers.o.payload),
            dot.row.valid.eq(numbers.o.valid),
            dot.room.eq(results.room),
        ]
        with m.If(folds):
            m.d.comb += [
                takes.eq(0),
                sequencer.todo.ready.eq(dot.todo.ready),
                numbers.o.ready.eq(dot.row.ready),
                results.take.eq(dot.take),
                results.push.eq(dot.push),
                results.payload.beat.data.eq(dot.number),
                results.payload.beat.bytes.eq(NUMBER_BYTES),
                results.payload.beat.last.eq(1),
                results.payload.repeats.eq(0),
                self.moves.eq(dot.moves | (self.result.valid & self.result.ready)),
            ]
            m.d.sync += self.fault.valid.eq(dot.misfit)

    def _repeat(self, m: Module, results) -> None:
        """Let results leave, the zeros of an empty accumulator as many beats as it has."""
        repeated = Signal(range(ACCUMULATOR_BEATS))
        is_last = Signal()
        beat = results.payload.beat
        m.d.comb += [
            is_last.eq(repeated == results.payload.repeats),
            self.result.valid.eq(results.valid),
            self.result.payload.data.eq(beat.data),
            self.result.payload.bytes.eq(Mux(is_last, beat.bytes, self.config.bus_bytes)),
            self.result.payload.last.eq(beat.last & is_last),
            results.ready.eq(self.result.ready & is_last),
        ]
        with m.If(self.result.valid & self.result.ready):
            m.d.sync += repeated.eq(Mux(is_last, 0, repeated + 1))

    def _judge(self, m: Module) -> None:
        """Say whether the microcode may be run, a cycle after it was written."""
        config = self.config
        told = self.told_events
        length = self.header.length
        limit = ACCUMULATOR_BEATS * config.bus_bytes
        is_length = (length != 0) & (length % NUMBER_BYTES == 0) & (length <= limit)
        legal = (self.header.length_source == Source.SLOT) | is_length
        if not config.int8_lanes:
            legal &= self.header.format != RowFormat.INT8
        legal &= self.header.weight_format != RowFormat.INT8
        legal &= self.header.length_scalar < config.bundle_scalars
        for step, row_events in zip(self.steps, self.row_events, strict=True):
            legal &= step.operation <= ReduceOperation.MAXIMUM
            legal &= step.scalar < config.bundle_scalars
            legal &= ((row_events | step.emit_events) & ~told) == 0
        if config.reduce_dot:
            legal &= (self.header.fold == Fold.NONE) | self._judge_sums()
        held = Signal(reset_less=True)  # like the microcode
        m.d.sync += held.eq(legal)
        m.d.comb += self.legal.eq(held)

    def _judge_sums(self) -> Value:
        """Say whether microcode that sums across rows may be run."""
        header = self.header
        legal = header.length_source == Source.IMMEDIATE
        legal &= (header.second <= Chain.MULTIPLY) & (header.third <= Chain.MULTIPLY)
        legal &= (header.fold != Fold.SQUARE) | (header.third != Chain.MULTIPLY)
        for step in self.steps:
            legal &= (step.place <= Place.THIRD) & ~step.scaled
            legal &= step.operation == ReduceOperation.COPY
        return legal

    def _settle(self, m: Module, ends, beats, moves, settled) -> None:
        """Hold back the row behind a short one, see `RowAccumulate`.

        Cycles in which beats do not move on before the accumulator don't count.
        """
        least_beats = self.least_row_beats
        left = Signal(range(least_beats))
        m.d.comb += settled.eq(left == 0)
        with m.If(ends & (beats < least_beats - 1)):
            m.d.sync += left.eq(least_beats - 1 - beats)
        with m.Elif(~settled & moves):
            m.d.sync += left.eq(left - 1)

    def _notice_ends(self, m: Module, sequencer: PassSequencer) -> None:
        """Notice when the results of a request have left, as `Datapath` does for its rows."""
        m.submodules.marks = marks = StreamFifo(
            shape=_RESULT_COUNT_BITS, depth_entries=max(2, self.config.request_entries)
        )
        taken = Signal(range(self.config.request_entries + 1))
        asked, left = Signal(_RESULT_COUNT_BITS), Signal(_RESULT_COUNT_BITS)
        behind = Signal(signed(_RESULT_COUNT_BITS))
        leaves = self.result.valid & self.result.ready & self.result.payload.last
        m.d.sync += [
            asked.eq(marks.i.payload),
            left.eq(left + leaves),
            taken.eq(taken + self.taken - self.ended),
            Assert(marks.i.ready),
        ]
        m.d.comb += [
            marks.i.payload.eq(asked + sequencer.asks),
            marks.i.valid.eq(sequencer.ends),
            behind.eq(left - marks.o.payload),
            self.ended.eq(marks.o.valid & (behind >= 0) & (taken != 0)),
            marks.o.ready.eq(self.ended),
        ]
