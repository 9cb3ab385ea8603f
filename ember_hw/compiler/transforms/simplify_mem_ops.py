"""`simplify-mem-ops`: contiguous accesses need lane 0 and bounds, not index and mask vectors."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, vector
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ember_hw.compiler.dialects import slc, slcvec
from ember_hw.compiler.transforms.callbacks import read_in
from ember_hw.compiler.transforms.ir_facts import (
    constant,
    copy_hint,
    erase,
    functions,
    host_value,
    index_constant,
    is_all_true,
    refuse,
)


@dataclass(frozen=True)
class SimplifyMemOps(ModulePass):
    """
    Let callbacks of vector loops read one index instead of the induction and mask vectors.

    Accepts `slcvec` from `callback-vectorizer`. Where a callback uses the induction vector only for
    its lane 0, it reads the scalar stream `slcvec.extract %iv[0]`; where the loop's lower bound is
    a host value, the mask is recomputed from that index by `slcvec.mask` (element step = step /
    lanes), and from the upper bound, which the callback reads if it is a stream.
    Reads and `slcvec.vec_indvar`s that nothing uses any more are erased.

    What is loaded, stored and computed stays the same. Running the pass twice is running it once.
    """

    name = "simplify-mem-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run the pass on every function."""
        for function in functions(op):
            for loop in [op for op in function.walk() if isinstance(op, slcvec.ForOp)]:
                _Loop(function, loop).simplify()
            for inner in reversed(list(function.walk())):
                if isinstance(inner, slcvec.VecIndvarOp) and not inner.results[0].uses:
                    erase(inner)


class _Loop:
    """One vector loop; `extract` is its lane-0 stream once one is needed."""

    def __init__(self, function: func.FuncOp, loop: slcvec.ForOp) -> None:
        self.function = function
        self.loop = loop
        self.extract: SSAValue | None = next(
            (
                op.result
                for op in loop.body.block.ops
                if isinstance(op, slcvec.ExtractOp)
                and op.stream is loop.induction_variable
                and op.index.value.data == 0
            ),
            None,
        )

    def simplify(self) -> None:
        """Rewrite each callback of the loop."""
        for op in list(self.loop.body.block.ops):
            if isinstance(op, slc.CallbackOp):
                self._callback(op)

    def _callback(self, callback: slc.CallbackOp) -> None:
        loop = self.loop
        for read in [op for op in callback.body.block.ops if isinstance(op, slc.FromStreamOp)]:
            if read.stream is loop.induction_variable:
                firsts = [use.operation for use in read.value.uses]
                if all(_is_lane0(op) for op in firsts):
                    lane0 = self._lane0(callback, read)
                    for op in firsts:
                        op.results[0].replace_all_uses_with(lane0)
                        erase(op)
                    erase(read)
            elif read.stream is loop.out_mask:
                self._mask(callback, read)

    def _mask(self, callback: slc.CallbackOp, read: slc.FromStreamOp) -> None:
        """Recompute the mask on the execute side, if the bounds are known there."""
        loop = self.loop
        lower, step = host_value(loop.lower_bound), host_value(loop.step)
        width = constant(loop.step)
        if lower is None or step is None or width is None or not is_all_true(loop.in_mask):
            return
        if width % loop.lanes:
            refuse(loop, "step of the vector loop", f"a multiple of its {loop.lanes} lanes", width)
        element_step = index_constant(self.function, width // loop.lanes)
        upper = host_value(loop.upper_bound) or read_in(callback, loop.upper_bound)
        lane0 = self._lane0(callback, read)
        mask = slcvec.MaskOp(lane0, lower, upper, element_step, loop.lanes)
        copy_hint(read.value, mask.result)
        reads = [op for op in callback.body.block.ops if isinstance(op, slc.FromStreamOp)]
        Rewriter.insert_op(mask, InsertPoint.after(reads[-1]))
        read.value.replace_all_uses_with(mask.result)
        erase(read)

    def _lane0(self, callback: slc.CallbackOp, before: Operation) -> SSAValue:
        """Return the callback's read of lane 0 of the induction vector."""
        if self.extract is None:
            op = slcvec.ExtractOp(self.loop.induction_variable, 0)
            copy_hint(self.loop.induction_variable, op.result)
            first = next(o for o in self.loop.body.block.ops if isinstance(o, slc.CallbackOp))
            Rewriter.insert_op(op, InsertPoint.before(first))
            self.extract = op.result
        for op in callback.body.block.ops:
            if isinstance(op, slc.FromStreamOp) and op.stream is self.extract:
                return op.value
        read = slc.FromStreamOp(self.extract)
        copy_hint(self.extract, read.value)
        Rewriter.insert_op(read, InsertPoint.before(before))
        return read.value


def _is_lane0(op: Operation) -> bool:
    return (
        isinstance(op, vector.ExtractOp)
        and not op.dynamic_position
        and tuple(op.static_position.get_values()) == (0,)
    )
