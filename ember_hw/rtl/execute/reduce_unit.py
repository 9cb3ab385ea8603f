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
    control_layout,
    group_bytes,
    header_layout,
    result_layout,
    step_layout,
)
from ember_hw.rtl.execute.result_beats import ResultBeats
from ember_hw.rtl.execute.row_accumulate import RowAccumulate
from ember_hw.rtl.execute.row_dot import RowDot
from ember_hw.rtl.execute.row_numbers import RowNumbers
from ember_hw.rtl.execute.row_scale import RowScale
from ember_hw.rtl.faults import FaultSignature
from ember_hw.rtl.fifos import ReservedFifo, StreamFifo
from ember_hw.rtl.layouts import bundle_layout, row_beat_layout

# Groups between `take` and the consumer: the pipelines, the queue, and some to spare.
_RESULT_CREDITS = 32
# Results are counted modulo this many bits; those inside are far fewer than half of that.
_RESULT_COUNT_BITS = 16


class ReduceUnit(wiring.Component):
    """Takes bundles and rows, and gives the rows that its microcode makes of them.

    `isa.reduce` says what the microcode means.

    A group, the numbers of a row that go through the unit together, is as many as a beat of the
    rows' format holds, but at most `config.lanes`, and the accumulator holds groups.

    Throughput: a group a cycle, without a cycle between rows or bags. That is a beat of fp32 rows
    whatever the lanes; of bf16 or fp16 rows a beat with twice as many lanes as a beat has fp32
    numbers, half of one with as many; of codes as many as there are lanes, scale and bias taking no
    cycle. Results leave at a beat of fp32 numbers a cycle, while the last row of their bag comes:
    of small numbers and codes they are longer than rows, and bags of fewer rows than that wait for
    them. An empty bag takes one cycle, though its zeros leave beat by beat.
    A row that is added to an accumulator waits until its first group may follow that of the row
    before it: rows of less than `least_row_groups` groups take that many cycles each. A pass that
    is not scaled waits until the scaled ones before it have left the pipelines. A scaled group with
    denormals takes ``lanes + 8`` cycles more, see `RowScale`.

    Ordering: results leave in the order of the events that emit them.

    Backpressure: nothing inside stalls. A group whose result leaves is taken only if the queue of
    results has room for it; while it has none, the bundle and row queues wait.

    Error: a row that is not as long as the microcode says, or a length that is none, is a fault;
    from then on nothing is taken until a reset. What has left is right, but for a result whose last
    beat is missing.

    Parameters
    ----------
    config : AcceleratorConfig
        Gives widths, events and row entries.
    forwards : bool, optional
        See `RowAccumulate`: `least_row_groups` is 4 with, 7 without. Where groups are of 256 bits
        and more, 8 numbers, they are forwarded, as rows are few groups there.

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
        A group was taken or a beat has left.
    """

    def __init__(self, *, config: AcceleratorConfig, forwards: bool | None = None):
        self.config = config
        if forwards is None:
            forwards = config.lanes >= 8
        self.forwards = forwards
        self.least_row_groups = RowAccumulate.least_distance(forwards)
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
        m.submodules.scale = scale = RowScale(lanes=config.lanes, control=control_layout(config))
        m.submodules.accumulate = accumulate = RowAccumulate(config=config, forwards=self.forwards)
        # Groups of several beats wait while the next bag comes, up to a whole result.
        is_wide = config.lanes > config.beat_numbers
        m.submodules.results = results = ReservedFifo(
            shape=result_layout(config),
            credits=ACCUMULATOR_BEATS if is_wide else _RESULT_CREDITS,
        )
        m.submodules.numbers = numbers = RowNumbers(config=config)
        wiring.connect(m, wiring.flipped(self.bundle), sequencer.bundle)
        wiring.connect(m, wiring.flipped(self.row), numbers.i)
        m.submodules.beats = beats = ResultBeats(config=config)
        wiring.connect(m, results.o, beats.i)
        wiring.connect(m, beats.o, wiring.flipped(self.result))
        m.d.comb += [
            sequencer.header.eq(self.header),
            numbers.header.eq(self.header),
            beats.format.eq(self.header.format),
        ]
        for outer, inner in zip(self.steps, sequencer.steps, strict=True):
            m.d.comb += inner.eq(outer)
        for outer, inner in zip(self.row_events, sequencer.row_events, strict=True):
            m.d.comb += inner.eq(outer)
        self._judge(m)

        # A group of the pass that runs.
        running, current = sequencer.todo.valid, sequencer.todo.payload
        number = Signal(range(ACCUMULATOR_BEATS))
        is_last = Signal()
        takes, halts = Signal(), Signal()
        settled, overtakes, was_scaled = Signal(), Signal(), Signal()
        m.d.comb += [
            is_last.eq(number == current.groups),
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
        self._settle(m, takes & is_last, current.groups, scale.room, settled)

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
        control = scale.control
        m.d.comb += [
            scale.take.eq(takes),
            scale.numbers.eq(row.data),
            scale.scaled.eq(current.scaled),
            scale.weight.eq(sequencer.weight),
            scale.blank.eq(~current.takes_row),
            control.number.eq(number | current.repeats),
            control.is_void.eq(~current.takes_row & ~current.joins),
            control.joins.eq(current.joins),
            control.keeps.eq(current.takes_row & ~current.emits),
            control.emits.eq(current.emits & ~is_misfit),
            control.bytes.eq(Mux(is_last, current.bytes, group_bytes(config, self.header.format))),
            control.last.eq(is_last),
            accumulate.launch.eq(scale.launch),
            accumulate.launched.eq(scale.launched),
            accumulate.numbers.eq(scale.scaled_numbers),
            results.push.eq(accumulate.valid & accumulate.control.emits),
            results.payload.group.data.eq(accumulate.result),
            results.payload.group.bytes.eq(accumulate.control.bytes),
            results.payload.group.last.eq(accumulate.control.last),
            results.payload.repeats.eq(
                Mux(accumulate.control.is_void, accumulate.control.number, 0)
            ),
        ]
        with m.If(~current.takes_row):
            m.d.comb += control.combine.eq(Combine.TAKE_B)
        with m.Else(), m.Switch(current.operation):
            with m.Case(ReduceOperation.COPY):
                m.d.comb += control.combine.eq(Combine.TAKE_A)
            with m.Case(ReduceOperation.SUM):
                m.d.comb += control.combine.eq(Combine.SUM)
            with m.Case(ReduceOperation.MAXIMUM):
                m.d.comb += control.combine.eq(Combine.MAXIMUM)

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
                results.payload.group.data.eq(dot.number),
                results.payload.group.bytes.eq(NUMBER_BYTES),
                results.payload.group.last.eq(1),
                results.payload.repeats.eq(0),
                self.moves.eq(dot.moves | (self.result.valid & self.result.ready)),
            ]
            m.d.sync += self.fault.valid.eq(dot.misfit)

    def _judge(self, m: Module) -> None:
        """Say whether the microcode may be run, a cycle after it was written."""
        config = self.config
        told = self.told_events
        length = self.header.length
        limit = ACCUMULATOR_BEATS * config.bus_bytes
        is_length = (length != 0) & (length % NUMBER_BYTES == 0) & (length <= limit)
        legal = (self.header.length_source == Source.SLOT) | is_length
        if not config.int8_rows:
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

    def _settle(self, m: Module, ends, groups, moves, settled) -> None:
        """Hold back the row behind a short one, see `RowAccumulate`.

        Cycles in which groups do not move on before the accumulator don't count.
        """
        least_groups = self.least_row_groups
        left = Signal(range(least_groups))
        m.d.comb += settled.eq(left == 0)
        with m.If(ends & (groups < least_groups - 1)):
            m.d.sync += left.eq(least_groups - 1 - groups)
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
