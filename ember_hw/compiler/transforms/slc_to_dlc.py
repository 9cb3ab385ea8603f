"""
`slc-to-dlc`: one program in two halves, an access program and the cases of the execute side.

This is the text of an EmbeddingBag sum, which `backend/extract_code.py` reads. `%b`
is `dlc.pop_operand` or, at level 3, `dlc.get_var`. Constants and dims (`%c0`, `%D`, `%zeros`)
stand at function level.

Level 0, one element a token, [b, d, v]::

    case 1 {
      %b = dlc.pop_operand : index
      %d = dlc.pop_operand : index
      %v = dlc.pop_operand : f32
      %a = memref.load %out[%b, %d] : memref<?x?xf32>
      %n = arith.addf %a, %v : f32
      memref.store %n, %out[%b, %d] : memref<?x?xf32>
      dlc.yield
    }

Level 1, one vector a token, [b, d0, v]; here 8 lanes::

    case 1 {
      %b = dlc.pop_operand : index
      %d = dlc.pop_operand : index
      %v = dlc.pop_operand : vector<8xf32>
      %mask = slcvec.mask %d %c0 %D %c1 : vector<8xi1>
      %a = vector.maskedload %out[%b, %d], %mask, %zeros : .. into vector<8xf32>
      %n = arith.addf %a, %v : vector<8xf32>
      vector.maskedstore %out[%b, %d], %mask, %n : memref<?x?xf32>, vector<8xi1>, vector<8xf32>
      dlc.yield
    }

Level 2, one row a token, [b, row]::

    case 1 {
      %b = dlc.pop_operand : index
      %row = dlc.pop_operand : memref<?xf32>
      scf.for %d = %c0 to %D step %c8 {
        %v = slcvec.from_buffer %row[%d] : memref<?xf32>[index] -> vector<8xf32>
        %mask = slcvec.mask %d %c0 %D %c1 : vector<8xi1>
        %a = vector.maskedload %out[%b, %d], %mask, %zeros : .. into vector<8xf32>
        %n = arith.addf %a, %v : vector<8xf32>
        vector.maskedstore %out[%b, %d], %mask, %n : ..
      }
      dlc.yield
    }

Level 3, rows alone, [row] and []; `dlc.set_var %c0 : index` stands at function level::

    case 1 {
      %row = dlc.pop_operand : memref<?xf32>
      %b = dlc.get_var : index
      scf.for .. as at level 2
      dlc.yield
    }
    case 2 {
      dlc.increment_var
      dlc.yield
    }

With weights a `%w = dlc.pop_operand : f32` stands between indices and data, and an `arith.mulf`
(from level 1 on of `vector.broadcast %w`) before the addition.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ember_hw.compiler.dialects import dlc, slc, slcvec
from ember_hw.compiler.dialects.stream_types import hints_of
from ember_hw.compiler.transforms.ir_facts import (
    copy_hint,
    erase,
    functions,
    host_value,
    is_all_true,
    is_host,
    refuse,
)
from ember_hw.compiler.transforms.rows import is_row_loop, is_table_length
from ember_hw.compiler.transforms.scf_to_slc import read_order


@dataclass(frozen=True)
class SlcToDlc(ModulePass):
    """
    Split each top-level nest into `dlc.configure_access_engine` and `dlc.compute_loop`.

    Accepts `slc` and `slcvec` at any level without execute values (results of callbacks,
    `init_args`). Loops become traversal units in pre-order, a vector loop a unit that steps by its
    vectors, a loop that fills row buffers a `dlc.row_stream`. A callback becomes a case: in a loop
    U without inner loops on (U, ite), in front of the first inner loop M on (M, beg), behind M on
    (M, end). Callbacks of one event merge; ids count from 1 in program order. Every stream a
    callback reads is one registered operand and one pop: indices, other scalars and vectors, rows.

    A vector stream without a vector index reads as many lanes as its type says from its last index
    on; lanes beyond the unit's upper bound aren't loaded and read 0. The code of callbacks stays
    the same. No `slc` loop is left, nor a constant that nothing reads.
    """

    name = "slc-to-dlc"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run the pass on every function."""
        for function in functions(op):
            for nest in list(function.body.block.ops):
                if isinstance(nest, slc.ForOp | slcvec.ForOp):
                    _Nest(nest).split()
                elif isinstance(nest, slc.CallbackOp | slcvec.BufStreamOp):
                    refuse(nest, "op at function level", "a loop or host code", repr(nest.name))
            _erase_unread(function)


def _erase_unread(function: func.FuncOp) -> None:
    for op in reversed(list(function.body.block.ops)):
        if isinstance(op, slc.ToStreamOp | arith.ConstantOp) and not op.results[0].uses:
            erase(op)


