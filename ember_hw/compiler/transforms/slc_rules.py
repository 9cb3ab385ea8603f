"""Soundness rules of `slc` and `slcvec` that a single op can't see."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp, VectorType
from xdsl.ir import BlockArgument, Operation, SSAValue, Use

from ember_hw.compiler.dialects import dlc, slc, slcvec
from ember_hw.compiler.dialects.stream_types import StreamType, head_type, vector_shape
from ember_hw.compiler.transforms.ir_facts import constant, value_name
from ember_hw.compiler.transforms.violation import Violation

STREAM_OPS = (
    slc.ToStreamOp,
    slc.CastStreamOp,
    slc.MemStreamOp,
    slc.AluStreamOp,
    slc.ViewOp,
    slcvec.MemStreamOp,
    slcvec.BroadcastOp,
    slcvec.ExtractOp,
    slcvec.TmpVecStreamCastOp,
    slcvec.BufStreamOp,
    slcvec.ToBufferOp,
)
"""Ops of the access side that compute a stream or fill a row."""

LOOPS = (slc.ForOp, slcvec.ForOp)
"""Loops of the access side."""

_MARKERS = (slc.AccelerateForOp, slc.ConfigureOp, slcvec.VectorizeForOp)
_TEMPORARIES = (slcvec.TmpVecStreamCastOp, slcvec.TmpVecCastOp)
_LANE_OPS = (slcvec.FromBufferOp, slcvec.MaskOp, slcvec.VecIndvarOp)


def slc_violations(module: ModuleOp, *, allow_temporaries: bool = False) -> Iterator[Violation]:
    """Yield every broken rule of `slc` and `slcvec`, in text order."""
    for op in module.walk():
        yield from _check_stream_operands(op)
        if isinstance(op, slc.FromStreamOp):
            if not isinstance(op.parent_op(), slc.CallbackOp):
                yield Violation(
                    op, f"place must be the top level of an slc.callback, not {_parent_name(op)}"
                )
        elif isinstance(op, LOOPS):
            yield from _check_loop(op)
        elif isinstance(op, slc.CallbackOp):
            yield from _check_execute_values(op, op.res)
        elif isinstance(op, slcvec.MemStreamOp):
            yield from _check_gather(op)
        elif isinstance(op, slcvec.BufStreamOp):
            yield from _check_writers(op)
        elif isinstance(op, slcvec.ToBufferOp):
            yield from _check_buffer_index(op)
        elif isinstance(op, _LANE_OPS):
            yield from _check_chunk(op)
        if isinstance(op, _TEMPORARIES) and not allow_temporaries:
            yield Violation(op, "op must be gone after the vectorizer, not left")
        if isinstance(op, STREAM_OPS + LOOPS + (slc.CallbackOp,)) and _callback_around(op):
            yield Violation(op, "place must be the access side, not inside an slc.callback")


def _parent_name(op: Operation) -> str:
    parent = op.parent_op()
    return "detached" if parent is None else parent.name


def _callback_around(op: Operation) -> slc.CallbackOp | None:
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, slc.CallbackOp):
        parent = parent.parent_op()
    return parent


def _check_stream_operands(op: Operation) -> Iterator[Violation]:
    """Check that a callback reads streams by `slc.from_stream` alone."""
    if isinstance(op, (slc.FromStreamOp, *STREAM_OPS, *LOOPS)) or _callback_around(op) is None:
        return
    for operand in op.operands:
        if isinstance(operand.type, StreamType):
            yield Violation(
                op, f"operand in a callback must be read by slc.from_stream, not {operand.type}"
            )


def _check_loop(loop: slc.ForOp | slcvec.ForOp) -> Iterator[Violation]:
    for init in loop.init_args:
        if isinstance(init.type, StreamType):
            yield Violation(loop, f"init_args must be execute values, not {init.type}")
    yield from _check_execute_values(loop, (*loop.execute_args, *loop.res))
    yield from _check_body_order(loop)
    if isinstance(loop, slcvec.ForOp):
        step = constant(loop.step)
        if step is None or step % loop.lanes:
            found = "unknown" if step is None else step
            yield Violation(loop, f"step must be a constant multiple of {loop.lanes}, not {found}")


def _check_body_order(loop: slc.ForOp | slcvec.ForOp) -> Iterator[Violation]:
    """Check the order: streams first, then callbacks and inner loops."""
    streams_over = False
    for op in loop.body.block.ops:
        if isinstance(op, (slc.CallbackOp, *LOOPS)):
            streams_over = True
        elif isinstance(op, STREAM_OPS):
            if streams_over:
                yield Violation(op, "stream must stand above callbacks and inner loops, not below")
        elif not isinstance(op, (slc.YieldOp, slcvec.YieldOp, *_MARKERS)):
            yield Violation(op, f"op must stand in an slc.callback, not directly in {loop.name}")


def _check_execute_values(op: Operation, values: tuple[SSAValue, ...]) -> Iterator[Violation]:
    """Check that execute values stay off the access side: callbacks, `init_args`, yields, host."""
    for value in values:
        for use in value.uses:
            if not _is_execute_use(use):
                yield Violation(
                    op,
                    f"execute value {value_name(value)} must be used in callbacks, init_args and "
                    f"yields, not by {use.operation.name}",
                )


def _is_execute_use(use: Use) -> bool:
    user = use.operation
    if _callback_around(user) is not None or isinstance(
        user, slc.YieldOp | slcvec.YieldOp | scf.YieldOp
    ):
        return True
    if isinstance(user.parent_op(), func.FuncOp) and not isinstance(user, STREAM_OPS + LOOPS):
        # The host takes over what a whole nest has computed.
        return True
    if isinstance(user, slc.ForOp | scf.ForOp):
        return use.index >= 3
    return isinstance(user, slcvec.ForOp) and use.index >= 4


def _check_gather(op: slcvec.MemStreamOp) -> Iterator[Violation]:
    for index in op.indices[:-1]:
        if isinstance(head_type(index.type), VectorType):
            yield Violation(op, f"index before the last must be a scalar, not {index.type}")


def _check_writers(op: slcvec.BufStreamOp) -> Iterator[Violation]:
    writers = [use for use in op.result.uses if isinstance(use.operation, slcvec.ToBufferOp)]
    if len(writers) != 1:
        yield Violation(
            op, f"number of slcvec.to_buffer into a buffer must be 1, not {len(writers)}"
        )


def _check_buffer_index(op: slcvec.ToBufferOp) -> Iterator[Violation]:
    parent = op.parent_op()
    index = op.indices[0]
    if not isinstance(parent, LOOPS) or index is not parent.induction_variable:
        yield Violation(
            op,
            f"index must be the induction variable of the loop around, not {value_name(index)}",
        )


def _check_chunk(
    op: slcvec.FromBufferOp | slcvec.MaskOp | slcvec.VecIndvarOp,
) -> Iterator[Violation]:
    """Check that chunks of lanes don't overlap: a step is lanes times the lanes' distance."""
    if isinstance(op, slcvec.FromBufferOp):
        if not isinstance(_execute_parent(op), slc.CallbackOp | dlc.ComputeLoopOp):
            yield Violation(op, f"place must be an slc.callback, not {_parent_name(op)}")
        position, distance = op.indices[0], 1
    else:
        position, distance = op.induction_variable, constant(op.element_step)
    shape = vector_shape(op.result.type)
    loop = position.owner.parent_op() if isinstance(position, BlockArgument) else None
    if shape is None or not isinstance(loop, scf.ForOp) or position is not loop.body.block.args[0]:
        return
    step = constant(loop.step)
    if step is None or distance is None or step == shape[0] * distance:
        return
    yield Violation(
        op, f"step of the scf.for over its chunks must be {shape[0] * distance}, not {step}"
    )


def _execute_parent(op: Operation) -> Operation | None:
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, slc.CallbackOp | dlc.ComputeLoopOp):
        parent = parent.parent_op()
    return parent
