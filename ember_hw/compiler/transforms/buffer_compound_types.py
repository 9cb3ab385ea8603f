"""`buffer-compound-types`: a loop over a row becomes the row, and a loop in the callback."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects import func, memref
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ember_hw.compiler.dialects import slc, slcvec
from ember_hw.compiler.dialects.stream_types import memref_type
from ember_hw.compiler.transforms.callbacks import (
    merge_callbacks,
    read_in,
    replace_by_callback,
    replace_loop,
    to_execute_loop,
)
from ember_hw.compiler.transforms.ir_facts import (
    REMARK,
    constant,
    copy_hint,
    erase,
    functions,
    host_value,
    is_all_true,
    is_inside,
    strip_stream,
    unit_inner_stride,
    value_name,
)
from ember_hw.compiler.transforms.rows import (
    MemStream,
    behind_streams,
    is_row_loop,
    is_table_length,
    row_loops_first,
)

_Loop: TypeAlias = slc.ForOp | slcvec.ForOp


@dataclass(frozen=True)
class BufferCompoundTypes(ModulePass):
    """
    Let the access unit deliver whole rows instead of their elements or vectors.

    Accepts `slcvec` from `simplify-mem-ops`. An innermost loop qualifies, scalar or of vectors, if
    it stands in a scalar loop, runs from the constant 0 to a host value (or to the length of the
    rows of a table whose shape streams give) by steps of 1 element, and
    holds only streams with its induction variable as last index, lane 0 of that variable, and one
    callback that reads these. Its streams then fill row buffers (`slcvec.buf_stream`,
    `slcvec.to_buffer`), and its callback moves behind it: it reads everything once and runs its
    code in an `scf.for` over the row, which carries what the loop carried. Rows of the same place
    that loops side by side fill become one, and so do callbacks that stand side by side then.

    A row of length 0 fires the callback, whose loop then runs nothing. Every addition happens to
    the same cell in the same order. A loop that doesn't qualify stays, with the reason in
    `ember.remark`.
    """

    name = "buffer-compound-types"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run the pass on every function."""
        for function in functions(op):
            for loop in [op for op in function.walk() if isinstance(op, _Loop)]:
                if is_row_loop(loop) or not _is_candidate(loop):
                    continue
                row_loop = _RowLoop(loop)
                reason = row_loop.obstacle()
                if reason is None:
                    row_loop.buffer()
                else:
                    _remark(loop, f"not buffered: {reason}")
            for loop in [op for op in function.walk() if isinstance(op, slc.ForOp)]:
                _share_rows(loop)
                row_loops_first(loop.body.block)
                merge_callbacks(loop.body.block)


def _is_candidate(loop: _Loop) -> bool:
    """Whether the loop is innermost and, if it is scalar, not a whole nest."""
    if isinstance(loop, slcvec.ForOp):
        return True
    is_root = isinstance(loop.parent_op(), func.FuncOp)
    return not is_root and not any(isinstance(op, _Loop) for op in loop.body.block.ops)


def _remark(loop: _Loop, text: str) -> None:
    earlier = loop.attributes.get(REMARK)
    if isinstance(earlier, StringAttr):
        text = f"{earlier.data}; {text}"
    loop.attributes[REMARK] = StringAttr(text)


