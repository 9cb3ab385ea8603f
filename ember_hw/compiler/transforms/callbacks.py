"""What several passes do to callbacks and the loops around them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ember_hw.compiler.dialects import slc, slcvec
from ember_hw.compiler.transforms.ir_facts import copy_hint, erase


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
    ops = [
        op
        for callback in (first, second)
        for op in callback.body.block.ops
        if not isinstance(op, slc.YieldOp)
    ]
    reads: dict[SSAValue, slc.FromStreamOp] = {}
    code: list[Operation] = []
    for op in ops:
        op.detach()
        if not isinstance(op, slc.FromStreamOp):
            code.append(op)
        elif op.stream in reads:
            op.value.replace_all_uses_with(reads[op.stream].value)
            op.erase()
        else:
            reads[op.stream] = op
    kept = [
        (result, value)
        for callback in (first, second)
        for result, value in zip(callback.res, callback.yielded, strict=True)
        if result.uses
    ]
    block = Block([*reads.values(), *code, slc.YieldOp(*(value for _, value in kept))])
    merged = slc.CallbackOp([result.type for result, _ in kept], Region(block))
    Rewriter.insert_op(merged, InsertPoint.before(first))
    for (old, _), new in zip(kept, merged.res, strict=True):
        copy_hint(old, new)
        old.replace_all_uses_with(new)
    erase(second)
    erase(first)
    return merged


def read_in(callback: slc.CallbackOp, stream: SSAValue) -> SSAValue:
    """Return the head of a stream as a callback reads it at its start, from now on if not yet."""
    for op in callback.body.block.ops:
        if isinstance(op, slc.FromStreamOp) and op.stream is stream:
            return op.value
    read = slc.FromStreamOp(stream)
    copy_hint(stream, read.value)
    Rewriter.insert_op(read, InsertPoint.at_start(callback.body.block))
    return read.value


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


def add_result(callback: slc.CallbackOp, value: SSAValue) -> SSAValue:
    """Put a callback that also yields a value of its top level in a callback's place."""
    last = callback.body.block.last_op
    assert last is not None
    Rewriter.replace_op(last, slc.YieldOp(*callback.yielded, value))
    types = [*(result.type for result in callback.res), value.type]
    new = slc.CallbackOp(types, callback.detach_region(0), callback.attributes)
    Rewriter.insert_op(new, InsertPoint.before(callback))
    _replace_results(callback, new)
    return new.res[-1]


def carry(
    loop: slcvec.ForOp, callback: slc.CallbackOp, first: SSAValue, following: SSAValue
) -> None:
    """
    Let a loop carry one value more.

    Parameters
    ----------
    loop : slcvec.ForOp
        Its body already has the new value as its last argument.
    callback : slc.CallbackOp
        A callback of the body.
    first : SSAValue
        Initial value.
    following : SSAValue
        Value for the next iteration, computed at the top level of the callback.
    """
    result = add_result(callback, following)
    end = loop.body.block.last_op
    assert end is not None
    Rewriter.replace_op(end, slcvec.YieldOp(*loop.yielded, result))
    inits = [*loop.init_args, first]
    new_loop = slcvec.ForOp(
        loop.lower_bound, loop.upper_bound, loop.step, loop.in_mask, loop.lanes,
        loop.loop_config.data, inits, loop.detach_region(0), loop.attributes,
    )  # fmt: skip
    Rewriter.insert_op(new_loop, InsertPoint.before(loop))
    _replace_results(loop, new_loop)


def _replace_results(old: Operation, new: Operation) -> None:
    """Let the new op's first results stand for the old op's, and erase the old op."""
    for before, after in zip(old.results, new.results, strict=False):
        copy_hint(before, after)
        before.replace_all_uses_with(after)
    old.detach()
    old.erase(safe_erase=False)


def to_execute_loop(
    loop: slc.ForOp | slcvec.ForOp,
    callback: slc.CallbackOp,
    bounds: tuple[SSAValue, SSAValue, SSAValue],
) -> tuple[scf.ForOp, list[slc.FromStreamOp]]:
    """
    Make the code of a loop's one callback the body of an `scf.for`.

    Parameters
    ----------
    loop : slc.ForOp or slcvec.ForOp
        Only streams are left in its body.
    callback : slc.CallbackOp
        Its callback, which is taken apart; what it yields is what the loop carries.
    bounds : tuple of SSAValue
        Lower bound, upper bound and step of the new loop: host values.

    Returns
    -------
    scf.ForOp
        Carries what the loop carried; not inserted.
    list of FromStreamOp
        What the callback read; not inserted, the uses are for the caller to replace.
    """
    body = Block(arg_types=[IndexType(), *(value.type for value in loop.init_args)])
    copy_hint(loop.induction_variable, body.args[0])
    for old, new in zip(loop.execute_args, body.args[1:], strict=True):
        copy_hint(old, new)
        old.replace_uses_with_if(new, lambda use: callback.is_ancestor(use.operation))
    values: dict[SSAValue, SSAValue] = {
        **dict(zip(callback.res, callback.yielded, strict=True)),
        **dict(zip(loop.execute_args, body.args[1:], strict=True)),
    }
    carried = [values.get(value, value) for value in loop.yielded]
    reads: list[slc.FromStreamOp] = []
    for op in list(callback.body.block.ops):
        op.detach()
        if isinstance(op, slc.FromStreamOp):
            reads.append(op)
        elif not isinstance(op, slc.YieldOp):
            body.add_op(op)
    body.add_op(scf.YieldOp(*carried))
    return scf.ForOp(*bounds, list(loop.init_args), Region(body)), reads


def replace_by_callback(
    loop: slc.ForOp | slcvec.ForOp, ops: Sequence[Operation], execute_loop: scf.ForOp
) -> slc.CallbackOp:
    """Insert a callback behind a loop that runs the ops and yields what the loop carried."""
    block = Block([*ops, execute_loop, slc.YieldOp(*execute_loop.res)])
    callback = slc.CallbackOp([result.type for result in loop.res], Region(block))
    Rewriter.insert_op(callback, InsertPoint.after(loop))
    for old, new in zip(loop.res, callback.res, strict=True):
        copy_hint(old, new)
        old.replace_all_uses_with(new)
    return callback
