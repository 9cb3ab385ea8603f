"""`buffer-compound-types`: a loop over a row becomes the row, and a loop in the callback."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, ModuleOp, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ember_hw.compiler.dialects import slc, slcvec
from ember_hw.compiler.dialects.stream_types import memref_type
from ember_hw.compiler.transforms.ir_facts import (
    REMARK,
    constant,
    copy_hint,
    erase,
    functions,
    host_value,
    is_all_true,
    is_inside,
    value_name,
)


@dataclass(frozen=True)
class BufferCompoundTypes(ModulePass):
    """
    Let the access unit deliver whole rows instead of their vectors.

    Accepts `slcvec` from `simplify-mem-ops`. A vector loop qualifies if it stands in a scalar loop,
    runs from the constant 0 to a host value by steps of 1 element, and holds only vector streams
    with its induction variable as last index, lane 0 of that variable, and one callback that reads
    these. Its streams then fill row buffers (`slcvec.buf_stream`, `slcvec.to_buffer`), and its
    callback moves behind it: it reads everything once and runs its code in an `scf.for` over the
    row, a vector a step.

    A row of length 0 fires the callback, whose loop then runs nothing. Every addition happens to
    the same cell in the same order. A loop that doesn't qualify stays, with the reason in
    `ember.remark`.
    """

    name = "buffer-compound-types"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run the pass on every function."""
        for function in functions(op):
            for loop in [op for op in function.walk() if isinstance(op, slcvec.ForOp)]:
                if any(isinstance(op, slcvec.ToBufferOp) for op in loop.body.block.ops):
                    continue
                row_loop = _RowLoop(loop)
                reason = row_loop.obstacle()
                if reason is None:
                    row_loop.buffer()
                else:
                    loop.attributes[REMARK] = StringAttr(f"not buffered: {reason}")


class _RowLoop:
    """A vector loop over the elements of rows."""

    def __init__(self, loop: slcvec.ForOp) -> None:
        self.loop = loop
        ops = list(loop.body.block.ops)
        self.streams = [op for op in ops if isinstance(op, slcvec.MemStreamOp)]
        self.extracts = [op for op in ops if isinstance(op, slcvec.ExtractOp)]
        self.callbacks = [op for op in ops if isinstance(op, slc.CallbackOp)]
        self.others = [
            op
            for op in ops
            if not isinstance(
                op, slcvec.MemStreamOp | slcvec.ExtractOp | slc.CallbackOp | slcvec.YieldOp
            )
        ]

    def obstacle(self) -> str | None:
        """Why the loop can't be buffered; None if it can."""
        loop = self.loop
        if not isinstance(loop.parent_op(), slc.ForOp):
            return "it isn't inside a scalar loop"
        if loop.init_args:
            return "it carries execute values"
        if constant(loop.lower_bound) != 0:
            return "its lower bound isn't the constant 0"
        if host_value(loop.upper_bound) is None:
            return "its upper bound isn't a host value"
        if constant(loop.step) != loop.lanes:
            return "its element step isn't 1"
        if not is_all_true(loop.in_mask):
            return "its mask isn't all true"
        if self.others:
            return f"it holds {self.others[0].name!r}"
        if len(self.callbacks) != 1 or self.callbacks[0].res:
            return "it doesn't hold exactly one callback without results"
        for stream in self.streams:
            if stream.indices[-1] is not loop.induction_variable or any(
                is_inside(index, loop) for index in stream.indices[:-1]
            ):
                return f"{value_name(stream.memref)} isn't read row by row"
        for extract in self.extracts:
            if extract.stream is not loop.induction_variable or extract.index.value.data != 0:
                return "it uses another lane than lane 0 of its induction variable"
        known = [op.result for op in (*self.streams, *self.extracts)]
        for op in self.callbacks[0].body.block.ops:
            if (
                isinstance(op, slc.FromStreamOp)
                and is_inside(op.stream, loop)
                and op.stream not in known
            ):
                return "its callback reads the induction or mask vector"
        return None

    def buffer(self) -> None:
        """Move the elements into rows and the callback behind the loop."""
        loop = self.loop
        (callback,) = self.callbacks
        rows: dict[SSAValue, SSAValue] = {}
        for stream in self.streams:
            buffer = slcvec.BufStreamOp(memref_type(stream.memref).element_type)
            buffer.result.name_hint = "row"
            Rewriter.insert_op(buffer, _after_streams(loop))
            store = slcvec.ToBufferOp(stream.result, buffer.result, [loop.induction_variable])
            Rewriter.insert_op(store, InsertPoint.after(stream))
            rows[stream.result] = buffer.result
        callback.detach()
        Rewriter.insert_op(callback, InsertPoint.after(loop))
        self._rewrite(callback, rows)
        for extract in self.extracts:
            erase(extract)

    def _rewrite(self, callback: slc.CallbackOp, rows: dict[SSAValue, SSAValue]) -> None:
        loop, block = self.loop, callback.body.block
        bounds = [host_value(v) for v in (loop.lower_bound, loop.upper_bound, loop.step)]
        lower, upper, step = (bound for bound in bounds if bound is not None)
        body = Block(arg_types=[IndexType()])
        (position,) = body.args
        copy_hint(loop.induction_variable, position)
        first: list[Operation] = []
        row_reads: dict[SSAValue, SSAValue] = {}
        for op in list(block.ops):
            op.detach()
            if isinstance(op, slc.YieldOp):
                continue
            if not isinstance(op, slc.FromStreamOp):
                body.add_op(op)
            elif op.stream in rows:
                if op.stream not in row_reads:
                    read = slc.FromStreamOp(rows[op.stream])
                    copy_hint(rows[op.stream], read.value)
                    first.append(read)
                    row_reads[op.stream] = read.value
                lanes = slcvec.FromBufferOp(row_reads[op.stream], position, op.value.type)
                copy_hint(op.value, lanes.result)
                op.value.replace_all_uses_with(lanes.result)
                body.add_op(lanes)
                op.erase()
            elif is_inside(op.stream, loop):
                op.value.replace_all_uses_with(position)
                op.erase()
            else:
                first.append(op)
        body.add_op(scf.YieldOp())
        scalars = [op for op in first if op.operands[0] not in rows.values()]
        reads = [op for op in first if op.operands[0] in rows.values()]
        chunks = scf.ForOp(lower, upper, step, [], Region(body))
        block.add_ops([*scalars, *reads, chunks, slc.YieldOp()])


def _after_streams(loop: Operation) -> InsertPoint:
    """Return the place behind the streams of the body that holds the loop."""
    block = loop.parent_block()
    assert block is not None
    rest = (slc.ForOp, slcvec.ForOp, slc.CallbackOp)
    return InsertPoint.before(next(op for op in block.ops if isinstance(op, rest)))
