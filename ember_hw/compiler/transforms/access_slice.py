"""The access slice of a loop nest: what the access unit can compute, and why not the rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn

from xdsl.dialects import arith, func, math, memref, scf
from xdsl.dialects.builtin import Float64Type, IndexType, IntegerType, ModuleOp
from xdsl.ir import Operation, SSAValue

from ember_hw.compiler.dialects.quantized import DequantizeOp, QuantizedType
from ember_hw.compiler.dialects.stream_types import memref_type
from ember_hw.compiler.transforms.ir_facts import (
    EXECUTE,
    HOST,
    NOALIAS,
    constant,
    functions,
    is_inside,
    may_alias,
    memref_root,
    refuse,
    unit_inner_stride,
    value_name,
)
from ember_hw.compiler.transforms.violation import describe

_ARITHMETIC = (arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.DivSIOp)
_STRUCTURE = (scf.ForOp, scf.IfOp, scf.YieldOp)
_MEMORY = (
    memref.LoadOp,
    memref.StoreOp,
    memref.DimOp,
    memref.SubviewOp,
    memref.CastOp,
    memref.ReinterpretCastOp,
)


@dataclass(frozen=True)
class Decision:
    """
    Whether a loop or load of the source runs on the access unit.

    Parameters
    ----------
    function, op : str
        Name of the function; the op with its result and place in the text.
    subject : str
        Induction variable of a loop, memref of a load.
    is_offloaded : bool
        Whether the access unit runs it.
    reason : str
        Why not; empty if it does.
    """

    function: str
    op: str
    subject: str
    is_offloaded: bool
    reason: str = ""

    def __str__(self) -> str:
        what = f"{self.function}: {self.op} {self.subject}"
        return f"{what}: access unit" if self.is_offloaded else f"{what}: {self.reason}"


@dataclass
class AccessSlice:
    """
    What the access unit runs of one top-level nest.

    The slice is closed under operands: host values, induction variables of offloaded loops, add,
    sub, mul, div on `index`, casts of integers to `index`, tables of two dimensions that a
    `memref.reinterpret_cast` of such values places in a memory of one, and loads of memrefs that
    the nest doesn't write. Of f64, which is wider than the unit's values, it loads rows only. A
    loop is offloaded if its bounds lie in the slice, its step is a positive constant, and it holds
    a load of the slice at any depth.

    Parameters
    ----------
    function, root : FuncOp, ForOp
        The nest and where it stands.
    one_child : bool
        Whether to offload at most one loop directly inside a loop: the first that reads through an
        index from memory, else the first.
    levels : int, optional
        Most loops of the access unit, one in the other.

    Attributes
    ----------
    ops : set of Operation
        Loads, casts and index arithmetic of the slice.
    offloaded : list of ForOp
        In pre-order.
    reasons : dict of Operation to str
        Why each other loop and load isn't offloaded.
    """

    function: func.FuncOp
    root: scf.ForOp
    one_child: bool = False
    levels: int | None = None
    ops: set[Operation] = field(default_factory=set[Operation])
    offloaded: list[scf.ForOp] = field(default_factory=list[scf.ForOp])
    reasons: dict[Operation, str] = field(default_factory=dict[Operation, str])

    def __post_init__(self) -> None:
        self._available: set[SSAValue] = set()
        self._alias: tuple[Operation, SSAValue, SSAValue] | None = None
        self._stored = [memref_root(op.memref) for op in _checked_stores(self.root)]
        self._visit(self.root, 1)
        for op in self.root.walk():
            if isinstance(op, scf.ForOp | memref.LoadOp) and self._is_left(op):
                self.reasons.setdefault(op, "it stands in code of the execute side")

    def refuse(self) -> NoReturn:
        """Raise `CompileError`: the root isn't offloaded."""
        if self._alias is not None:
            load, root, stored = self._alias
            what = f"memref {value_name(root)} read by the access unit"
            name = value_name(stored)
            rule = f"known not to overlap the stored {name} (function attribute {NOALIAS!r})"
            refuse(load, what, rule, "possibly the same memory")
        rule = "one whose bounds, step and at least one load the access unit can compute"
        found = f"the loop of {value_name(self.root.body.block.args[0])}"
        refuse(self.root, "top-level loop", rule, found)

    def children(self, loop: scf.ForOp) -> list[scf.ForOp]:
        """Return the offloaded loops directly inside a loop."""
        return [op for op in self.offloaded if op.parent_op() is loop]

    def decisions(self) -> Iterator[Decision]:
        """Yield what became of each loop and load, in text order."""
        name = self.function.sym_name.data
        for op in self.root.walk():
            if isinstance(op, scf.ForOp):
                subject = value_name(op.body.block.args[0])
            elif isinstance(op, memref.LoadOp):
                subject = f"from {value_name(op.memref)}"
            else:
                continue
            is_offloaded = not self._is_left(op)
            reason = "" if is_offloaded else self.reasons[op]
            yield Decision(name, describe(op), subject, is_offloaded, reason)

    def _is_left(self, op: Operation) -> bool:
        return op not in self.ops and op not in self.offloaded

    def _in_slice(self, value: SSAValue) -> bool:
        return value in self._available or not is_inside(value, self.root)

    def _visit(self, loop: scf.ForOp, level: int) -> bool:
        """Add the loop's body to the slice; whether the loop is offloaded."""
        step = constant(loop.step)
        bounds = (loop.lb, loop.ub, loop.step)
        for bound in bounds:
            if not self._in_slice(bound) or not isinstance(bound.type, IndexType):
                self.reasons[loop] = f"its bound {value_name(bound)} is no value of the access unit"
                return False
        if step is None or step <= 0:
            self.reasons[loop] = "its step isn't a positive constant"
            return False
        if self.levels is not None and level > self.levels:
            self.reasons[loop] = f"the access unit has {self.levels} loops one in the other"
            return False
        place = len(self.offloaded)
        self.offloaded.append(loop)
        block = loop.body.block
        self._available.add(block.args[0])
        own: list[Operation] = []
        children: list[scf.ForOp] = []
        for op in block.ops:
            if isinstance(op, scf.ForOp):
                if self._visit(op, level + 1):
                    children.append(op)
            elif self._is_slice_op(op):
                own.append(op)
                self._available.update(op.results)
        if not children and not any(isinstance(op, memref.LoadOp) for op in own):
            del self.offloaded[place:]
            self._available.difference_update(
                [block.args[0], *(r for op in own for r in op.results)]
            )
            self.reasons[loop] = "it holds no load that the access unit can do"
            return False
        self.ops.update(own)
        if self.one_child and len(children) > 1:
            kept = next((child for child in children if self._gathers(child)), children[0])
            for child in children:
                if child is not kept:
                    self._leave(child)
        return True

    def _gathers(self, loop: scf.ForOp) -> bool:
        """Whether a load of the slice in the loop reads at what another load gave."""
        loads = [op for op in self.ops if isinstance(op, memref.LoadOp)]
        return any(
            loop.is_ancestor(load) and any(_is_loaded(index) for index in load.indices)
            for load in loads
        )

    def _leave(self, loop: scf.ForOp) -> None:
        """Take a loop and all in it back from the access unit."""
        reason = "a loop beside it is offloaded, and the access unit has room for one"
        self.reasons[loop] = reason
        self.offloaded = [op for op in self.offloaded if not loop.is_ancestor(op)]
        self.ops = {op for op in self.ops if not loop.is_ancestor(op)}

    def _is_slice_op(self, op: Operation) -> bool:
        if EXECUTE in op.attributes:
            return False
        if isinstance(op, memref.ReinterpretCastOp):
            return is_table(op) and all(map(self._in_slice, op.operands))
        if isinstance(op, _ARITHMETIC):
            return isinstance(op.result.type, IndexType) and all(map(self._in_slice, op.operands))
        if isinstance(op, arith.IndexCastOp):
            integer = isinstance(op.input.type, IntegerType) and isinstance(
                op.result.type, IndexType
            )
            return integer and self._in_slice(op.input)
        if not isinstance(op, memref.LoadOp):
            return False
        if isinstance(op.res.type, QuantizedType) and not self._is_row_element(op):
            self.reasons[op] = "an element of a quantised row goes with its row alone"
            return False
        if isinstance(op.res.type, Float64Type) and not self._is_row_element(op):
            self.reasons[op] = "an f64 is wider than a value of the unit, and it is of no row"
            return False
        if not self._in_slice(op.memref):
            self.reasons[op] = f"its memory {value_name(op.memref)} is a view made in the nest"
            return False
        for index in op.indices:
            if not self._in_slice(index):
                name = value_name(index)
                self.reasons[op] = f"its index {name} is computed by the execute side"
                return False
        root = memref_root(op.memref)
        for stored in self._stored:
            if stored is root:
                self.reasons[op] = f"{value_name(root)} is written in the nest"
                return False
        for stored in self._stored:
            if may_alias(root, stored, self.function):
                self.reasons[op] = f"{value_name(root)} may overlap {value_name(stored)}, written"
                self._alias = self._alias or (op, root, stored)
                return False
        return True

    def _is_row_element(self, load: memref.LoadOp) -> bool:
        """Whether an innermost loop over a row, from its first element, loads it."""
        loop = load.parent_op()
        if not isinstance(loop, scf.ForOp) or load.indices[-1] is not loop.body.block.args[0]:
            return False
        is_view = isinstance(load.memref.owner, memref.ReinterpretCastOp)
        is_whole = constant(loop.lb) == 0 and (is_view or not is_inside(loop.ub, self.root))
        is_innermost = not any(isinstance(op, scf.ForOp) for op in loop.body.block.ops)
        return is_whole and is_innermost and constant(loop.step) == 1


