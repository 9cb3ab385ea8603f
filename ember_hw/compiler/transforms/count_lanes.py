"""`count-lanes`: a vector loop that folds counts its position instead of sending it."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ember_hw.compiler.dialects import slc, slcvec
from ember_hw.compiler.transforms.callbacks import carry
from ember_hw.compiler.transforms.ir_facts import (
    constant,
    copy_hint,
    erase,
    functions,
    host_value,
    index_constant,
)


@dataclass(frozen=True)
class CountLanes(ModulePass):
    """
    Recompute lane 0's position where the execute side already keeps a value from vector to vector.

    Accepts `slcvec` from `simplify-mem-ops` on. A vector loop qualifies if it carries execute
    values, its lower bound is a host value and its step a constant, and a callback stands right
    behind it, which can set the count back. Its callback then carries the position along instead
    of reading `slcvec.extract %iv[0]`, and one entry a vector is not sent.

    What is computed stays the same. Running the pass twice is running it once.
    """

    name = "count-lanes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run the pass on every function."""
        for function in functions(op):
            for loop in [op for op in function.walk() if isinstance(op, slcvec.ForOp)]:
                if loop.init_args:
                    _count(function, loop)


def _count(function: func.FuncOp, loop: slcvec.ForOp) -> None:
    lower, step = host_value(loop.lower_bound), constant(loop.step)
    ops = list(loop.body.block.ops)
    callbacks = [op for op in ops if isinstance(op, slc.CallbackOp)]
    if lower is None or step is None or len(callbacks) != 1:
        return
    if not isinstance(loop.next_op, slc.CallbackOp):
        return
    (callback,) = callbacks
    reads = [
        op
        for op in callback.body.block.ops
        if isinstance(op, slc.FromStreamOp)
        and isinstance(op.stream.owner, slcvec.ExtractOp)
        and op.stream.owner.stream is loop.induction_variable
        and op.stream.owner.index.value.data == 0
    ]
    if not reads:
        return
    last = callback.body.block.last_op
    assert last is not None
    position = loop.body.block.insert_arg(IndexType(), len(loop.body.block.args))
    copy_hint(reads[0].value, position)
    advanced = arith.AddiOp(position, index_constant(function, step))
    Rewriter.insert_op(advanced, InsertPoint.before(last))
    for read in reads:
        extract = read.stream.owner
        read.value.replace_all_uses_with(position)
        erase(read)
        assert isinstance(extract, slcvec.ExtractOp)
        if not extract.result.uses:
            erase(extract)
    carry(loop, callback, lower, advanced.result)
