"""`choose-decoupling`: what the access unit runs and what stays execute-side code."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, math, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerType, ModuleOp, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ember_hw.compiler.dialects import slc
from ember_hw.compiler.transforms.ir_facts import (
    NOALIAS,
    OFFLOAD,
    constant,
    functions,
    is_inside,
    may_alias,
    memref_root,
    refuse,
    value_name,
)

_SLICE_ARITHMETIC = (arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.DivSIOp)
_STRUCTURE = (scf.ForOp, scf.IfOp, scf.YieldOp)
_MEMORY = (memref.LoadOp, memref.StoreOp, memref.DimOp, memref.SubviewOp, memref.CastOp)


@dataclass(frozen=True)
class ChooseDecoupling(ModulePass):
    """
    Mark the loops of the access unit and put everything that isn't its work into callbacks.

    Accepts functions of one block whose nests hold `scf.for`, `scf.if`, arith, math and memref ops,
    and whose written memrefs can't overlap the ones the access unit reads (`ember.noalias` on the
    function, or allocations).

    The *access slice* is closed under operands: host values, induction variables of offloaded
    loops, add, sub, mul, div on `index`, casts of integers to `index`, and loads of memrefs that
    the nest doesn't write. A loop is offloaded, and gets the attribute `ember.offload`, if its
    bounds lie in the slice, its step is a positive constant, and it holds a load of the slice at
    any depth. In the body of an offloaded loop the ops of the slice come first; what remains
    between inner loops becomes one `slc.callback` each, whose results are the values that others
    use. An `scf.if` and a loop that isn't offloaded go whole into a callback, so that the access
    unit loads nothing the program wouldn't.

    Constants move to the start of the function. Nothing else changes order.
    """

    name = "choose-decoupling"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run the pass on every function."""
        for function in functions(op):
            _hoist_constants(function)
            for loop in [op for op in function.body.block.ops if isinstance(op, scf.ForOp)]:
                _Nest(function, loop).decouple()


def _hoist_constants(function: func.FuncOp) -> None:
    entry = function.body.block
    nested = [
        op for op in function.walk() if isinstance(op, arith.ConstantOp) and op.parent is not entry
    ]
    for op in nested:
        op.detach()
        Rewriter.insert_op(op, InsertPoint.at_start(entry))


class _Nest:
    """One top-level loop nest: its access slice and its rewriting."""

    def __init__(self, function: func.FuncOp, root: scf.ForOp) -> None:
        self.function = function
        self.root = root
        self.slice: set[Operation] = set()
        self.available: set[SSAValue] = set()
        self.offloaded: list[scf.ForOp] = []
        self.stored: list[SSAValue] = []

    def decouple(self) -> None:
        """Find the slice, then mark and regroup."""
        for op in self.root.walk():
            if isinstance(op, memref.StoreOp):
                self.stored.append(memref_root(op.memref))
            elif not (
                isinstance(op, _STRUCTURE + _MEMORY)
                or op.name.startswith((f"{arith.Arith.name}.", f"{math.Math.name}."))
            ):
                rule = "an scf.for, scf.if, arith, math or memref op"
                refuse(op, "op of a loop nest", rule, repr(op.name))
        if not self._offload(self.root):
            rule = "one whose bounds, step and at least one load the access unit can compute"
            refuse(
                self.root,
                "top-level loop",
                rule,
                f"the loop of {value_name(self.root.body.block.args[0])}",
            )
        for loop in self.offloaded:
            loop.attributes[OFFLOAD] = UnitAttr()
            self._regroup(loop.body.block)

    def _in_slice(self, value: SSAValue) -> bool:
        return value in self.available or not is_inside(value, self.root)

    def _offload(self, loop: scf.ForOp) -> bool:
        """Add the loop's body to the slice; whether the loop is offloaded."""
        step = constant(loop.step)
        bounds = (loop.lb, loop.ub, loop.step)
        if not all(self._in_slice(b) and isinstance(b.type, IndexType) for b in bounds):
            return False
        if step is None or step <= 0:
            return False
        block = loop.body.block
        self.available.add(block.args[0])
        own: list[Operation] = []
        loads = False
        for op in block.ops:
            if isinstance(op, scf.ForOp):
                loads |= self._offload(op)
            elif self._is_slice_op(op):
                own.append(op)
                self.available.update(op.results)
                loads |= isinstance(op, memref.LoadOp)
        if not loads:
            self.available.difference_update(
                [block.args[0], *(r for op in own for r in op.results)]
            )
            return False
        self.slice.update(own)
        self.offloaded.append(loop)
        return True

    def _is_slice_op(self, op: Operation) -> bool:
        if isinstance(op, _SLICE_ARITHMETIC):
            return isinstance(op.result.type, IndexType) and all(map(self._in_slice, op.operands))
        if isinstance(op, arith.IndexCastOp):
            integer = isinstance(op.input.type, IntegerType) and isinstance(
                op.result.type, IndexType
            )
            return integer and self._in_slice(op.input)
        if not isinstance(op, memref.LoadOp) or not all(map(self._in_slice, op.operands)):
            return False
        root = memref_root(op.memref)
        if any(stored is root for stored in self.stored):
            return False
        for stored in self.stored:
            if may_alias(root, stored, self.function):
                what = f"memref {value_name(root)} read by the access unit"
                name = value_name(stored)
                rule = f"known not to overlap the stored {name} (function attribute {NOALIAS!r})"
                refuse(op, what, rule, "possibly the same memory")
        return True

    def _regroup(self, block: Block) -> None:
        """Order a body: slice ops, callbacks and inner loops in program order, the yield."""
        terminator = block.last_op
        assert terminator is not None
        front: list[Operation] = []
        parts: list[Operation | list[Operation]] = []
        for op in list(block.ops):
            if op is terminator:
                continue
            if op in self.slice:
                front.append(op)
            elif op in self.offloaded:
                parts.append(op)
            elif parts and isinstance(parts[-1], list):
                parts[-1].append(op)
            else:
                parts.append([op])
        members = [part if isinstance(part, list) else [part] for part in parts]
        exports = [_used_outside(part) if isinstance(part, list) else [] for part in parts]
        for op in [*front, *(op for part in members for op in part)]:
            op.detach()
        block.insert_ops_before(front, terminator)
        for part, values in zip(parts, exports, strict=True):
            new = _callback(part, values) if isinstance(part, list) else part
            block.insert_ops_before([new], terminator)


def _used_outside(ops: list[Operation]) -> list[SSAValue]:
    """Results of the ops that others use."""
    return [
        result
        for op in ops
        for result in op.results
        if any(not any(o.is_ancestor(use.operation) for o in ops) for use in result.uses)
    ]


def _callback(ops: list[Operation], values: list[SSAValue]) -> slc.CallbackOp:
    """Wrap the (detached) ops; the values become the callback's results."""
    body = Block([*ops, slc.YieldOp(*values)])
    callback = slc.CallbackOp([value.type for value in values], Region(body))
    for value, result in zip(values, callback.res, strict=True):
        if value.name_hint is not None:
            result.name_hint = value.name_hint
        value.replace_uses_with_if(result, lambda use: not callback.is_ancestor(use.operation))
    return callback
