"""From a `dlc.compute_loop` to execute code: names for values, element loops for vectors.

A loop of step V over vectors of V lanes becomes a loop of step 1; a vector op outside such a loop
becomes a loop over lanes where its result is stored or folded. Both need that each lane touches its
own elements only, which is checked. Anything else is refused with the name of op and case.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NoReturn

from xdsl.dialects import arith, func, memref, scf, vector
from xdsl.dialects.builtin import MemRefType, VectorType
from xdsl.ir import Block, Operation, SSAValue

from ember_hw.compiler.backend.execute_code import (
    Case,
    Compute,
    ExecuteCode,
    GetVariable,
    If,
    Increment,
    Load,
    Memory,
    Merged,
    Pop,
    ReadRow,
    SetVariable,
    Statement,
    Store,
    Variable,
)
from ember_hw.compiler.backend.extract_values import HostValues, Names, computation, type_name
from ember_hw.compiler.backend.extract_vectors import is_vector, lane_loop, loop
from ember_hw.compiler.dialects import dlc, slc, slcvec
from ember_hw.compiler.dialects.quantized import DequantizeOp
from ember_hw.compiler.transforms.ir_facts import NOALIAS, constant, is_host
from ember_hw.errors import CompileError

__all__ = ["Extraction", "extract_code"]

_IGNORED_AT_FUNCTION_LEVEL = (
    arith.ConstantOp,
    memref.DimOp,
    memref.AllocOp,
    memref.AllocaOp,
    memref.DeallocOp,
    slc.ToStreamOp,
    dlc.SetVarOp,
    func.ReturnOp,
)


def extract_code(compute_loop: dlc.ComputeLoopOp) -> ExecuteCode:
    """Return the execute side of one access program.

    Parameters
    ----------
    compute_loop : ComputeLoopOp
        In a function whose attribute `ember.args` names its arguments. Its variables' initial
        values are what `dlc.set_var` sets between the compute loop above, or the function's
        beginning, and this one. What stands below it, up to the next access program, is its end.

    Returns
    -------
    ExecuteCode
        Memories are named by the argument's symbol; the function's allocations in order `scratch`,
        `scratch_1`, ..

    Raises
    ------
    CompileError
        A case holds what isn't execute code; the message names the op and the case.
    """
    return Extraction(compute_loop).code()


class Extraction:
    """What has been extracted so far; `place` is what messages call the current block."""

    def __init__(self, compute_loop: dlc.ComputeLoopOp) -> None:
        function = compute_loop.parent_op()
        assert isinstance(function, func.FuncOp), "a compute loop stands in a function"
        self.compute_loop, self.function = compute_loop, function
        self.names = Names()
        self.place = "entry"
        self.host = HostValues(function, self.names)
        self.values: dict[SSAValue, str] = {}
        self.variables: dict[int, str] = {}
        self.written: set[str] = set()
        self.used: dict[str, tuple[str, int]] = {}

    def code(self) -> ExecuteCode:
        """Return the code of the whole compute loop."""
        ops = list(self.function.body.block.ops)
        here = ops.index(self.compute_loop)
        initial: dict[int, str] = {}
        for op in self._above(ops, here):
            if isinstance(op, dlc.SetVarOp):
                self.variables[op.variable] = type_name(op.value.type) or self._untyped(op)
                initial[op.variable] = self.value(op, op.value)
        cases: list[Case] = []
        for number, region in zip(
            self.compute_loop.case_ids, self.compute_loop.case_regions, strict=True
        ):
            self.place = f"case {number}"
            cases.append(Case(number, tuple(self.block(region.block))))
        self.place = "end"
        end = self._end(ops[here + 1 :])
        self.host.close()
        memories = {**self.host.memories, **self.used}
        return ExecuteCode(
            memories=tuple(
                Memory(symbol, element, rank, symbol in self.written)
                for symbol, (element, rank) in memories.items()
            ),
            variables=tuple(
                Variable(number, type_, initial.get(number))
                for number, type_ in sorted(self.variables.items())
            ),
            entry=tuple(self.host.statements),
            cases=tuple(cases),
            end=tuple(end),
            no_alias=NOALIAS in self.function.attributes,
        )

    def _above(self, ops: Sequence[Operation], here: int) -> list[Operation]:
        """Return the ops between the compute loop above and this one; refuse effects at the top."""
        first = here
        while first and not isinstance(ops[first - 1], dlc.ComputeLoopOp):
            first -= 1
        if first == 0:
            for op in ops[:here]:
                if _has_effect(op):
                    self.refuse(op, "behind the first access program")
        return list(ops[first:here])

    def _end(self, ops: Iterable[Operation]) -> list[Statement]:
        statements: list[Statement] = []
        mine: list[Operation] = []
        for op in ops:
            if isinstance(op, dlc.ConfigureAccessEngineOp):
                break
            mine.append(op)
        if not any(_has_effect(op) for op in mine):
            return []
        for op in mine:
            is_needed = _has_effect(op) or isinstance(op, dlc.GetVarOp)
            is_needed = is_needed or any(operand in self.values for operand in op.operands)
            if is_needed and not isinstance(op, _IGNORED_AT_FUNCTION_LEVEL):
                statements += self.statement(op)
        return statements

    def refuse(self, op: Operation, rule: str) -> NoReturn:
        """Raise the error that an op must be something else."""
        text = str(op).split("\n", 1)[0]
        raise CompileError(
            f"{op.name!r} in {self.place} must be {rule}, not {text!r}", node=op.name
        )

    def _untyped(self, op: Operation) -> NoReturn:
        self.refuse(op, "of index, i1, i8, i16, i32, i64, f16, bf16, f32, f64 or a row of them")

    def value(self, user: Operation, value: SSAValue) -> str:
        """Return the name of a scalar or a row."""
        if value in self.values:
            return self.values[value]
        if (literal := self.host.literal(value)) is not None:
            return literal
        if not is_host(value):
            self.refuse(user, f"on values of its case, and %{value.name_hint} isn't one")
        name = self.host.value(value)
        if name is None:
            self.refuse(
                user,
                "on constants, dimensions, arguments and integer arithmetic on them where its "
                "operand is no value of its case",
            )
        return name

    def define(self, value: SSAValue, hint: str = "v") -> str:
        """Give a value a name."""
        self.values[value] = self.names.new(value.name_hint or hint)
        return self.values[value]

    def memory(self, op: Operation, value: SSAValue, *, is_written: bool = False) -> str:
        """Return the symbol of a memref."""
        found = self.host.memory(value)
        if found is None:
            self.refuse(op, "of an argument of the function, or of memory that it allocates")
        symbol, element, rank = found
        self.used[symbol] = element, rank
        if is_written:
            self.written.add(symbol)
        return symbol

    def indices(self, op: Operation, indices: Iterable[SSAValue]) -> tuple[str, ...]:
        """Return the names of indices."""
        return tuple(self.value(op, index) for index in indices)

    def block(self, block: Block) -> list[Statement]:
        """Return what the ops of a block become."""
        statements: list[Statement] = []
        for op in block.ops:
            statements += self.statement(op)
        return statements

    def statement(self, op: Operation) -> list[Statement]:
        """Return what an op becomes."""
        match op:
            case dlc.PopOperandOp():
                type_ = type_name(op.result.type) or self._untyped(op)
                return [Pop(self.define(op.result, "row"), type_)]
            case dlc.GetVarOp():
                self.variables[op.variable] = type_name(op.result.type) or self._untyped(op)
                return [GetVariable(self.define(op.result), op.variable)]
            case dlc.SetVarOp():
                return [self._set(op)]
            case dlc.IncrementVarOp():
                self.variables.setdefault(op.variable, "index")
                return [Increment(op.variable, op.increment)]
            case memref.LoadOp():
                return [self.load(op, op.memref, op.indices, op.res)]
            case memref.StoreOp():
                symbol = self.memory(op, op.memref, is_written=True)
                return [Store(symbol, self.indices(op, op.indices), self.value(op, op.value))]
            case slcvec.FromBufferOp() if not isinstance(op.result.type, VectorType):
                row, index = self.value(op, op.memref), self.value(op, op.indices[0])
                return [ReadRow(self.define(op.result), row, index)]
            case DequantizeOp() if not is_vector(op):
                self.values[op.result] = self.value(op, op.quantized)  # a read of the row gives it
                return []
            case scf.ForOp():
                return loop(self, op)
            case scf.IfOp():
                return [self._if(op)]
            case arith.ConstantOp() | memref.DimOp() | dlc.YieldOp() | scf.YieldOp():
                return []
            case _ if is_vector(op):
                return lane_loop(self, op)
            case _:
                return [self.compute(op)]

    def load(
        self, op: Operation, source: SSAValue, indices: Sequence[SSAValue], result: SSAValue
    ) -> Statement:
        """Return the load of an element of a memory or of a row."""
        if source in self.values:
            (index,) = self.indices(op, indices)
            return ReadRow(self.define(result), self.values[source], index)
        symbol, at = self.memory(op, source), self.indices(op, indices)
        return Load(self.define(result), symbol, at)

    def compute(self, op: Operation) -> Compute:
        """Return an operation on scalars."""
        found = computation(op)
        if found is None:
            self.refuse(op, "an operation of execute code")
        operation, type_ = found
        operands = tuple(self.value(op, operand) for operand in op.operands)
        return Compute(self.define(op.results[0]), type_, operation, operands)

    def _set(self, op: dlc.SetVarOp) -> Statement:
        self.variables[op.variable] = type_name(op.value.type) or self._untyped(op)
        if isinstance(op.value.type, MemRefType) and not isinstance(
            op.value.owner, dlc.PopOperandOp
        ):
            self.refuse(op, "of a row that its case pops")
        added = op.value.owner
        if isinstance(added, arith.AddiOp):
            for read, other in ((added.lhs, added.rhs), (added.rhs, added.lhs)):
                amount, get = constant(other), read.owner
                if amount is None or not isinstance(get, dlc.GetVarOp):
                    continue
                if get.variable == op.variable and _is_first_write(get, op):
                    return Increment(op.variable, amount)
        return SetVariable(op.variable, self.value(op, op.value))

    def _if(self, op: scf.IfOp) -> If:
        condition = self.value(op, op.cond)
        then = self.block(op.true_region.block)
        otherwise = self.block(op.false_region.block) if op.false_region.blocks else []
        merged: list[Merged] = []
        if op.output:
            yields = [region.block.last_op for region in (op.true_region, op.false_region)]
            assert all(isinstance(last, scf.YieldOp) for last in yields)
            pairs = zip(*(last.operands for last in yields if last), strict=True)
            for result, (if_true, if_false) in zip(op.output, pairs, strict=True):
                values = self.value(op, if_true), self.value(op, if_false)
                merged.append(Merged(self.define(result), *values))
        return If(condition, tuple(then), tuple(otherwise), tuple(merged))


def _is_first_write(get: Operation, last: dlc.SetVarOp) -> bool:
    """Whether nothing between two ops of one block writes the variable that the second one sets."""
    op: Operation | None = get
    if get.parent is not last.parent:
        return False
    while (op := op.next_op) is not None and op is not last:
        for inner in op.walk():
            if isinstance(inner, dlc.SetVarOp | dlc.IncrementVarOp):
                if inner.variable == last.variable:
                    return False
    return op is last


def _has_effect(op: Operation) -> bool:
    """Whether host code writes memory."""
    if isinstance(op, dlc.ComputeLoopOp | dlc.ConfigureAccessEngineOp):
        return False
    writes = (memref.StoreOp, memref.CopyOp, vector.StoreOp, vector.MaskedStoreOp)
    return any(isinstance(inner, writes) for inner in op.walk())
