"""`callback-vectorizer`: the code of callbacks follows the vectors of their loop."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, vector
from xdsl.dialects.builtin import (
    IndexType,
    ModuleOp,
    VectorType,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ember_hw.compiler.dialects import slc, slcvec
from ember_hw.compiler.transforms.ir_facts import (
    copy_hint,
    entry_constant,
    erase,
    functions,
    refuse,
    zero_vector,
)
from ember_hw.compiler.transforms.lane_ops import (
    CallbackPlan,
    Fold,
    NotVectorizableError,
    find_folds,
    is_lane_op,
    is_shifted,
    lane_form,
)


@dataclass(frozen=True)
class CallbackVectorizer(ModulePass):
    """
    Give callbacks of vector loops their vector form and consume every temporary cast.

    Accepts what `slc-vectorizer` leaves. A callback reads vectors instead of their casts; ops on
    them become lane ops, a scalar next to a vector is broadcast, a load or store at the induction
    variable becomes `vector.maskedload`/`vector.maskedstore` at lane 0 under the loop's mask. Lanes
    beyond the loop touch no memory.

    The order of additions to one memory cell stays the same. A callback without a vector form is an
    error here; loops that hold one were left scalar by `slc-vectorizer`.
    """

    name = "callback-vectorizer"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run the pass on every function."""
        for function in functions(op):
            for loop in [op for op in function.walk() if isinstance(op, slcvec.ForOp)]:
                for inner in list(loop.body.block.ops):
                    if isinstance(inner, slc.CallbackOp):
                        _Callback(function, loop, inner).vectorize()
                for inner in list(loop.body.block.ops):
                    if isinstance(inner, slcvec.TmpVecStreamCastOp):
                        _erase_cast(inner)


def _erase_cast(cast_op: slcvec.TmpVecStreamCastOp) -> None:
    for use in cast_op.result.uses:
        user = use.operation
        refuse(user, "user of a vector stream", "an slc.from_stream", repr(user.name))
    erase(cast_op)


class _Callback:
    """One callback of a vector loop."""

    def __init__(self, function: func.FuncOp, loop: slcvec.ForOp, callback: slc.CallbackOp) -> None:
        self.function = function
        self.loop = loop
        self.callback = callback
        # The vector of each scalar that is one; the lane-0 index of the induction variable.
        self.vectors: dict[SSAValue, SSAValue] = {}
        self.lane0: dict[SSAValue, SSAValue] = {}
        self.mask: SSAValue | None = None
        self.folds: dict[Operation, Fold] = {}

    def vectorize(self) -> None:
        """Rewrite the callback's ops in order."""
        self._check()
        done: list[Operation] = []
        for op in list(self.callback.body.block.ops):
            if self._rewrite(op):
                done.append(op)
        for op in reversed(done):
            erase(op)

    def _check(self) -> None:
        plan = CallbackPlan()
        for op in self.callback.body.block.ops:
            if isinstance(op, slc.FromStreamOp) and isinstance(
                op.stream.owner, slcvec.TmpVecStreamCastOp
            ):
                source = op.stream.owner.source
                target = plan.induction if source is self.loop.induction_variable else plan.lanes
                target.add(op.value)
        if not plan.induction and not plan.lanes and not self.loop.init_args:
            return
        try:
            plan.folds = self.folds = find_folds(self.loop, self.callback)
            plan.check(self.callback)
        except NotVectorizableError as reason:
            refuse(
                self.callback, "callback of a vector loop", "vectorisable", f"one where {reason}"
            )

    def _rewrite(self, op: Operation) -> bool:
        """Replace the op by its vector form; whether there was one to replace."""
        here = InsertPoint.before(op)
        if isinstance(op, slc.FromStreamOp) and isinstance(
            op.stream.owner, slcvec.TmpVecStreamCastOp
        ):
            self._read(op, op.stream.owner.source, here)
        elif isinstance(op, memref.LoadOp) and op.indices and op.indices[-1] in self.lane0:
            zeros = self._zeros(op.res.type)
            indices = [*op.indices[:-1], self.lane0[op.indices[-1]]]
            load = vector.MaskedLoadOp(op.memref, indices, self._mask(here), zeros)
            self._define(op.res, load.result, load, here)
        elif isinstance(op, memref.StoreOp) and op.indices and op.indices[-1] in self.lane0:
            indices = [*op.indices[:-1], self.lane0[op.indices[-1]]]
            value = self._vector(op.value, here)
            Rewriter.insert_op(
                vector.MaskedStoreOp(op.memref, indices, self._mask(here), value), here
            )
        elif is_shifted(op, self.lane0):
            first, second = (self.lane0.get(operand, operand) for operand in op.operands)
            new = arith.AddiOp(first, second)
            Rewriter.insert_op(new, here)
            copy_hint(op.results[0], new.result)
            self.lane0[op.results[0]] = new.result
        elif op in self.folds:
            fold = self.folds[op]
            value = self._vector(fold.value, here)
            new = slcvec.FoldOp(fold.kind, fold.carried, value, self._mask(here))
            Rewriter.insert_op(new, here)
            copy_hint(op.results[0], new.result)
            op.results[0].replace_all_uses_with(new.result)
        elif is_lane_op(op) and any(operand in self.vectors for operand in op.operands):
            operands = [self._vector(operand, here) for operand in op.operands]
            new = lane_form(op, operands, self.loop.lanes)
            self._define(op.results[0], new.results[0], new, here)
        else:
            return False
        return True

    def _read(self, op: slc.FromStreamOp, source: SSAValue, here: InsertPoint) -> None:
        read = slc.FromStreamOp(source)
        if source is not self.loop.induction_variable:
            self._define(op.value, read.value, read, here)
            return
        first = vector.ExtractOp(read.value, [0], IndexType())
        Rewriter.insert_op([read, first], here)
        copy_hint(op.value, read.value)
        copy_hint(op.value, first.result)
        self.lane0[op.value] = first.result

    def _mask(self, here: InsertPoint) -> SSAValue:
        if self.mask is None:
            read = slc.FromStreamOp(self.loop.out_mask)
            block = self.callback.body.block
            reads = [op for op in block.ops if isinstance(op, slc.FromStreamOp)]
            place = InsertPoint.after(reads[-1]) if reads else InsertPoint.at_start(block)
            Rewriter.insert_op(read, place)
            copy_hint(self.loop.out_mask, read.value)
            self.mask = read.value
        return self.mask

    def _vector(self, value: SSAValue, here: InsertPoint) -> SSAValue:
        if value not in self.vectors:
            splat = vector.BroadcastOp(value, self._type(value.type))
            self._define(value, splat.vector, splat, here)
        return self.vectors[value]

    def _zeros(self, element: Attribute) -> SSAValue:
        return entry_constant(self.function, zero_vector(element, self.loop.lanes), "zeros")

    def _type(self, element: Attribute) -> VectorType[Attribute]:
        return VectorType(element, [self.loop.lanes])

    def _define(self, old: SSAValue, new: SSAValue, op: Operation, here: InsertPoint) -> None:
        Rewriter.insert_op(op, here)
        copy_hint(old, new)
        self.vectors[old] = new