def is_table(view: memref.ReinterpretCastOp) -> bool:
    """Whether a view is a table of two dimensions, with unit stride, in a memory of one."""
    type_ = memref_type(view.result)
    return (
        memref_type(view.source).get_num_dims() == 1
        and type_.get_num_dims() == 2
        and unit_inner_stride(type_)
    )


def _is_loaded(value: SSAValue) -> bool:
    """Whether a load takes part in the value."""
    owner = value.owner
    if isinstance(owner, memref.LoadOp):
        return True
    return isinstance(owner, (*_ARITHMETIC, arith.IndexCastOp)) and any(
        map(_is_loaded, owner.operands)
    )


def _checked_stores(root: scf.ForOp) -> Iterator[memref.StoreOp]:
    """Yield the stores of a nest, and refuse ops that no nest may hold."""
    for op in root.walk():
        if isinstance(op, memref.StoreOp):
            yield op
        elif not (
            isinstance(op, (*_STRUCTURE, *_MEMORY, DequantizeOp))
            or op.name.startswith((f"{arith.Arith.name}.", f"{math.Math.name}."))
        ):
            refuse(
                op,
                "op of a loop nest",
                "an scf.for, scf.if, arith, math or memref op",
                repr(op.name),
            )


def top_level_nests(function: func.FuncOp) -> list[scf.ForOp]:
    """Return the function's own loops but those that the host runs."""
    return [
        op
        for op in function.body.block.ops
        if isinstance(op, scf.ForOp) and HOST not in op.attributes
    ]


def decoupling_report(
    module: ModuleOp, *, one_child: bool = False, levels: int | None = None
) -> list[Decision]:
    """Return what `choose-decoupling` does with each loop and load of a module of scf."""
    return [
        decision
        for function in functions(module)
        for nest in top_level_nests(function)
        for decision in AccessSlice(function, nest, one_child, levels).decisions()
    ]
