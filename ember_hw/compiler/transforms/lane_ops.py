"""Which execute-side ops have a vector form, and the plan of a callback's vectorisation."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, func, math, memref
from xdsl.dialects.builtin import IndexType, VectorType, i1
from xdsl.ir import Operation, SSAValue

from ember_hw.compiler.dialects import slc, slcvec
from ember_hw.compiler.dialects.quantized import DequantizeOp
from ember_hw.compiler.transforms.ir_facts import (
    may_alias,
    memref_root,
    nest_root,
    unit_inner_stride,
    value_name,
)

#: Ops that work lane by lane on vectors as they are.
_LANE_OPS = (
    arith.AddfOp,
    arith.SubfOp,
    arith.MulfOp,
    arith.DivfOp,
    arith.NegfOp,
    arith.MaximumfOp,
    arith.MinimumfOp,
    arith.MaxnumfOp,
    arith.MinnumfOp,
    arith.ExtFOp,
    arith.TruncFOp,
    arith.AddiOp,
    arith.SubiOp,
    arith.MuliOp,
    arith.AndIOp,
    arith.OrIOp,
    arith.XOrIOp,
    arith.MaxSIOp,
    arith.MinSIOp,
    math.AbsFOp,
    math.Atan2Op,
    math.AtanOp,
    math.CeilOp,
    math.CopySignOp,
    math.CosOp,
    math.Exp2Op,
    math.ExpM1Op,
    math.ExpOp,
    math.FloorOp,
    math.FmaOp,
    math.Log10Op,
    math.Log1pOp,
    math.Log2Op,
    math.LogOp,
    math.PowFOp,
    math.RoundEvenOp,
    math.RsqrtOp,
    math.SinOp,
    math.SqrtOp,
    math.TanhOp,
    math.TruncOp,
)


_FOLDS: dict[type[Operation], slcvec.FoldKind] = {
    arith.AddfOp: slcvec.FoldKind.ADD,
    arith.AddiOp: slcvec.FoldKind.ADD,
    arith.MulfOp: slcvec.FoldKind.MUL,
    arith.MuliOp: slcvec.FoldKind.MUL,
    arith.MaximumfOp: slcvec.FoldKind.MAXIMUMF,
    arith.MinimumfOp: slcvec.FoldKind.MINIMUMF,
    arith.MaxnumfOp: slcvec.FoldKind.MAXNUMF,
    arith.MinnumfOp: slcvec.FoldKind.MINNUMF,
    arith.MaxSIOp: slcvec.FoldKind.MAXSI,
    arith.MinSIOp: slcvec.FoldKind.MINSI,
    arith.AndIOp: slcvec.FoldKind.AND,
    arith.OrIOp: slcvec.FoldKind.OR,
    arith.XOrIOp: slcvec.FoldKind.XOR,
}


class NotVectorizableError(Exception):
    """A loop or callback has no vector form; the text says why. Caught by the passes that ask."""


def is_lane_op(op: Operation) -> bool:
    """Whether the op has a form that works lane by lane."""
    if isinstance(op, arith.CmpiOp):
        return op.lhs.type != i1
    return isinstance(op, (*_LANE_OPS, arith.CmpfOp, arith.SelectOp, DequantizeOp))


def lane_form(op: Operation, operands: Sequence[SSAValue], lanes: int) -> Operation:
    """Return the vector form of an op that has one, on vectors."""
    match op:
        case arith.CmpiOp():
            return slcvec.CompareOp(
                arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data], *operands
            )
        case arith.CmpfOp():
            return slcvec.CompareOp(
                arith.CMPF_COMPARISON_OPERATIONS[op.predicate.value.data], *operands
            )
        case arith.SelectOp():
            return slcvec.SelectOp(*operands)
        case _:
            return type(op).create(
                operands=operands,
                result_types=[VectorType(result.type, [lanes]) for result in op.results],
                properties=op.properties,
                attributes=op.attributes,
            )


@dataclass(frozen=True)
class Fold:
    """An op that adds (multiplies, ..) what an iteration computes to a carried value."""

    kind: slcvec.FoldKind
    carried: SSAValue
    value: SSAValue


def find_folds(loop: slc.ForOp | slcvec.ForOp, callback: slc.CallbackOp) -> dict[Operation, Fold]:
    """
    Return the ops of a loop's one callback that fold into its carried values, one of each.

    Raises
    ------
    NotVectorizableError
        A carried value is used or computed in another way.
    """
    folds: dict[Operation, Fold] = {}
    results = dict(zip(callback.res, callback.yielded, strict=True))
    for carried, yielded in zip(loop.execute_args, loop.yielded, strict=True):
        op = next((use.operation for use in carried.uses), None)
        if op is None or not carried.has_one_use() or type(op) not in _FOLDS:
            raise NotVectorizableError(f"{value_name(carried)} isn't carried for one fold")
        (result,) = op.results
        returned = [other for other, value in results.items() if value is result]
        if returned != [yielded] or not (result.has_one_use() and yielded.has_one_use()):
            raise NotVectorizableError(f"{value_name(carried)} isn't carried for one fold")
        (value,) = (operand for operand in op.operands if operand is not carried)
        folds[op] = Fold(_FOLDS[type(op)], carried, value)
    if len(folds) != len(results):
        raise NotVectorizableError("its callback has results")
    return folds


def is_shifted(op: Operation, induction: Container[SSAValue]) -> bool:
    """Whether the op adds a value that stays the same to the induction variable."""
    return (
        isinstance(op, arith.AddiOp)
        and isinstance(op.result.type, IndexType)
        and (op.lhs in induction) != (op.rhs in induction)
    )


@dataclass
class CallbackPlan:
    """
    Checks one callback of a loop whose induction variable becomes a vector.

    Parameters
    ----------
    induction : set of SSAValue
        Values in the callback that are the loop's induction variable.
    lanes : set of SSAValue
        Values that become vectors; `check` adds the results computed from them.
    folds : dict of Operation to Fold
        Ops that fold lanes into carried values.
    """

    induction: set[SSAValue] = field(default_factory=set[SSAValue])
    lanes: set[SSAValue] = field(default_factory=set[SSAValue])
    folds: dict[Operation, Fold] = field(default_factory=dict[Operation, Fold])

    def check(self, callback: slc.CallbackOp) -> None:
        """
        Follow the vectors through the callback.

        Raises
        ------
        NotVectorizableError
            An op on the way has no vector form, an access isn't contiguous in the induction
            variable, or a store or a load of stored memory doesn't keep to one cell for each lane.
        """
        for op in callback.body.block.ops:
            if op.regions:
                raise NotVectorizableError(f"its callback holds {op.name!r}")
            if isinstance(op, slc.FromStreamOp | slc.YieldOp):
                continue
            if op in self.folds:
                if self.folds[op].value in self.induction:
                    raise NotVectorizableError(f"{op.name!r} computes with the induction variable")
            elif isinstance(op, memref.StoreOp):
                if op.value in self.induction:
                    raise NotVectorizableError("a store writes the induction variable")
                if not self._is_lane_access(op, op.indices, op.memref):
                    raise NotVectorizableError(
                        "a store doesn't have the induction variable as its last index"
                    )
            elif isinstance(op, memref.LoadOp):
                if self._is_lane_access(op, op.indices, op.memref):
                    self.lanes.add(op.res)
            elif is_shifted(op, self.induction) and not self.lanes.intersection(op.operands):
                self.induction.add(op.results[0])
            elif any(operand in self.induction for operand in op.operands):
                raise NotVectorizableError(f"{op.name!r} computes with the induction variable")
            elif any(operand in self.lanes for operand in op.operands):
                if not is_lane_op(op):
                    raise NotVectorizableError(f"{op.name!r} has no vector form")
                self.lanes.update(op.results)
            elif not (op.name.startswith((f"{arith.Arith.name}.", f"{math.Math.name}."))):
                raise NotVectorizableError(f"its callback holds {op.name!r}")
        _check_cells(callback)

    def _is_lane_access(self, op: Operation, indices: Sequence[SSAValue], memory: SSAValue) -> bool:
        """Whether lanes access neighbours; False if all lanes access one cell."""
        *outer, last = indices
        if (
            any(index in self.induction or index in self.lanes for index in outer)
            or last in self.lanes
        ):
            raise NotVectorizableError(f"{op.name!r} isn't contiguous in the induction variable")
        if last not in self.induction:
            return False
        if not unit_inner_stride(memory.type):
            raise NotVectorizableError(
                f"{value_name(memory)} has no unit stride in its last dimension"
            )
        return True


def _check_cells(callback: slc.CallbackOp) -> None:
    """Raise unless each lane keeps to its own cell of each stored memref."""
    accesses = [
        op for op in callback.body.block.ops if isinstance(op, memref.StoreOp | memref.LoadOp)
    ]
    function = nest_root(callback).parent_op()
    assert isinstance(function, func.FuncOp)
    for store in accesses:
        if not isinstance(store, memref.StoreOp):
            continue
        for other in accesses:
            same = memref_root(store.memref) is memref_root(other.memref)
            if same and (
                store.memref is not other.memref or tuple(store.indices) != tuple(other.indices)
            ):
                name = value_name(memref_root(store.memref))
                raise NotVectorizableError(f"stored memref {name} is accessed at two places")
            if not same and may_alias(
                memref_root(store.memref), memref_root(other.memref), function
            ):
                names = value_name(store.memref), value_name(other.memref)
                raise NotVectorizableError(f"stored memref {names[0]} may overlap {names[1]}")