class _RowLoop:
    """A loop over the elements of rows."""

    def __init__(self, loop: _Loop) -> None:
        self.loop = loop
        self.lanes = loop.lanes if isinstance(loop, slcvec.ForOp) else 1
        ops = list(loop.body.block.ops)
        self.streams = [op for op in ops if isinstance(op, MemStream)]
        self.extracts = [op for op in ops if isinstance(op, slcvec.ExtractOp)]
        self.callbacks = [op for op in ops if isinstance(op, slc.CallbackOp)]
        known = (*self.streams, *self.extracts, *self.callbacks)
        self.others = [
            op for op in ops if op not in known and not isinstance(op, slc.YieldOp | slcvec.YieldOp)
        ]

    def obstacle(self) -> str | None:
        """Why the loop can't be buffered; None if it can."""
        loop = self.loop
        if not isinstance(loop.parent_op(), slc.ForOp):
            return "it isn't inside a scalar loop"
        if constant(loop.lower_bound) != 0:
            return "its lower bound isn't the constant 0"
        if host_value(loop.upper_bound) is None and not is_table_length(loop):
            return "its upper bound isn't a host value"
        if constant(loop.step) != self.lanes:
            return "its element step isn't 1"
        if isinstance(loop, slcvec.ForOp) and not is_all_true(loop.in_mask):
            return "its mask isn't all true"
        if self.others:
            return f"it holds {self.others[0].name!r}"
        if len(self.callbacks) != 1:
            return "it doesn't hold exactly one callback"
        for stream in self.streams:
            if (
                stream.indices[-1] is not loop.induction_variable
                or any(is_inside(index, loop) for index in stream.indices[:-1])
                or not unit_inner_stride(stream.memref.type)
            ):
                return f"{value_name(stream.memref)} isn't read row by row"
        for extract in self.extracts:
            if extract.stream is not loop.induction_variable or extract.index.value.data != 0:
                return "it uses another lane than lane 0 of its induction variable"
        known = [op.result for op in (*self.streams, *self.extracts)]
        for op in self.callbacks[0].body.block.ops:
            if (
                isinstance(op, slc.FromStreamOp)
                and isinstance(loop, slcvec.ForOp)
                and is_inside(op.stream, loop)
                and op.stream not in known
            ):
                return "its callback reads the induction or mask vector"
        return None

    def buffer(self) -> None:
        """Move the elements into rows and the callback behind the loop."""
        loop = self.loop
        (callback,) = self.callbacks
        block = loop.parent_block()
        assert block is not None
        rows: dict[SSAValue, SSAValue] = {}
        for stream in self.streams:
            buffer = slcvec.BufStreamOp(memref_type(stream.memref).element_type)
            buffer.result.name_hint = "row"
            Rewriter.insert_op(buffer, behind_streams(block))
            store = slcvec.ToBufferOp(stream.result, buffer.result, [loop.induction_variable])
            Rewriter.insert_op(store, InsertPoint.after(stream))
            rows[stream.result] = buffer.result
        self._move(callback, rows)
        if loop.init_args:
            replace_loop(loop)
        erase(callback)
        for extract in self.extracts:
            erase(extract)

    def _move(self, callback: slc.CallbackOp, rows: dict[SSAValue, SSAValue]) -> None:
        loop = self.loop
        lower, step = host_value(loop.lower_bound), host_value(loop.step)
        upper = host_value(loop.upper_bound) or read_in(callback, loop.upper_bound)
        assert lower is not None, "it is 0"
        assert step is not None, "it is the lanes"
        chunks, reads = to_execute_loop(loop, callback, (lower, upper, step))
        body = chunks.body.block
        position = body.args[0]
        scalars: list[Operation] = []
        row_reads: dict[SSAValue, slc.FromStreamOp] = {}
        loads: list[Operation] = []
        for op in reads:
            if op.stream in rows:
                if op.stream not in row_reads:
                    read = row_reads[op.stream] = slc.FromStreamOp(rows[op.stream])
                    copy_hint(rows[op.stream], read.value)
                load = self._element(row_reads[op.stream].value, position, op)
                copy_hint(op.value, load.results[0])
                op.value.replace_all_uses_with(load.results[0])
                loads.append(load)
                op.erase()
            elif is_inside(op.stream, loop):
                op.value.replace_all_uses_with(position)
                op.erase()
            else:
                scalars.append(op)
        Rewriter.insert_op(loads, InsertPoint.at_start(body))
        replace_by_callback(loop, [*scalars, *row_reads.values()], chunks)

    def _element(
        self, row: SSAValue, position: SSAValue, read: slc.FromStreamOp
    ) -> slcvec.FromBufferOp | memref.LoadOp:
        if isinstance(self.loop, slcvec.ForOp):
            return slcvec.FromBufferOp(row, position, read.value.type)
        return memref.LoadOp.get(row, [position])


def _share_rows(parent: slc.ForOp) -> None:
    """Let rows of one body that hold the same elements be one."""
    seen: dict[tuple[object, ...], SSAValue] = {}
    for loop in [op for op in parent.body.block.ops if isinstance(op, _Loop) and is_row_loop(op)]:
        for store in [op for op in loop.body.block.ops if isinstance(op, slcvec.ToBufferOp)]:
            source, buffer = store.stream.owner, store.buffer.owner
            if not isinstance(source, MemStream) or not isinstance(buffer, slcvec.BufStreamOp):
                continue
            place = tuple(strip_stream(index) for index in source.indices[:-1])
            bounds = tuple(strip_stream(v) for v in (loop.lower_bound, loop.upper_bound))
            key = (source.memref, place, bounds, source.is_nontemporal, source.is_kept)
            if key not in seen:
                seen[key] = buffer.result
                continue
            erase(store)
            erase(source)
            buffer.result.replace_all_uses_with(seen[key])
            erase(buffer)
        if not is_row_loop(loop):
            erase(loop)