@dataclass
class _Case:
    """What one event of one unit runs."""

    unit: SSAValue
    event: dlc.Event
    callbacks: list[slc.CallbackOp] = field(default_factory=list["slc.CallbackOp"])


class _Nest:
    """One top-level nest on its way into two halves."""

    def __init__(self, root: slc.ForOp | slcvec.ForOp) -> None:
        self.root = root
        self.engine = dlc.ConfigureAccessEngineOp()
        self.units = 0
        self.streams: dict[SSAValue, SSAValue] = {}
        self.cases: list[_Case] = []

    def split(self) -> None:
        """Replace the nest by its halves."""
        self._loop(self.root, None)
        regions: list[Region] = []
        for number, case in enumerate(self.cases, 1):
            self._append(dlc.RegisterCallbackOp(case.unit, case.event, number))
            regions.append(self._case(case))
        compute = dlc.ComputeLoopOp(range(1, len(regions) + 1), regions)
        Rewriter.insert_op([self.engine, compute], InsertPoint.before(self.root))
        self.root.detach()
        self.root.erase(safe_erase=False)

    def _append(self, op: Operation) -> None:
        last = self.engine.body.block.last_op
        assert last is not None
        Rewriter.insert_op(op, InsertPoint.before(last))

    def _map(self, value: SSAValue, user: Operation) -> SSAValue:
        """Return the access program's form of a stream or host value."""
        if value in self.streams:
            return self.streams[value]
        if not is_host(value):
            rule = "a stream that the access program computes"
            refuse(user, "operand of the access program", rule, f"one of type {value.type}")
        return value

    def _memory(self, memory: SSAValue) -> SSAValue:
        """Return the access program's form of a memory: itself, or a table that is a view."""
        return self.streams.get(memory, memory)

    def _loop(self, loop: slc.ForOp | slcvec.ForOp, parent: int | None) -> SSAValue:
        """Add the unit of a loop, its streams and what is below it; the unit."""
        if loop.init_args:
            refuse(
                loop,
                "values carried by a loop of the access unit",
                "none",
                f"{len(loop.init_args)}",
            )
        if isinstance(loop, slcvec.ForOp):
            _check_vector_loop(loop)
        bounds = (loop.lower_bound, loop.upper_bound, loop.step)
        lower, upper, step = (self._map(bound, loop) for bound in bounds)
        unit = dlc.NewTuOp(lower, upper, step, parent)
        position = dlc.GetIndVarOp(unit)
        number = self.units
        self.units += 1
        unit.result.name_hint = f"t{number}"
        copy_hint(loop.induction_variable, position.result)
        self._append(unit)
        self._append(position)
        self.streams[loop.induction_variable] = position.result

        ops = list(loop.body.block.ops)
        # In front of the first inner loop: on its `beg`, once that unit is made.
        waiting: list[slc.CallbackOp] = []
        last: SSAValue | None = None
        for op in ops:
            if isinstance(op, slc.ForOp | slcvec.ForOp) and not is_row_loop(op):
                before = len(self.cases)
                last = self._loop(op, number)
                if waiting:
                    self.cases.insert(before, _Case(last, dlc.Event.BEGIN, waiting))
                    waiting = []
            elif isinstance(op, slc.ForOp | slcvec.ForOp):
                self._rows(op)
            elif not isinstance(op, slc.CallbackOp):
                self._stream(op)
            elif last is None:
                waiting.append(op)
            else:
                self._behind(last, op)
        if waiting:
            self.cases.append(_Case(unit.result, dlc.Event.ITERATE, waiting))
        return unit.result

    def _behind(self, unit: SSAValue, callback: slc.CallbackOp) -> None:
        case = self.cases[-1] if self.cases else None
        if case is None or case.unit is not unit or case.event is not dlc.Event.END:
            case = _Case(unit, dlc.Event.END)
            self.cases.append(case)
        case.callbacks.append(callback)

    def _stream(self, op: Operation) -> None:
        """Add a stream op that stands in a loop body."""
        new: Operation
        if isinstance(op, slc.YieldOp | slcvec.YieldOp | slcvec.BufStreamOp):
            return
        if isinstance(op, slc.AluStreamOp):
            new = slc.AluStreamOp(op.alu_op.data, self._map(op.lhs, op), self._map(op.rhs, op))
        elif isinstance(op, slc.CastStreamOp):
            new = slc.CastStreamOp(self._map(op.stream, op))
        elif isinstance(op, slc.MemStreamOp):
            indices = [self._map(index, op) for index in op.indices]
            memory = self._memory(op.memref)
            new = slc.MemStreamOp(memory, indices, **hints_of(op))
        elif isinstance(op, slc.ViewOp):
            base, rows, length, pitch = (
                self._map(value, op) for value in (op.base, op.rows, op.length, op.pitch)
            )
            new = slc.ViewOp(op.source, base, rows, length, pitch, op.result.type)
        elif isinstance(op, slcvec.MemStreamOp):
            new = self._vector_stream(op)
        elif isinstance(op, slcvec.ExtractOp) and _is_lane0_of_loop(op):
            self.streams[op.result] = self._map(op.stream, op)
            return
        else:
            refuse(
                op,
                "op of a loop of the access unit",
                "a stream, a callback or a loop",
                repr(op.name),
            )
        self._append(new)
        copy_hint(op.results[0], new.results[0])
        self.streams[op.results[0]] = new.results[0]

    def _vector_stream(self, op: slcvec.MemStreamOp) -> Operation:
        loop = op.parent_op()
        assert isinstance(loop, slcvec.ForOp), "vector streams stand in vector loops"
        if op.indices[-1] is not loop.induction_variable:
            refuse(
                op,
                "last index of a vector stream",
                "its loop's induction variable",
                op.indices[-1].type,
            )
        indices = [self._map(index, op) for index in op.indices]
        memory = self._memory(op.memref)
        return slcvec.MemStreamOp(memory, indices, loop.lanes, **hints_of(op))

    def _rows(self, loop: slc.ForOp | slcvec.ForOp) -> None:
        """Add the row streams of a loop that fills buffers."""
        if isinstance(loop, slcvec.ForOp):
            _check_vector_loop(loop)
        length = host_value(loop.upper_bound)
        if length is None and is_table_length(loop):
            length = self._map(loop.upper_bound, loop)
        if length is None:
            rule = "a host value or that of a table whose shape is loaded"
            refuse(loop, "length of a row", rule, f"one of type {loop.upper_bound.type}")
        for op in loop.body.block.ops:
            if isinstance(op, slc.MemStreamOp | slcvec.MemStreamOp | slc.YieldOp | slcvec.YieldOp):
                continue
            if not isinstance(op, slcvec.ToBufferOp) or not isinstance(
                op.stream.owner, slc.MemStreamOp | slcvec.MemStreamOp
            ):
                rule = "a memory stream or its slcvec.to_buffer"
                refuse(op, "op of a loop that fills rows", rule, repr(op.name))
            source = op.stream.owner
            indices = [self._map(index, source) for index in source.indices[:-1]]
            memory = self._memory(source.memref)
            row = dlc.RowStreamOp(memory, indices, length, **hints_of(source))
            self._append(row)
            copy_hint(op.buffer, row.result)
            self.streams[op.buffer] = row.result

    def _case(self, case: _Case) -> Region:
        """Register the operands of a case and build its region."""
        reads: dict[SSAValue, list[slc.FromStreamOp]] = {}
        code: list[Operation] = []
        for callback in case.callbacks:
            if callback.res:
                refuse(callback, "results of a callback", "none", f"{len(callback.res)}")
            for op in list(callback.body.block.ops):
                if isinstance(op, slc.FromStreamOp):
                    stream = self._map(op.stream, op)
                    reads.setdefault(stream, []).append(op)
                elif not isinstance(op, slc.YieldOp):
                    code.append(op)
                    for inner in op.walk():
                        if isinstance(inner, slc.FromStreamOp):
                            refuse(
                                inner,
                                "read of a stream",
                                "at the top level of its callback",
                                f"inside {op.name!r}",
                            )
        block = Block()
        for stream in sorted(reads, key=read_order):
            register = dlc.RegisterOperandOp(case.unit, case.event, stream)
            self._append(register)
            pop = dlc.PopOperandOp(cast(slc.StreamType, stream.type).element_type)
            copy_hint(stream, pop.result)
            for read in reads[stream]:
                read.value.replace_all_uses_with(pop.result)
            block.add_op(pop)
        for op in code:
            op.detach()
            block.add_op(op)
        block.add_op(dlc.YieldOp())
        return Region(block)


def _check_vector_loop(loop: slcvec.ForOp) -> None:
    """Raise unless units can run the loop: no other vector loop, full mask, no vector reads."""
    if loop.loop_config.data is not slcvec.LoopConfig.BROADCAST:
        refuse(loop, "loopConfig", "bcast", loop.loop_config.data.value)
    if not is_all_true(loop.in_mask):
        refuse(loop, "mask of a vector loop", "a constant without a false lane", "another")
    for value, what in ((loop.induction_variable, "induction"), (loop.out_mask, "mask")):
        for use in value.uses:
            if isinstance(use.operation, slc.FromStreamOp):
                remedy = "recomputed by the execute side (simplify-mem-ops)"
                refuse(use.operation, f"{what} vector of a loop", remedy, "read by a callback")


def _is_lane0_of_loop(op: slcvec.ExtractOp) -> bool:
    loop = op.parent_op()
    return (
        isinstance(loop, slcvec.ForOp)
        and op.stream is loop.induction_variable
        and op.index.value.data == 0
    )
