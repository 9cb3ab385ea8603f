"""`recompute-indices`: the execute side computes what it would only be sent."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ember_hw.compiler.dialects import dlc, slc, slcvec
from ember_hw.compiler.transforms.ir_facts import copy_hint, erase, functions, strip_stream

_ARITHMETIC: dict[slc.AluKind, type[arith.AddiOp | arith.SubiOp | arith.MuliOp | arith.DivSIOp]] = {
    slc.AluKind.ADD: arith.AddiOp,
    slc.AluKind.SUB: arith.SubiOp,
    slc.AluKind.MUL: arith.MuliOp,
    slc.AluKind.DIV: arith.DivSIOp,
}
_STREAMS = (
    slc.AluStreamOp,
    slc.CastStreamOp,
    slc.MemStreamOp,
    slcvec.MemStreamOp,
    dlc.RowStreamOp,
)


@dataclass(frozen=True)
class RecomputeIndices(ModulePass):
    """
    Send what an index is computed from instead of the index.

    Accepts `dlc` from `slc-to-dlc`. An operand that is a sum, difference, product or quotient needs
    an ALU of the access unit, which has few. It is replaced by the streams that it is computed
    from, and its case computes it, if these are not more operands than before (a row number times
    the rows of a block, for instance), or if the access unit can't: it doesn't divide. Streams that
    nothing reads are erased, loads among them.

    Parameters
    ----------
    eager : bool
        Whether to replace every such operand, also by more operands. The units of a program may
        have no room for it otherwise.
    """

    name = "recompute-indices"

    eager: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run the pass on every function."""
        for function in functions(op):
            engine: dlc.ConfigureAccessEngineOp | None = None
            for inner in list(function.body.block.ops):
                if isinstance(inner, dlc.ConfigureAccessEngineOp):
                    engine = inner
                elif isinstance(inner, dlc.ComputeLoopOp) and engine is not None:
                    _Nest(engine, inner, self.eager).rewrite()


class _Nest:
    """An access program and its compute loop."""

    def __init__(
        self, engine: dlc.ConfigureAccessEngineOp, loop: dlc.ComputeLoopOp, eager: bool
    ) -> None:
        self.engine, self.eager = engine, eager
        self.cases = dict(zip(loop.case_ids, loop.case_regions, strict=True))

    def rewrite(self) -> None:
        """Rewrite every case, then erase what nothing reads."""
        ops = list(self.engine.body.block.ops)
        for callback in (op for op in ops if isinstance(op, dlc.RegisterCallbackOp)):
            registers = [
                op
                for op in ops
                if isinstance(op, dlc.RegisterOperandOp)
                and op.tu is callback.tu
                and op.event == callback.event
            ]
            block = self.cases[callback.id.value.data].block
            pops = [op for op in block.ops if isinstance(op, dlc.PopOperandOp)]
            self._rewrite_case(registers, pops)
        for op in reversed(ops):
            if isinstance(op, _STREAMS) and not op.results[0].uses:
                erase(op)

    def _rewrite_case(
        self, registers: list[dlc.RegisterOperandOp], pops: list[dlc.PopOperandOp]
    ) -> None:
        popped: dict[SSAValue, SSAValue] = {
            register.value: pop.result for register, pop in zip(registers, pops, strict=True)
        }
        replaced: list[dlc.PopOperandOp] = []
        for register, pop in zip(registers, pops, strict=True):
            if not isinstance(register.value.owner, slc.AluStreamOp):
                continue
            missing = [leaf for leaf in _leaves(register.value) if leaf not in popped]
            if len(missing) > 1 and not self.eager and not _has_quotient(register.value):
                continue
            for leaf in missing:
                extra = dlc.RegisterOperandOp(register.tu, register.event.data, leaf)
                Rewriter.insert_op(extra, InsertPoint.before(register))
                assert isinstance(leaf.type, slc.StreamType)
                new = dlc.PopOperandOp(leaf.type.element_type)
                copy_hint(leaf, new.result)
                Rewriter.insert_op(new, InsertPoint.before(pop))
                popped[leaf] = new.result
            made: list[Operation] = []
            value = _compute(register.value, popped, made)
            Rewriter.insert_op(made, InsertPoint.after(pops[-1]))
            copy_hint(pop.result, value)
            pop.result.replace_all_uses_with(value)
            del popped[register.value]
            replaced.append(pop)
            erase(register)
        for pop in replaced:
            erase(pop)


def _leaves(stream: SSAValue) -> list[SSAValue]:
    """Return the streams that an index is computed from, each once."""
    if strip_stream(stream) is not stream or not isinstance(stream.type, slc.StreamType):
        return []
    alu = stream.owner
    if not isinstance(alu, slc.AluStreamOp):
        return [stream]
    return list(dict.fromkeys([*_leaves(alu.lhs), *_leaves(alu.rhs)]))


def _has_quotient(stream: SSAValue) -> bool:
    """Whether an index needs a division, which the access unit doesn't do."""
    alu = stream.owner
    return isinstance(alu, slc.AluStreamOp) and (
        alu.alu_op.data is slc.AluKind.DIV or any(map(_has_quotient, alu.operands))
    )


def _compute(stream: SSAValue, popped: dict[SSAValue, SSAValue], made: list[Operation]) -> SSAValue:
    """Return an index as the execute side computes it; `made` takes the ops."""
    if strip_stream(stream) is not stream or not isinstance(stream.type, slc.StreamType):
        return strip_stream(stream)
    alu = stream.owner
    if stream in popped and not isinstance(alu, slc.AluStreamOp):
        return popped[stream]
    assert isinstance(alu, slc.AluStreamOp), "leaves are popped"
    lhs, rhs = (_compute(operand, popped, made) for operand in (alu.lhs, alu.rhs))
    op = _ARITHMETIC[alu.alu_op.data](lhs, rhs)
    copy_hint(stream, op.result)
    made.append(op)
    return op.result
