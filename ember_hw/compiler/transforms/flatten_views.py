"""`flatten-views`: what the execute side does to a table in a vector it does to the vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, UnitAttr
from xdsl.dialects.utils import get_dynamic_index_list
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ember_hw.compiler.dialects.stream_types import memref_type
from ember_hw.compiler.transforms.access_slice import AccessSlice, top_level_nests
from ember_hw.compiler.transforms.ir_facts import (
    EXECUTE,
    copy_hint,
    defining_block,
    erase,
    functions,
    index_constant,
)

_Access: TypeAlias = memref.LoadOp | memref.StoreOp


@dataclass(frozen=True)
class FlattenViews(ModulePass):
    """
    Replace accesses to a `memref.reinterpret_cast` of a vector that the access unit doesn't do.

    Accepts scf as `choose-decoupling` does, whose parameters it takes. An element [i, k] of a view
    becomes element x + k of its memory, where x = base + i * pitch stands as far out as its
    operands let it, as index arithmetic like any other; the sum with the last index is the execute
    side's (`ember.execute`), so that neighbours stay neighbours. Reads by the access unit keep the
    view, whose shape is checked there. A view that nothing uses any more goes.
    """

    name = "flatten-views"

    one_child: bool = False
    levels: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run the pass on every function."""
        for function in functions(op):
            for nest in top_level_nests(function):
                access = AccessSlice(function, nest, self.one_child, self.levels)
                _Nest(function, nest, access).flatten()
            for view in [v for v in function.walk() if isinstance(v, memref.ReinterpretCastOp)]:
                if not view.result.uses:
                    erase(view)


class _Nest:
    """One nest, and what was computed of the places in its views."""

    def __init__(self, function: func.FuncOp, nest: scf.ForOp, access: AccessSlice) -> None:
        self.function, self.nest = function, nest
        self.kept = access.ops
        self.rows: dict[tuple[SSAValue, ...], SSAValue] = {}
        self.elements: dict[tuple[SSAValue, SSAValue, Block], SSAValue] = {}

    def flatten(self) -> None:
        """Rewrite the accesses of the execute side."""
        for op in list(self.nest.walk()):
            if isinstance(op, _Access) and op not in self.kept:
                view = op.memref.owner
                if isinstance(view, memref.ReinterpretCastOp) and _is_of_vector(view):
                    self._replace(op, view)

    def _replace(self, op: _Access, view: memref.ReinterpretCastOp) -> None:
        *outer, last = op.indices
        key = (view.result, *outer)
        if key not in self.rows:
            self.rows[key] = self._row(op, view, outer)
        row, block = self.rows[key], op.parent_block()
        assert block is not None
        if (row, last, block) not in self.elements:
            element = arith.AddiOp(row, last)
            element.attributes[EXECUTE] = UnitAttr()
            Rewriter.insert_op(element, InsertPoint.before(op))
            self.elements[row, last, block] = element.result
        index = self.elements[row, last, block]
        if isinstance(op, memref.LoadOp):
            load = memref.LoadOp.get(view.source, [index])
            load.attributes.update(op.attributes)
            copy_hint(op.res, load.res)
            Rewriter.replace_op(op, load)
        else:
            Rewriter.replace_op(op, memref.StoreOp.get(op.value, view.source, [index]))

    def _row(self, op: _Access, view: memref.ReinterpretCastOp, outer: list[SSAValue]) -> SSAValue:
        """Return the number in the memory of a row's first element."""
        (base,) = self._values(view.static_offsets.get_values(), view.offsets)
        strides = self._values(view.static_strides.get_values(), view.strides)
        place = self._place(op, [base, *strides, *outer])
        row = base
        for index, stride in zip(outer, strides, strict=False):
            product = arith.MuliOp(index, stride)
            total = arith.AddiOp(row, product)
            Rewriter.insert_op([product, total], place)
            row = total.result
        row.name_hint = row.name_hint or "row"
        return row

    def _values(
        self, static: tuple[int, ...], dynamic: list[SSAValue] | tuple[SSAValue, ...]
    ) -> list[SSAValue]:
        """Return numbers and values of a view's shape as values."""
        items = get_dynamic_index_list(static, dynamic, DYNAMIC_INDEX)
        return [
            item if isinstance(item, SSAValue) else index_constant(self.function, item)
            for item in items
        ]

    def _place(self, op: Operation, operands: list[SSAValue]) -> InsertPoint:
        """Return the outermost place in front of an op where all operands are known."""
        blocks = [defining_block(value) for value in operands]
        anchor: Operation = op
        while anchor.parent_block() not in blocks:
            parent = anchor.parent_op()
            if parent is None or parent is self.nest:
                break
            anchor = parent
        return InsertPoint.before(anchor)


def _is_of_vector(view: memref.ReinterpretCastOp) -> bool:
    """Whether a view has unit stride in the last dimension, in a memory of one."""
    strides = memref_type(view.result).get_strides()
    is_vector = memref_type(view.source).get_num_dims() == 1
    return is_vector and strides is not None and bool(strides) and strides[-1] == 1
