"""`replace-to-val`: the execute side counts iterations itself instead of popping indices."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ember_hw.compiler.dialects import dlc, slc, slcvec
from ember_hw.compiler.transforms.callbacks import is_row_loop
from ember_hw.compiler.transforms.ir_facts import (
    constant,
    copy_hint,
    erase,
    functions,
    host_value,
    nest_root,
)

_ARITHMETIC: dict[slc.AluKind, type[arith.AddiOp | arith.SubiOp | arith.MuliOp]] = {
    slc.AluKind.ADD: arith.AddiOp,
    slc.AluKind.SUB: arith.SubiOp,
    slc.AluKind.MUL: arith.MuliOp,
}


@dataclass(frozen=True)
class ReplaceToVal(ModulePass):
    """
    Align the queues: recompute an affine index instead of sending it.

    Accepts `slc` or `slcvec` at any level. A callback's read of an index stream that sums and
    scales induction variables, constants and host values becomes arithmetic on one execute-side
    variable per loop (`dlc.get_var`). The loops must have a lower bound that is a host value and a
    constant step; others keep their operand.

    The variable of loop U starts at U's lower bound (`dlc.set_var` before the nest). It advances
    once per iteration of U: at the end of U's callback if U is innermost, else at the end of the
    callback behind U's last inner loop, which is added where there is none, and which also runs for
    an empty inner loop. Behind a U that isn't the root the variable is set back. Streams that
    nothing reads any more are erased.

    Running the pass twice is running it once.
    """

    name = "replace-to-val"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run the pass on every function."""
        for function in functions(op):
            _Function(function).align()


@dataclass
class _Function:
    """The variables of one function, by their loop."""

    function: func.FuncOp
    variables: dict[slc.ForOp, int] = field(default_factory=dict["slc.ForOp", int])

    def align(self) -> None:
        """Replace the reads, then keep the variables current."""
        reads = [
            op
            for op in self.function.walk()
            if isinstance(op, slc.FromStreamOp)
            and isinstance(op.value.type, IndexType)
            and isinstance(op.parent_op(), slc.CallbackOp)
            and _is_affine(op.stream)
        ]
        loops = {loop for read in reads for loop in _loops(read.stream)}
        used = [
            op.variable
            for op in self.function.walk()
            if isinstance(op, dlc.SetVarOp | dlc.GetVarOp)
        ]
        number = max(used, default=-1) + 1
        for op in self.function.walk():
            if isinstance(op, slc.ForOp) and op in loops:
                self.variables[op] = number
                number += 1
        for read in reads:
            value = self._compute(read.stream, read)
            copy_hint(read.value, value)
            read.value.replace_all_uses_with(value)
            erase(read)
        for loop, variable in self.variables.items():
            _maintain(loop, variable)
        dead = (slc.AluStreamOp, slcvec.ExtractOp)
        for op in reversed(list(self.function.walk())):
            if isinstance(op, dead) and not op.result.uses:
                erase(op)

    def _compute(self, stream: SSAValue, read: Operation) -> SSAValue:
        """Recompute the stream's head in front of the read."""
        host = host_value(stream)
        if host is not None:
            return host
        new: dlc.GetVarOp | arith.AddiOp | arith.SubiOp | arith.MuliOp
        if isinstance(stream.owner, slc.AluStreamOp):
            alu = stream.owner
            kind = _ARITHMETIC[alu.alu_op.data]
            new = kind(self._compute(alu.lhs, read), self._compute(alu.rhs, read))
        else:
            variable = self.variables[_loop_of(stream)]
            block = read.parent_block()
            assert block is not None
            for op in block.ops:
                if isinstance(op, dlc.GetVarOp) and op.variable == variable:
                    return op.result
            new = dlc.GetVarOp(IndexType(), variable)
        Rewriter.insert_op(new, InsertPoint.before(read))
        copy_hint(stream, new.results[0])
        return new.results[0]


def _loop_of(stream: SSAValue) -> slc.ForOp:
    assert isinstance(stream, BlockArgument)
    loop = stream.owner.parent_op()
    assert isinstance(loop, slc.ForOp)
    return loop


def _is_affine(stream: SSAValue) -> bool:
    """Whether the stream is affine in induction variables the execute side can count."""
    if host_value(stream) is not None:
        return True
    if isinstance(stream, BlockArgument):
        loop = stream.owner.parent_op()
        return (
            isinstance(loop, slc.ForOp)
            and host_value(loop.lower_bound) is not None
            and constant(loop.step) is not None
        )
    if not isinstance(stream.owner, slc.AluStreamOp):
        return False
    alu = stream.owner
    if alu.alu_op.data not in _ARITHMETIC or not (_is_affine(alu.lhs) and _is_affine(alu.rhs)):
        return False
    scales = alu.alu_op.data is slc.AluKind.MUL
    return not scales or host_value(alu.lhs) is not None or host_value(alu.rhs) is not None


def _loops(stream: SSAValue) -> set[slc.ForOp]:
    """Return the loops whose induction variables an affine stream reads."""
    if host_value(stream) is not None:
        return set()
    if isinstance(stream.owner, slc.AluStreamOp):
        return _loops(stream.owner.lhs) | _loops(stream.owner.rhs)
    return {_loop_of(stream)}


def _maintain(loop: slc.ForOp, variable: int) -> None:
    """Set, advance and, in an inner loop, reset the variable of a loop."""
    lower, step = host_value(loop.lower_bound), constant(loop.step)
    assert lower is not None, "checked by _is_affine"
    assert step is not None, "checked by _is_affine"
    root = nest_root(loop)
    Rewriter.insert_op(dlc.SetVarOp(lower, variable), InsertPoint.before(root))

    body = loop.body.block
    inner = [
        op for op in body.ops if isinstance(op, slc.ForOp | slcvec.ForOp) and not is_row_loop(op)
    ]
    if inner:
        update = _callback_behind(inner[-1])
    else:
        update = [op for op in body.ops if isinstance(op, slc.CallbackOp)][-1]
    _append(update, dlc.IncrementVarOp(variable, step))
    if loop is not root:
        _append(_callback_behind(loop), dlc.SetVarOp(lower, variable))


def _callback_behind(loop: Operation) -> slc.CallbackOp:
    """Return the last of the callbacks right behind the loop; a new one if there is none."""
    found: slc.CallbackOp | None = None
    following = loop.next_op
    while isinstance(following, slc.CallbackOp):
        found, following = following, following.next_op
    if found is None:
        found = slc.CallbackOp()
        Rewriter.insert_op(found, InsertPoint.after(loop))
    return found


def _append(callback: slc.CallbackOp, op: Operation) -> None:
    last = callback.body.block.last_op
    assert last is not None
    Rewriter.insert_op(op, InsertPoint.before(last))
