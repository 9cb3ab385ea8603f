"""`slc-vectorizer`: innermost loops advance by a vector of lanes."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IndexType,
    ModuleOp,
    StringAttr,
    VectorType,
    i1,
)
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ember_hw.compiler.dialects import slc, slcvec
from ember_hw.compiler.dialects.stream_types import VECTOR_LENGTHS, hints_of, vector_stream
from ember_hw.compiler.transforms.ir_facts import (
    REMARK,
    constant,
    copy_hint,
    entry_constant,
    functions,
    host_value,
    index_constant,
    nest_root,
    unit_inner_stride,
    value_name,
)
from ember_hw.compiler.transforms.lane_ops import CallbackPlan, NotVectorizableError, find_folds
from ember_hw.compiler.transforms.rows import is_table_length


@dataclass(frozen=True)
class SlcVectorizer(ModulePass):
    """
    Turn innermost loops into vector loops of `vector_length` lanes.

    Accepts `slc` from `scf-to-slc`. A loop qualifies if its step is 1, its bounds are host values,
    its induction variable is only the last index of memory streams of unit inner stride or an index
    in its one callback, and the callback has a vector form: every store has the induction variable
    as its last and only its last index, every other access of that memref is at the same place, and
    what is computed from vectors has a lane form. What the loop carries are reductions: one add,
    mul, max, min, and, or, xor of the carried value and what an iteration computes. The whole
    legality is decided here, so `callback-vectorizer` never has to undo a loop.

    The step becomes `vector_length`, the mask all true, memory streams of the induction variable
    vector streams. The callback stays scalar behind `slcvec.tmp_vec_stream_cast`s, which
    `callback-vectorizer` consumes. A loop that doesn't qualify stays as it is, with the reason in
    the attribute `ember.remark`.

    Parameters
    ----------
    vector_length : int
        Lanes: 2, 3, 4, 8, 16, 32 or 64.
    aligned : bool
        Whether only loops qualify whose lower bound is a constant multiple of the lanes, as parts
        of rows begin there in hardware.

    Raises
    ------
    ValueError
        The vector length is another.
    """

    name = "slc-vectorizer"

    vector_length: int = 8
    aligned: bool = False

    def __post_init__(self) -> None:
        if self.vector_length not in VECTOR_LENGTHS:
            lengths = ", ".join(str(length) for length in VECTOR_LENGTHS)
            raise ValueError(f"vector_length must be one of {lengths}, not {self.vector_length!r}")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run the pass on every function."""
        for function in functions(op):
            for loop in [op for op in function.walk() if isinstance(op, slc.ForOp)]:
                if any(isinstance(op, slc.ForOp | slcvec.ForOp) for op in loop.body.block.ops):
                    continue
                try:
                    _check(loop, self.vector_length if self.aligned else 1)
                except NotVectorizableError as reason:
                    loop.attributes[REMARK] = StringAttr(f"not vectorised: {reason}")
                else:
                    _vectorize(function, loop, self.vector_length)


