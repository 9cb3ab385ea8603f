"""What several passes do to callbacks and the loops around them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ember_hw.compiler.dialects import slc, slcvec
from ember_hw.compiler.transforms.ir_facts import copy_hint, erase


def is_row_loop(op: Operation) -> bool:
    """Whether the op is a loop that only fills row buffers: no loop of the access unit."""
    return isinstance(op, slc.ForOp | slcvec.ForOp) and any(
        isinstance(inner, slcvec.ToBufferOp) for inner in op.body.block.ops
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


def merge_callbacks(block: Block) -> None:
    """Make callbacks that stand side by side in a body one."""
    op = block.first_op
    while op is not None:
        following = op.next_op
        if isinstance(op, slc.CallbackOp) and isinstance(following, slc.CallbackOp):
            op = _merge(op, following)
        else:
            op = following


def _merge(first: slc.CallbackOp, second: slc.CallbackOp) -> slc.CallbackOp:
    """Return the two as one; what only the second reads of the first is no result any more."""
    for result, value in zip(first.res, first.yielded, strict=True):
        result.replace_uses_with_if(value, lambda use: second.is_ancestor(use.operation))
    kept = [
        (result, value)
        for callback in (first, second)
        for result, value in zip(callback.res, callback.yielded, strict=True)
        if result.uses
    ]
    ops = [
        op
        for callback in (first, second)
        for op in callback.body.block.ops
        if not isinstance(op, slc.YieldOp)
    ]
    reads = [op for op in ops if isinstance(op, slc.FromStreamOp)]
    code = [op for op in ops if not isinstance(op, slc.FromStreamOp)]
    for op in ops:
        op.detach()
    block = Block([*reads, *code, slc.YieldOp(*(value for _, value in kept))])
    merged = slc.CallbackOp([result.type for result, _ in kept], Region(block))
    Rewriter.insert_op(merged, InsertPoint.before(first))
    for (old, _), new in zip(kept, merged.res, strict=True):
        copy_hint(old, new)
        old.replace_all_uses_with(new)
    erase(second)
    erase(first)
    return merged


def replace_callback(callback: slc.CallbackOp, kept: Sequence[SSAValue]) -> slc.CallbackOp:
    """Put a callback with only these of its results in a callback's place."""
    yielded: dict[SSAValue, SSAValue] = dict(zip(callback.res, callback.yielded, strict=True))
    last = callback.body.block.last_op
    assert last is not None
    Rewriter.replace_op(last, slc.YieldOp(*(yielded[result] for result in kept)))
    new = slc.CallbackOp(
        [result.type for result in kept], callback.detach_region(0), callback.attributes
    )
    Rewriter.insert_op(new, InsertPoint.before(callback))
    for old, result in zip(kept, new.res, strict=True):
        copy_hint(old, result)
        old.replace_all_uses_with(result)
    callback.detach()
    callback.erase(safe_erase=False)
    return new


def replace_loop(loop: slc.ForOp | slcvec.ForOp) -> slc.ForOp | slcvec.ForOp:
    """Put a loop that carries nothing in the place of one whose carried values nothing uses."""
    last = loop.body.block.last_op
    assert last is not None
    Rewriter.replace_op(last, type(last)())
    for argument in reversed(loop.execute_args):
        loop.body.block.erase_arg(argument, safe_erase=False)
    body = loop.detach_region(0)
    new: slc.ForOp | slcvec.ForOp
    if isinstance(loop, slcvec.ForOp):
        new = slcvec.ForOp(
            loop.lower_bound, loop.upper_bound, loop.step, loop.in_mask, loop.lanes,
            loop.loop_config.data, (), body, loop.attributes,
        )  # fmt: skip
    else:
        new = slc.ForOp(loop.lower_bound, loop.upper_bound, loop.step, (), body, loop.attributes)
    Rewriter.insert_op(new, InsertPoint.before(loop))
    loop.detach()
    loop.erase(safe_erase=False)
    return new
