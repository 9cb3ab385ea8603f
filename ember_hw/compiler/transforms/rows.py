"""What several passes do to row buffers and the loops that fill them."""

from __future__ import annotations

from typing import TypeAlias

from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ember_hw.compiler.dialects import slc, slcvec
from ember_hw.compiler.dialects.stream_types import hints_of
from ember_hw.compiler.transforms.ir_facts import copy_hint, erase

MemStream: TypeAlias = slc.MemStreamOp | slcvec.MemStreamOp


def is_row_loop(op: Operation) -> bool:
    """Whether the op is a loop that only fills row buffers: no loop of the access unit."""
    return isinstance(op, slc.ForOp | slcvec.ForOp) and any(
        isinstance(inner, slcvec.ToBufferOp) for inner in op.body.block.ops
    )


def is_table_length(loop: slc.ForOp | slcvec.ForOp) -> bool:
    """Whether the loop ends where the rows of a table do whose shape streams give."""
    return any(
        isinstance(op.memref.owner, slc.ViewOp) and op.memref.owner.length is loop.upper_bound
        for op in loop.body.block.ops
        if isinstance(op, MemStream)
    )


def row_loops_first(block: Block) -> None:
    """Move the loops that fill row buffers in front of the body's callbacks and other loops."""
    kinds = (slc.ForOp, slcvec.ForOp, slc.CallbackOp)
    rest = [op for op in block.ops if isinstance(op, kinds) and not is_row_loop(op)]
    if not rest:
        return
    for op in [op for op in block.ops if is_row_loop(op)]:
        op.detach()
        Rewriter.insert_op(op, InsertPoint.before(rest[0]))


def row_source(row: SSAValue) -> MemStream:
    """Return the stream that fills a row buffer."""
    (store,) = (use.operation for use in row.uses if isinstance(use.operation, slcvec.ToBufferOp))
    source = store.stream.owner
    assert isinstance(source, MemStream), "rows are filled from memory"
    return source


def behind_streams(block: Block) -> InsertPoint:
    """Return the place behind the streams of a loop's body."""
    rest = (slc.ForOp, slcvec.ForOp, slc.CallbackOp)
    return InsertPoint.before(next(op for op in block.ops if isinstance(op, rest)))


def move_row(row: SSAValue, block: Block) -> None:
    """Fill a row buffer in the body of a loop around, by a loop of its own."""
    source, buffer = row_source(row), row.owner
    fill = source.parent_op()
    (store,) = (use.operation for use in row.uses if isinstance(use.operation, slcvec.ToBufferOp))
    assert isinstance(buffer, Operation)
    new: slc.ForOp | slcvec.ForOp
    stream: MemStream
    if isinstance(fill, slcvec.ForOp):
        new = slcvec.ForOp(
            fill.lower_bound, fill.upper_bound, fill.step, fill.in_mask, fill.lanes,
            attributes=fill.attributes,
        )  # fmt: skip
        indices = [*source.indices[:-1], new.induction_variable]
        stream = slcvec.MemStreamOp(source.memref, indices, fill.lanes, **hints_of(source))
        copy_hint(fill.out_mask, new.out_mask)
    else:
        assert isinstance(fill, slc.ForOp)
        new = slc.ForOp(fill.lower_bound, fill.upper_bound, fill.step, attributes=fill.attributes)
        indices = [*source.indices[:-1], new.induction_variable]
        stream = slc.MemStreamOp(source.memref, indices, **hints_of(source))
    copy_hint(fill.induction_variable, new.induction_variable)
    copy_hint(source.result, stream.result)
    put = slcvec.ToBufferOp(stream.result, row, [new.induction_variable])
    Rewriter.insert_op([stream, put], InsertPoint.at_start(new.body.block))
    place = behind_streams(block)
    buffer.detach()
    Rewriter.insert_op([buffer, new], place)
    erase(store)
    erase(source)
    if not is_row_loop(fill):
        erase(fill)
