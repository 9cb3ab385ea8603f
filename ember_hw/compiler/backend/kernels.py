"""The cases of a `dlc.compute_loop` as named kernels with their bindings.

Each case is read symbolically, op by op, and must be one accumulation, updates of variables, or
both; `ember_hw.host.kernels` runs what comes out. Accepted accumulations, `%key` being a popped
index or a variable:

| level | case |
| --- | --- |
| 0 | `out[%key, %col] += %v`, all popped |
| 1 | the same with a vector, masked by `slcvec.mask %col 0 D 1` |
| 2, 3 | `scf.for %k = 0 to D`: `out[%key, %k] += row[%k]`, by element or masked vector |

In each of them the addend may be multiplied by a popped scalar. Anything else is an error that
names op and case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn, TypeAlias

from xdsl.dialects import arith, func, memref, scf, vector
from xdsl.dialects.builtin import (
    IndexType,
    IntegerType,
    MemRefType,
    VectorType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ember_hw.compiler.dialects import dlc, slcvec
from ember_hw.compiler.program import JsonValue, Kernel
from ember_hw.compiler.transforms.ir_facts import argument_symbols, constant, host_value
from ember_hw.errors import CompileError

Binding: TypeAlias = "dict[str, JsonValue]"


@dataclass(frozen=True)
class _Popped:
    number: int


@dataclass(frozen=True)
class _Variable:
    number: int


@dataclass(frozen=True)
class _Mask:
    first_lane: SSAValue
    bound: SSAValue


@dataclass(frozen=True)
class _Element:
    """A popped scalar or vector, or the lanes of a row from `index` on; times a popped weight.

    Of a scalar, `is_splat` tells whether it stands in all lanes of a vector.
    """

    operand: int
    index: SSAValue | None = None
    weight: int | None = None
    is_splat: bool = False


@dataclass(frozen=True)
class _Cell:
    memref: SSAValue
    indices: tuple[SSAValue, ...]
    mask: _Mask | None


@dataclass(frozen=True)
class _Sum:
    cell: _Cell
    addend: _Element


_Value: TypeAlias = _Popped | _Variable | _Mask | _Element | _Cell | _Sum


def extract_kernels(loop: dlc.ComputeLoopOp) -> dict[int, Kernel]:
    """Return the kernel of each case.

    Parameters
    ----------
    loop : ComputeLoopOp
        In a function whose attribute `ember.args` names its arguments, after the
        `dlc.configure_access_engine` that pushes its tokens. A variable's first value is set by a
        `dlc.set_var` of a constant at function level, and else 0.

    Returns
    -------
    dict of int to Kernel
        By token: `accumulate` or, without an accumulation, `update`, with the parameters that
        `ember_hw.host.kernels` documents.

    Raises
    ------
    CompileError
        A case holds something that is no kernel; names the op and the case.
    """
    initial = _initial_values(loop)
    pushes = _pushes(loop)
    kernels: dict[int, Kernel] = {}
    for case_id, region in zip(loop.case_ids, loop.case_regions, strict=True):
        if case_id not in pushes:
            raise CompileError(
                f"case {case_id} must be a token that the access program pushes, and isn't",
                node=loop.name,
            )
        kernels[case_id] = _Case(case_id, loop, initial, *pushes[case_id]).read(region.block)
    return kernels


class _Case:
    """Reads one case."""

    def __init__(
        self,
        case_id: int,
        loop: dlc.ComputeLoopOp,
        initial: dict[int, int],
        unit: dlc.NewTuOp,
        streams: Sequence[SSAValue],
    ) -> None:
        self.case_id = case_id
        self.loop = loop
        self.initial = initial
        self.unit = unit
        self.streams = streams
        self.values: dict[SSAValue, _Value] = {}
        self.popped = 0
        self.updated: set[int] = set()
        self.updates: list[JsonValue] = []
        self.accumulation: dict[str, JsonValue] | None = None
        self.row_loop: scf.ForOp | None = None

    def read(self, block: Block) -> Kernel:
        for op in block.ops:
            self.visit(op)
        if self.accumulation is None:
            return Kernel("update", {"updates": self.updates})
        return Kernel("accumulate", {**self.accumulation, "updates": self.updates})

    def visit(self, op: Operation) -> None:
        match op:
            case dlc.PopOperandOp():
                kind = _Element if _is_float(op.result.type) else _Popped
                self.values[op.result] = kind(self.popped)
                self.popped += 1
            case dlc.GetVarOp():
                if op.variable in self.updated:
                    self.refuse(op, "before the updates of its variable")
                self.values[op.result] = _Variable(op.variable)
            case dlc.IncrementVarOp():
                self.update(op, op.variable, "add", op.increment)
            case dlc.SetVarOp():
                value = constant(op.value)
                if value is None:
                    self.refuse(op, "of a constant")
                self.update(op, op.variable, "set", value)
            case arith.IndexCastOp() if isinstance(op.result.type, IndexType):
                if op.input in self.values:
                    self.values[op.result] = self.values[op.input]
            case vector.BroadcastOp():
                source = self.values.get(op.source)
                if isinstance(source, _Element):
                    self.values[op.vector] = replace(source, is_splat=True)
            case slcvec.MaskOp():
                self.values[op.result] = self.mask(op)
            case slcvec.FromBufferOp():
                self.values[op.result] = self.row_element(op, op.memref, op.indices)
            case memref.LoadOp():
                if op.memref in self.values:
                    self.values[op.res] = self.row_element(op, op.memref, op.indices)
                else:
                    self.values[op.res] = _Cell(op.memref, tuple(op.indices), None)
            case vector.MaskedLoadOp():
                mask = self.mask_of(op, op.mask)
                self.values[op.result] = _Cell(op.base, tuple(op.indices), mask)
            case arith.MulfOp():
                self.values[op.result] = self.product(op)
            case arith.AddfOp():
                self.values[op.result] = self.sum(op)
            case memref.StoreOp():
                self.store(op, _Cell(op.memref, tuple(op.indices), None), op.value)
            case vector.MaskedStoreOp():
                mask = self.mask_of(op, op.mask)
                self.store(op, _Cell(op.base, tuple(op.indices), mask), op.value_to_store)
            case scf.ForOp():
                self.visit_loop(op)
            case arith.ConstantOp() | memref.DimOp() | dlc.YieldOp() | scf.YieldOp():
                pass
            case _:
                self.refuse(op, "part of an accumulation or an update of a variable")

    def visit_loop(self, op: scf.ForOp) -> None:
        if self.row_loop is not None or op.iter_args or constant(op.lb) != 0:
            self.refuse(op, "the one loop over a row, from 0 and without carried values")
        self.row_loop = op
        for inner in op.body.block.ops:
            self.visit(inner)
        self.row_loop = None

    def update(self, op: Operation, variable: int, kind: str, value: int) -> None:
        if self.row_loop is not None:
            self.refuse(op, "outside the loop over a row")
        self.updated.add(variable)
        self.updates.append({**self.variable(variable), kind: value})

    def variable(self, number: int) -> Binding:
        return {"variable": number, "initial": self.initial.get(number, 0)}

    def mask(self, op: slcvec.MaskOp) -> _Mask:
        first_lane, lower, bound, element_step = op.operands
        if constant(lower) != 0 or constant(element_step) != 1:
            self.refuse(op, "of lower bound 0 and element step 1")
        return _Mask(first_lane, bound)

    def mask_of(self, op: Operation, value: SSAValue) -> _Mask:
        found = self.values.get(value)
        if not isinstance(found, _Mask):
            self.refuse(op, "masked by an slcvec.mask of its case")
        return found

    def row_element(self, op: Operation, row: SSAValue, indices: Sequence[SSAValue]) -> _Element:
        """Read lanes of a popped row, in the loop over it."""
        popped, loop = self.values.get(row), self.row_loop
        if (
            not isinstance(popped, _Popped)
            or loop is None
            or indices[0] is not loop.body.block.args[0]
        ):
            self.refuse(op, "a read of a popped row at the variable of the loop over it")
        if constant(loop.step) != _lanes(op.results[0].type):
            self.refuse(loop, f"of step {_lanes(op.results[0].type)}, the lanes that it adds")
        stream = self.streams[popped.number].owner
        if not isinstance(stream, dlc.RowStreamOp) or not _same(stream.length, loop.ub):
            self.refuse(loop, "over the whole row")
        return _Element(popped.number, indices[0])

    def product(self, op: arith.MulfOp) -> _Element:
        left, right = self.values.get(op.lhs), self.values.get(op.rhs)
        is_vector = isinstance(op.result.type, VectorType)
        for weight, value in ((left, right), (right, left)):
            if (
                isinstance(weight, _Element)
                and isinstance(value, _Element)
                and weight.index is weight.weight is value.weight is None
                and weight.is_splat is is_vector
                and not value.is_splat
            ):
                return _Element(value.operand, value.index, weight.operand)
        self.refuse(op, "a popped scalar times an addend")

    def sum(self, op: arith.AddfOp) -> _Sum:
        left, right = self.values.get(op.lhs), self.values.get(op.rhs)
        for cell, addend in ((left, right), (right, left)):
            if isinstance(cell, _Cell) and isinstance(addend, _Element) and not addend.is_splat:
                return _Sum(cell, addend)
        self.refuse(op, "an element of an output plus an addend")

    def store(self, op: Operation, cell: _Cell, value: SSAValue) -> None:
        total = self.values.get(value)
        if not isinstance(total, _Sum) or total.cell != cell:
            self.refuse(op, "of a sum to the element that was read for it")
        if self.accumulation is not None:
            self.refuse(op, "the only accumulation of its case")
        if len(cell.indices) != 2:
            self.refuse(op, "into an output of 2 dimensions")
        key, column = cell.indices
        if cell.mask is not None and cell.mask.first_lane is not column:
            self.refuse(op, "masked by its own column")
        part = self.column(op, cell, column, total.addend)
        self.accumulation = {
            "output": self.symbol(op, cell.memref),
            "value": total.addend.operand,
            "key": self.binding(op, key),
            "column": part,
            "weight": total.addend.weight,
        }

    def column(
        self, op: Operation, cell: _Cell, column: SSAValue, addend: _Element
    ) -> Binding | None:
        loop = self.row_loop
        if loop is None:
            if cell.mask is not None and not _same(cell.mask.bound, self.unit.upper_bound):
                self.refuse(op, "masked by the upper bound of its loop")
            return self.binding(op, column)
        if column is not loop.body.block.args[0] or addend.index is not column:
            self.refuse(op, "to the column of the row's element")
        if cell.mask is not None and not _same(cell.mask.bound, loop.ub):
            self.refuse(op, "masked by the upper bound of its loop")
        return None

    def binding(self, op: Operation, index: SSAValue) -> Binding:
        match self.values.get(index):
            case _Popped(number):
                return {"operand": number}
            case _Variable(number):
                return self.variable(number)
            case _:
                self.refuse(op, "at a popped index or a variable")

    def symbol(self, op: Operation, value: SSAValue) -> str:
        function = self.loop.parent_op()
        assert isinstance(function, func.FuncOp), "a compute loop stands in a function"
        symbols = argument_symbols(function)
        if value not in symbols:
            self.refuse(op, "to an argument of the function")
        return symbols[value]

    def refuse(self, op: Operation, rule: str) -> NoReturn:
        raise CompileError(
            f"{op.name!r} in case {self.case_id} must be {rule}, not {_text(op)!r}", node=op.name
        )


def _initial_values(loop: dlc.ComputeLoopOp) -> dict[int, int]:
    """Return the constants that variables are set to before the loop."""
    block = loop.parent_block()
    initial: dict[int, int] = {}
    for op in block.ops if block else ():
        if op is loop:
            break
        if isinstance(op, dlc.SetVarOp):
            value = constant(op.value)
            if value is None:
                raise CompileError(
                    f"first value of variable {op.variable} must be a constant, "
                    f"not that of {_text(op)!r}",
                    node=op.name,
                )
            initial[op.variable] = value
    return initial


def _pushes(loop: dlc.ComputeLoopOp) -> dict[int, tuple[dlc.NewTuOp, list[SSAValue]]]:
    """Return the unit and the operand streams of each token that the access program pushes."""
    above = loop.prev_op
    while above is not None and not isinstance(above, dlc.ConfigureAccessEngineOp):
        above = above.prev_op
    if above is None:
        raise CompileError(
            "dlc.compute_loop must follow the dlc.configure_access_engine that pushes its tokens",
            node=loop.name,
        )
    ops = list(above.body.block.ops)
    operands = [op for op in ops if isinstance(op, dlc.RegisterOperandOp)]
    pushes: dict[int, tuple[dlc.NewTuOp, list[SSAValue]]] = {}
    for op in ops:
        if isinstance(op, dlc.RegisterCallbackOp):
            unit = op.tu.owner
            assert isinstance(unit, dlc.NewTuOp)
            streams = [o.value for o in operands if o.tu is op.tu and o.event == op.event]
            pushes[op.id.value.data] = (unit, streams)
    return pushes


def _same(left: SSAValue, right: SSAValue) -> bool:
    """Whether two values or constant streams are the same on every run."""
    left, right = host_value(left) or left, host_value(right) or right
    if left is right:
        return True
    if constant(left) is not None:
        return constant(left) == constant(right)
    a, b = left.owner, right.owner
    if isinstance(a, memref.DimOp) and isinstance(b, memref.DimOp):
        return a.source is b.source and _same(a.index, b.index)
    return False


def _lanes(type_: Attribute) -> int:
    return type_.get_shape()[0] if isinstance(type_, VectorType) else 1


def _is_float(type_: Attribute) -> bool:
    """Whether a popped value is a float or a vector, not an index or a row."""
    return not isinstance(type_, IntegerType | IndexType | MemRefType)


def _text(op: Operation) -> str:
    return str(op).split("\n", 1)[0]
