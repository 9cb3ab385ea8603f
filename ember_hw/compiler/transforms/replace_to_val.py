"""`replace-to-val`: the execute side counts iterations itself instead of popping indices."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import IndexType, MemRefType, ModuleOp, VectorType
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ember_hw.compiler.dialects import dlc, slc, slcvec
from ember_hw.compiler.transforms.ir_facts import (
    constant,
    copy_hint,
    erase,
    functions,
    host_value,
    index_constant,
    nest_root,
)
from ember_hw.compiler.transforms.rows import is_row_loop

#: Bundles without a scalar that make up for a token. Ref: sink `core-like`, 4 cycles a token.
_TOKEN_SCALARS = 4

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
    callback behind U's last inner loop, which also runs for an empty inner loop. Where there is
    none, the callback in front of U's first inner loop advances it before anything else, from one
    step below the lower bound on; where there is none either, one is added behind. Behind a U that
    isn't the root, or in front of it, the variable is set back. Streams that nothing reads any more
    are erased.

    Running the pass twice is running it once.

    Parameters
    ----------
    hardware : bool
        Whether a callback that must be added has to pay: it is a control token, and a bundle's
        scalars reach the execute side together, so one scalar less is a gain only if it was the
        last. An operand beside others (a weight) then stays, unless its loops' variables are kept
        current by callbacks that are there anyway, or that another operand pays for. So it does
        where the loop in its loop is known to have few iterations.
    """

    name = "replace-to-val"

    hardware: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run the pass on every function."""
        for function in functions(op):
            _Function(function).align(self.hardware)


@dataclass
class _Function:
    """The variables of one function, by their loop."""

    function: func.FuncOp
    variables: dict[slc.ForOp, int] = field(default_factory=dict["slc.ForOp", int])

    def align(self, hardware: bool) -> None:
        """Replace the reads, then keep the variables current."""
        reads = [
            op
            for op in self.function.walk()
            if isinstance(op, slc.FromStreamOp)
            and isinstance(op.value.type, IndexType)
            and isinstance(op.parent_op(), slc.CallbackOp)
            and _is_affine(op.stream)
        ]
        if hardware:
            reads = _worthwhile(reads)
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
            _maintain(self.function, loop, variable)
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


def _worthwhile(reads: list[slc.FromStreamOp]) -> list[slc.FromStreamOp]:
    """Return the reads that cost no callback, or the last scalars of one that they replace."""
    paid: set[slc.ForOp] = set()
    for block in {read.parent_block(): None for read in reads}:
        assert block is not None
        own = [read for read in reads if read.parent_block() is block]
        loops = {loop for read in own for loop in _loops(read.stream)}
        has_others = any(_is_scalar(op) and op not in own for op in block.ops)
        if not has_others and all(_has_update(loop) or _is_long(loop) for loop in loops):
            paid |= loops
    return [
        read
        for read in reads
        if all(loop in paid or _has_update(loop) for loop in _loops(read.stream))
    ]


def _is_long(loop: slc.ForOp) -> bool:
    """Whether a loop's iteration may have so many of the loop in it that they pay a token."""
    inner = _inner_loops(loop)
    if not inner or not isinstance(inner[-1], slc.ForOp):
        return True
    lower, upper, step = (
        constant(host_value(bound) or bound)
        for bound in (inner[-1].lower_bound, inner[-1].upper_bound, inner[-1].step)
    )
    if lower is None or upper is None or step is None:
        return True
    return (upper - lower + step - 1) // step > _TOKEN_SCALARS


def _is_scalar(op: Operation) -> bool:
    """Whether the op reads a scalar of a bundle."""
    return isinstance(op, slc.FromStreamOp) and not isinstance(
        op.value.type, MemRefType | VectorType
    )


def _has_update(loop: slc.ForOp) -> bool:
    """Whether `_maintain` needs no new callback for a loop."""
    inner = _inner_loops(loop)
    if inner:
        first = constant(host_value(loop.lower_bound) or loop.lower_bound)
        is_before = first is not None and _first_callback_before(inner[0]) is not None
        if not is_before and _callback_behind(inner[-1]) is None:
            return False
    is_root = loop is nest_root(loop)
    return is_root or bool(_callback_behind(loop) or _first_callback_before(loop))


def _inner_loops(loop: slc.ForOp) -> list[Operation]:
    return [
        op
        for op in loop.body.block.ops
        if isinstance(op, slc.ForOp | slcvec.ForOp) and not is_row_loop(op)
    ]


def _maintain(function: func.FuncOp, loop: slc.ForOp, variable: int) -> None:
    """Set, advance and, in an inner loop, reset the variable of a loop."""
    lower, step = host_value(loop.lower_bound), constant(loop.step)
    assert lower is not None, "checked by _is_affine"
    assert step is not None, "checked by _is_affine"
    root = nest_root(loop)

    body = loop.body.block
    inner = _inner_loops(loop)
    first = constant(lower)
    if not inner:
        update = [op for op in body.ops if isinstance(op, slc.CallbackOp)][-1]
        _append(update, dlc.IncrementVarOp(variable, step))
    elif (behind := _callback_behind(inner[-1])) is not None:
        _append(behind, dlc.IncrementVarOp(variable, step))
    elif first is not None and (before := _first_callback_before(inner[0])) is not None:
        lower = index_constant(function, first - step)
        increment = dlc.IncrementVarOp(variable, step)
        Rewriter.insert_op(increment, InsertPoint.at_start(before.body.block))
    else:
        _append(_new_callback_behind(inner[-1]), dlc.IncrementVarOp(variable, step))

    Rewriter.insert_op(dlc.SetVarOp(lower, variable), InsertPoint.before(root))
    if loop is root:
        return
    reset = dlc.SetVarOp(lower, variable)
    place = _callback_behind(loop) or _first_callback_before(loop) or _new_callback_behind(loop)
    _append(place, reset)


def _callback_behind(loop: Operation) -> slc.CallbackOp | None:
    """Return the last of the callbacks behind the loop, if no other loop is between them."""
    found: slc.CallbackOp | None = None
    following = loop.next_op
    while isinstance(following, slc.CallbackOp) or (following and is_row_loop(following)):
        if isinstance(following, slc.CallbackOp):
            found = following
        following = following.next_op
    return found


def _first_callback_before(loop: Operation) -> slc.CallbackOp | None:
    """Return the first callback in front of the loop, if no other loop is between them."""
    found: slc.CallbackOp | None = None
    above = loop.prev_op
    while isinstance(above, slc.CallbackOp) or (above and is_row_loop(above)):
        if isinstance(above, slc.CallbackOp):
            found = above
        above = above.prev_op
    return found


def _new_callback_behind(loop: Operation) -> slc.CallbackOp:
    callback = slc.CallbackOp()
    Rewriter.insert_op(callback, InsertPoint.after(loop))
    return callback


def _append(callback: slc.CallbackOp, op: Operation) -> None:
    last = callback.body.block.last_op
    assert last is not None
    Rewriter.insert_op(op, InsertPoint.before(last))