def _check(loop: slc.ForOp, alignment: int) -> None:
    """Raise `NotVectorizableError` unless the loop qualifies."""
    first = constant(loop.lower_bound)
    if alignment > 1 and (first is None or first % alignment):
        raise NotVectorizableError(f"it doesn't begin at a constant multiple of {alignment}")
    if constant(loop.step) != 1:
        raise NotVectorizableError("its step isn't 1")
    if not isinstance(loop.lower_bound.type, slc.StreamType):
        raise NotVectorizableError("its bounds aren't streams")
    vectors: set[SSAValue] = {loop.induction_variable}
    if host_value(loop.lower_bound) is None:
        raise NotVectorizableError("its lower bound isn't known to the host")
    if host_value(loop.upper_bound) is None and not is_table_length(loop):
        raise NotVectorizableError("its upper bound isn't known to the host")
    for use in loop.induction_variable.uses:
        user = use.operation
        if isinstance(user, slc.FromStreamOp):
            continue
        if not isinstance(user, slc.MemStreamOp):
            raise NotVectorizableError(f"{user.name!r} computes with the induction variable")
        if loop.induction_variable in user.indices[:-1] or not unit_inner_stride(user.memref.type):
            raise NotVectorizableError(f"{value_name(user.memref)} isn't read contiguously")
        vectors.add(user.result)
    for vector in vectors - {loop.induction_variable}:
        for use in vector.uses:
            if not isinstance(use.operation, slc.FromStreamOp):
                raise NotVectorizableError(f"{use.operation.name!r} computes with a vector stream")
    callbacks = [op for op in loop.body.block.ops if isinstance(op, slc.CallbackOp)]
    if len(callbacks) != 1:
        raise NotVectorizableError(f"it has {len(callbacks) or 'no'} callbacks")
    plan = CallbackPlan(folds=find_folds(loop, callbacks[0]))
    for op in callbacks[0].body.block.ops:
        if isinstance(op, slc.FromStreamOp) and op.stream is loop.induction_variable:
            plan.induction.add(op.value)
        elif isinstance(op, slc.FromStreamOp) and op.stream in vectors:
            plan.lanes.add(op.value)
    plan.check(callbacks[0])


def _vectorize(function: func.FuncOp, loop: slc.ForOp, lanes: int) -> None:
    full = DenseIntOrFPElementsAttr.from_list(VectorType(i1, [lanes]), [1] * lanes)
    step = slc.ToStreamOp(index_constant(function, lanes))
    mask = slc.ToStreamOp(entry_constant(function, full, "all"))
    Rewriter.insert_op([step, mask], InsertPoint.before(nest_root(loop)))

    streams = vector_stream(lanes, IndexType()), vector_stream(lanes, i1)
    block = Block(arg_types=[*streams, *(value.type for value in loop.init_args)])
    terminator = slcvec.YieldOp(*loop.yielded)
    block.add_op(terminator)
    new = slcvec.ForOp(
        loop.lower_bound, loop.upper_bound, step, mask, lanes,
        init_args=loop.init_args, body=Region(block),
    )  # fmt: skip
    copy_hint(loop.induction_variable, new.induction_variable)
    new.out_mask.name_hint = "mask"
    olds, news = (*loop.execute_args, *loop.res), (*new.execute_args, *new.res)
    for old, value in zip(olds, news, strict=True):
        copy_hint(old, value)
        old.replace_all_uses_with(value)
    for op in list(loop.body.block.ops):
        if isinstance(op, slc.YieldOp):
            continue
        if isinstance(op, slc.MemStreamOp) and loop.induction_variable in op.indices:
            indices = [*op.indices[:-1], new.induction_variable]
            gather = slcvec.MemStreamOp(op.memref, indices, lanes, **hints_of(op))
            copy_hint(op.result, gather.result)
            block.insert_ops_before([gather], terminator)
            _cast_uses(op.result, gather.result, gather)
            op.detach()
            op.erase()
        else:
            op.detach()
            block.insert_ops_before([op], terminator)
    Rewriter.insert_op(new, InsertPoint.before(loop))
    if loop.induction_variable.uses:
        _cast_uses(loop.induction_variable, new.induction_variable, None)
    loop.detach()
    loop.erase(safe_erase=False)


def _cast_uses(scalar: SSAValue, vector: SSAValue, after: Operation | None) -> None:
    """Let the users of a scalar stream read a temporary cast of the vector stream."""
    cast = slcvec.TmpVecStreamCastOp(vector)
    if after is None:
        block = vector.owner
        assert not isinstance(block, Operation)
        Rewriter.insert_op(cast, InsertPoint.at_start(block))
    else:
        Rewriter.insert_op(cast, InsertPoint.after(after))
    scalar.replace_all_uses_with(cast.result)
