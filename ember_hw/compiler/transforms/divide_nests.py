"""`divide-nests`: loops side by side become nests, and scalars lie where their loops find them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    ModuleOp,
    StringAttr,
)
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from ember_hw.compiler.transforms.access_slice import AccessSlice, top_level_nests
from ember_hw.compiler.transforms.ir_facts import (
    REMARK,
    RISING,
    argument_symbols,
    constant,
    copy_hint,
    functions,
    index_constant,
    is_inside,
    memref_root,
    value_name,
)
from ember_hw.compiler.transforms.split_siblings import NestCopy, Split, last_op

__all__ = ["DivideNests", "Division", "division_of"]


@dataclass(frozen=True)
class DivideNests(ModulePass):
    """
    Give each of the loops that stand side by side in a nest a nest of its own.

    As `split-siblings`, and under its conditions; but a scalar of the first half that the second
    uses lies at the numbers of its loops, where the access unit loads it, and nothing is counted.
    These numbers must tell one iteration from all others:

    - a loop whose bounds are the host's, the lower one a constant from 0 on, has a dimension of the
      scratch memory for itself;
    - a loop from ``p[i]`` to ``p[i + 1]`` in the loop of i takes the place of that one's
      dimension, if the function says by `ember.rising` that the elements of p never fall, and
      writes none of them. The dimension is as long as that of a memory which it loads at its number
      in each iteration.

    All else stays as it is: what is computed of what, and in which order each result is summed. A
    nest that can't be divided says why in `ember.remark` of the loop around both.

    Parameters
    ----------
    nests : tuple of int, optional
        Numbers of the nests of a function to divide, from 0 on; all if absent.
    """

    name = "divide-nests"

    nests: tuple[int, ...] | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run the pass on every function."""
        for function in functions(op):
            numbered = enumerate(top_level_nests(function))
            waiting = [n for number, n in numbered if self.nests is None or number in self.nests]
            while waiting:
                division = division_of(function, waiting.pop())
                if division is None:
                    continue
                reason = division.obstacle()
                if reason is None:
                    waiting += division.split()
                else:
                    division.path[-1].attributes[REMARK] = StringAttr(f"not divided: {reason}")


def division_of(function: func.FuncOp, nest: scf.ForOp) -> Division | None:
    """Return the division of a nest; None if it has no loops side by side."""
    access = AccessSlice(function, nest)
    parents = [loop for loop in access.offloaded if len(access.children(loop)) > 1]
    return Division(function, access, parents[0]) if parents else None


@dataclass(frozen=True)
class _Dimension:
    """A dimension of scratch memory: whose number it is, and what tells how long it is."""

    loop: scf.ForOp
    extent: SSAValue | tuple[SSAValue, int]
    """A host value, or a memory and a dimension of it."""


class _Obstacle(Exception):
    """Why the iterations of a loop have no place each."""


