"""`simplify-casts`: bounds and indices that are host values lose their constant streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ember_hw.compiler.dialects import slc, slcvec
from ember_hw.compiler.transforms.ir_facts import erase, functions, strip_stream


@dataclass(frozen=True)
class SimplifyCasts(ModulePass):
    """
    Strip `slc.to_stream` from loop bounds and indices and erase the casts that nothing reads.

    A loop's bounds change together, when all three are host values, so that they keep one type; the
    mask of a vector loop and the operands of memory and ALU streams change one by one. Attributes
    and execute values stay. Running the pass twice is running it once.
    """

    name = "simplify-casts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run the pass on every function."""
        for function in functions(op):
            for inner in function.walk():
                _simplify(inner)
            _erase_dead_casts(function)


def _simplify(op: Operation) -> None:
    if isinstance(op, slc.ForOp | slcvec.ForOp):
        plain = [strip_stream(bound) for bound in (op.lower_bound, op.upper_bound, op.step)]
        if len({bound.type for bound in plain}) == 1:
            for i, bound in enumerate(plain):
                op.operands[i] = bound
        if isinstance(op, slcvec.ForOp):
            _strip(op, [op.in_mask])
    elif isinstance(op, slc.MemStreamOp | slcvec.MemStreamOp):
        _strip(op, op.indices)
    elif isinstance(op, slc.AluStreamOp):
        _strip(op, op.operands)


def _strip(op: Operation, values: Sequence[SSAValue]) -> None:
    for i, operand in enumerate(op.operands):
        if any(operand is value for value in values):
            op.operands[i] = strip_stream(operand)


def _erase_dead_casts(function: Operation) -> None:
    casts = (
        slc.ToStreamOp,
        slc.CastStreamOp,
        slcvec.BroadcastOp,
        slcvec.TmpVecStreamCastOp,
        slcvec.TmpVecCastOp,
    )
    # Users first, so that a cast that only a dead cast reads goes too.
    for op in reversed(list(function.walk())):
        if isinstance(op, casts) and not any(result.uses for result in op.results):
            erase(op)
