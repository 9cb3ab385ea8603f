"""`choose-decoupling`: what the access unit runs and what stays execute-side code."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ember_hw.compiler.dialects import slc
from ember_hw.compiler.transforms.access_slice import AccessSlice, top_level_nests
from ember_hw.compiler.transforms.ir_facts import EXECUTE, OFFLOAD, functions


@dataclass(frozen=True)
class ChooseDecoupling(ModulePass):
    """
    Mark the loops of the access unit and put everything that isn't its work into callbacks.

    Accepts functions of one block whose nests hold `scf.for`, `scf.if`, arith, math and memref ops,
    and whose written memrefs can't overlap the ones the access unit has to read (`ember.noalias` on
    the function, or allocations).

    `AccessSlice` says what the access unit runs: indices, bounds, the loads they address, and the
    loops that hold such loads. These loops get the attribute `ember.offload`. In the body of an
    offloaded loop the ops of the slice come first; what remains between inner loops becomes one
    `slc.callback` each, whose results are the values that others use. An `scf.if` and a loop that
    isn't offloaded go whole into a callback, so that the access unit loads nothing the program
    wouldn't. Loops with the attribute `ember.host` are host code and stay.

    Constants move to the start of the function. Nothing else changes order.

    Parameters
    ----------
    one_child : bool
        Whether to offload at most one loop directly inside a loop, as a chain of units needs it.
    levels : int, optional
        Most offloaded loops one in the other.
    """

    name = "choose-decoupling"

    one_child: bool = False
    levels: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run the pass on every function."""
        for function in functions(op):
            _hoist_constants(function)
            for loop in top_level_nests(function):
                _Nest(AccessSlice(function, loop, self.one_child, self.levels)).decouple()


def _hoist_constants(function: func.FuncOp) -> None:
    entry = function.body.block
    nested = [
        op for op in function.walk() if isinstance(op, arith.ConstantOp) and op.parent is not entry
    ]
    for op in nested:
        op.detach()
        Rewriter.insert_op(op, InsertPoint.at_start(entry))


class _Nest:
    """One top-level loop nest and its rewriting."""

    def __init__(self, access: AccessSlice) -> None:
        self.slice = access.ops
        self.offloaded = access.offloaded
        self.access = access

    def decouple(self) -> None:
        """Mark and regroup."""
        if self.access.root not in self.offloaded:
            self.access.refuse()
        for loop in self.offloaded:
            loop.attributes[OFFLOAD] = UnitAttr()
            self._regroup(loop.body.block)
        for op in self.access.root.walk():
            op.attributes.pop(EXECUTE, None)

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