class Division(Split):
    """A nest, where to cut it, and the places of what the second half needs of the first."""

    def obstacle(self) -> str | None:
        """Why the nest can't be divided; None if it can."""
        reason = super().obstacle()
        if reason is not None:
            return reason
        try:
            for loop in self.crossing:
                self._dimensions(loop)
        except _Obstacle as found:
            return str(found)
        return None

    def _sizes(self, loop: scf.ForOp) -> list[SSAValue]:
        return [self._size(dimension) for dimension in self._dimensions(loop)]

    def _size(self, dimension: _Dimension) -> SSAValue:
        """Return the extent of a dimension, computed in front of the nest."""
        if isinstance(dimension.extent, SSAValue):
            return dimension.extent
        memory, number = dimension.extent
        dim = memref.DimOp(memory, index_constant(self.function, number))
        dim.result.name_hint = "places"
        Rewriter.insert_op(dim, InsertPoint.before(self.access.root))
        return dim.result

    def _store(
        self,
        copy: NestCopy,
        loop: scf.ForOp,
        values: Sequence[SSAValue],
        scratch: Sequence[SSAValue],
    ) -> None:
        end = last_op(copy.loop(loop))
        for value, memory in zip(values, scratch, strict=True):
            store = memref.StoreOp.get(copy.value(value), memory, self._place(copy, loop))
            Rewriter.insert_op(store, InsertPoint.before(end))

    def _load(
        self,
        copy: NestCopy,
        loop: scf.ForOp,
        values: Sequence[SSAValue],
        scratch: Sequence[SSAValue],
        place: Operation,
    ) -> None:
        first_user = copy.ops[place]
        for value, memory in zip(values, scratch, strict=True):
            load = memref.LoadOp.get(memory, self._place(copy, loop))
            copy_hint(value, load.res)
            Rewriter.insert_op(load, InsertPoint.before(first_user))
            copy.value(value).replace_all_uses_with(load.res)

    def _place(self, copy: NestCopy, loop: scf.ForOp) -> list[SSAValue]:
        """Return the numbers that tell an iteration of a copied loop from all others."""
        return [copy.value(d.loop.body.block.args[0]) for d in self._dimensions(loop)]

    def _dimensions(self, loop: scf.ForOp) -> list[_Dimension]:
        """Return the numbers that tell an iteration of a loop of the path from all others.

        Raises
        ------
        _Obstacle
            Nothing says that there are such.
        """
        found: list[_Dimension] = []
        outer: scf.ForOp | None = None
        for inner in self.path[: self.path.index(loop) + 1]:
            name = value_name(inner.body.block.args[0])
            if not any(is_inside(bound, self.access.root) for bound in (inner.lb, inner.ub)):
                least = constant(inner.lb)
                if least is None or least < 0:
                    raise _Obstacle(f"the loop of {name} may begin below 0")
                found.append(_Dimension(inner, inner.ub))
            elif outer is not None and self._is_rising(inner, outer):
                found[-1] = _Dimension(inner, self._read_at(inner))
            else:
                raise _Obstacle(
                    f"the loop of {name} may come to a number twice: {RISING!r} says of no array "
                    "that gives its bounds, one behind the other, that its elements never fall"
                )
            outer = inner
        return found

    def _is_rising(self, loop: scf.ForOp, outer: scf.ForOp) -> bool:
        """Whether a loop goes from an element of a rising array to the next, for each of these."""
        lower, upper = _loaded(loop.lb), _loaded(loop.ub)
        if lower is None or upper is None or lower.memref is not upper.memref:
            return False
        if len(lower.indices) != 1 or not self._never_falls(lower.memref):
            return False
        at, next_at = lower.indices[0], upper.indices[0].owner
        if at is not outer.body.block.args[0] or not isinstance(next_at, arith.AddiOp):
            return False
        ones = [constant(o) for o in next_at.operands if o is not at]
        return ones == [1] and at in next_at.operands

    def _never_falls(self, memory: SSAValue) -> bool:
        """Whether the elements of an argument never fall, whatever the function does before."""
        rising = self.function.attributes.get(RISING)
        if not isa(rising, ArrayAttr[StringAttr]) or not isinstance(memory, BlockArgument):
            return False
        is_written = any(
            isinstance(op, memref.StoreOp) and memref_root(op.memref) is memory
            for op in self.function.walk()
        )
        names = [name.data for name in rising.data]
        return not is_written and argument_symbols(self.function).get(memory) in names

    def _read_at(self, loop: scf.ForOp) -> tuple[SSAValue, int]:
        """Return the memory, and which dimension of it, that each iteration reads at its number."""
        number = loop.body.block.args[0]
        for op in loop.body.block.ops:
            if op in self.access.ops and isinstance(op, memref.LoadOp) and number in op.indices:
                if not is_inside(op.memref, self.access.root):
                    return op.memref, list(op.indices).index(number)
        raise _Obstacle(
            f"no memory that the loop of {value_name(number)} reads at its number says how many "
            "there are"
        )


def _loaded(bound: SSAValue) -> memref.LoadOp | None:
    """Return the load whose value a bound is, as it came or made an index."""
    if isinstance(bound.owner, arith.IndexCastOp):
        bound = bound.owner.input
    return bound.owner if isinstance(bound.owner, memref.LoadOp) else None
