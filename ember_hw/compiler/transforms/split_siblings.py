"""`split-siblings`: a nest with two loops side by side becomes two nests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    IndexType,
    IntegerType,
    MemRefType,
    ModuleOp,
    StringAttr,
    UnitAttr,
)
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ember_hw.compiler.transforms.access_slice import AccessSlice, top_level_nests
from ember_hw.compiler.transforms.ir_facts import (
    HOST,
    REMARK,
    copy_hint,
    erase,
    functions,
    index_constant,
    may_alias,
    memref_root,
    value_name,
)


@dataclass(frozen=True)
class SplitSiblings(ModulePass):
    """
    Give each of the loops that stand side by side in a nest a nest of its own.

    Accepts scf as `choose-decoupling` does, and looks at the loops that one would offload: units of
    the access unit form a chain, so two loops directly in one loop have no place there. The first
    new nest keeps what stands in front of the second loop, the second nest the rest; both run all
    outer loops. A scalar of the first that the second uses goes through a scratch vector
    (`memref.alloc`), an element for each iteration, which both count; a copy of the outer loops
    with the attribute `ember.host` tells the host how many there will be.

    A nest is split only if neither half writes memory that the other one touches, and no outer loop
    carries values. Otherwise it stays, with the reason in `ember.remark` of the loop around both.
    """

    name = "split-siblings"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run the pass on every function."""
        for function in functions(op):
            waiting = top_level_nests(function)
            while waiting:
                nest = waiting.pop()
                access = AccessSlice(function, nest)
                parents = [loop for loop in access.offloaded if len(access.children(loop)) > 1]
                if not parents:
                    continue
                split = Split(function, access, parents[0])
                reason = split.obstacle()
                if reason is None:
                    waiting += split.split()
                else:
                    parents[0].attributes[REMARK] = StringAttr(f"not split: {reason}")


def _path(root: scf.ForOp, loop: scf.ForOp) -> list[scf.ForOp]:
    """Return the loops from the root to a loop in it, both included."""
    path = [loop]
    while path[0] is not root:
        parent = path[0].parent_op()
        assert isinstance(parent, scf.ForOp)
        path.insert(0, parent)
    return path


class Split:
    """
    One nest and where to cut it: in front of the second loop in `parent`.

    Attributes
    ----------
    path : list of ForOp
        From the root to `parent`.
    first, second : list of Operation
        What only one half has: all in the path's loops but what the access unit computes.
    crossing : dict of ForOp to list of SSAValue
        Values of the first half that the second needs, by the loop in whose iterations they are
        made.
    """

    def __init__(self, function: func.FuncOp, access: AccessSlice, parent: scf.ForOp) -> None:
        self.function = function
        self.access = access
        self.path = _path(access.root, parent)
        cuts = [*self.path[1:], access.children(parent)[1]]
        self.first: list[Operation] = []
        self.second: list[Operation] = []
        for loop, cut in zip(self.path, cuts, strict=True):
            part = self.first
            for op in loop.body.block.ops:
                if op is cut:
                    part = self.second
                if op not in access.ops and op not in self.path and op.next_op is not None:
                    part.append(op)
        self.crossing: dict[scf.ForOp, list[SSAValue]] = {}
        for op in self.first:
            values = [result for result in op.results if _is_used(result, self.second)]
            block = op.parent_op()
            if values:
                assert isinstance(block, scf.ForOp)
                self.crossing.setdefault(block, []).extend(values)

    def obstacle(self) -> str | None:
        """Why the nest can't be split; None if it can."""
        for loop in self.path:
            if loop.iter_args:
                return f"the loop of {value_name(loop.body.block.args[0])} carries values"
        for value in (value for values in self.crossing.values() for value in values):
            if not isinstance(value.type, IndexType | IntegerType | AnyFloat):
                return f"{value_name(value)} is no scalar"
        touched = [
            (_memory(part, stores=True), _memory(part)) for part in (self.first, self.second)
        ]
        for (written, _), (_, other) in (touched, touched[::-1]):
            for memory in written:
                for else_touched in other:
                    if may_alias(memory, else_touched, self.function):
                        return f"both halves touch {value_name(memory)}"
        return None

    def split(self) -> list[scf.ForOp]:
        """Replace the nest by two; returns these."""
        root = self.access.root
        sizes = {loop: self._sizes(loop) for loop in self.crossing}
        first, second = NestCopy(root), NestCopy(root)
        Rewriter.insert_op([first.root, second.root], InsertPoint.before(root))
        for loop, values in self.crossing.items():
            scratch: list[SSAValue] = []
            for value in values:
                type_ = MemRefType(value.type, [DYNAMIC_INDEX] * len(sizes[loop]))
                alloc = memref.AllocOp(sizes[loop], [], type_)
                alloc.memref.name_hint = "scratch"
                Rewriter.insert_op(alloc, InsertPoint.before(first.root))
                scratch.append(alloc.memref)
            place = self._next_in_path(loop)
            self._store(first, loop, values, scratch)
            self._load(second, loop, values, scratch, place)
        first.remove(self.second)
        second.remove(self.first)
        erase(root)
        return [first.root, second.root]

    def _next_in_path(self, loop: scf.ForOp) -> Operation:
        """Return what of the second half comes first in a loop's body."""
        position = self.path.index(loop)
        if position + 1 < len(self.path):
            return self.path[position + 1]
        return next(op for op in self.second if op.parent_op() is loop)

    def _sizes(self, loop: scf.ForOp) -> list[SSAValue]:
        """Return the extents of the scratch memory for a value of a loop of the path."""
        return [self._count(loop)]

    def _count(self, loop: scf.ForOp) -> SSAValue:
        """Let the host count the iterations of a loop of the path."""
        copy = NestCopy(self.access.root)
        copy.remove([*self.first, *self.second])
        inner = copy.ops[loop]
        for op in list(inner.regions[0].block.ops):
            if isinstance(op, scf.ForOp):
                op.detach()
                op.erase(safe_erase=False)
        Rewriter.insert_op(copy.root, InsertPoint.before(self.access.root))
        counter, end = self._counter(copy, loop)
        self._advance(counter, end)
        copy.prune()
        copy.root.attributes[HOST] = UnitAttr()
        copy.root.results[0].name_hint = "count"
        return copy.root.results[0]

    def _counter(self, copy: NestCopy, loop: scf.ForOp) -> tuple[SSAValue, Operation]:
        """Carry a counter through the path down to a loop; it and the yield of that loop."""
        value: SSAValue = index_constant(self.function, 0)
        around: scf.ForOp | None = None
        for old in self.path[: self.path.index(loop) + 1]:
            new = _carry(copy.loop(old), value)
            copy.put(old, new)
            if around is not None:
                outer_end = last_op(around)
                outer_end.operands[len(outer_end.operands) - 1] = new.res[-1]
            value, around = new.body.block.args[-1], new
        assert around is not None
        return value, last_op(around)

    def _advance(self, counter: SSAValue, end: Operation) -> None:
        following = arith.AddiOp(counter, index_constant(self.function, 1))
        Rewriter.insert_op(following, InsertPoint.before(end))
        end.operands[len(end.operands) - 1] = following.result

    def _store(
        self,
        copy: NestCopy,
        loop: scf.ForOp,
        values: Sequence[SSAValue],
        scratch: Sequence[SSAValue],
    ) -> None:
        counter, end = self._counter(copy, loop)
        for value, vector in zip(values, scratch, strict=True):
            store = memref.StoreOp.get(copy.value(value), vector, [counter])
            Rewriter.insert_op(store, InsertPoint.before(end))
        self._advance(counter, end)

    def _load(
        self,
        copy: NestCopy,
        loop: scf.ForOp,
        values: Sequence[SSAValue],
        scratch: Sequence[SSAValue],
        place: Operation,
    ) -> None:
        counter, end = self._counter(copy, loop)
        point = InsertPoint.before(copy.ops[place])
        for value, vector in zip(values, scratch, strict=True):
            load = memref.LoadOp.get(vector, [counter])
            copy_hint(value, load.res)
            Rewriter.insert_op(load, point)
            copy.value(value).replace_all_uses_with(load.res)
        following = arith.AddiOp(counter, index_constant(self.function, 1))
        Rewriter.insert_op(following, point)
        end.operands[len(end.operands) - 1] = following.result


class NestCopy:
    """A copy of a nest, and what each op and value became."""

    def __init__(self, root: scf.ForOp) -> None:
        self.values: dict[SSAValue, SSAValue] = {}
        clone = root.clone(self.values)
        assert isinstance(clone, scf.ForOp)
        self.original = root
        self.ops: dict[Operation, Operation] = dict(zip(root.walk(), clone.walk(), strict=True))

    @property
    def root(self) -> scf.ForOp:
        """The copy's outermost loop."""
        return self.loop(self.original)

    def loop(self, old: scf.ForOp) -> scf.ForOp:
        """Return what a loop became."""
        new = self.ops[old]
        assert isinstance(new, scf.ForOp)
        return new

    def put(self, old: scf.ForOp, new: scf.ForOp) -> None:
        """Note that a loop's copy was replaced."""
        self.ops[old] = new

    def value(self, old: SSAValue) -> SSAValue:
        """Return what a value became."""
        return self.values.get(old, old)

    def remove(self, old: Sequence[Operation]) -> None:
        """Erase ops, and the slice that only they used."""
        for op in reversed(old):
            copy = self.ops[op]
            copy.detach()
            copy.erase(safe_erase=False)
        self.prune()

    def prune(self) -> None:
        """Erase loads and arithmetic that nothing uses."""
        for op in reversed(list(self.root.walk())):
            pure = isinstance(op, memref.LoadOp | arith.IndexCastOp) or op.name.startswith("arith.")
            if pure and not any(result.uses for result in op.results):
                erase(op)


def _carry(loop: scf.ForOp, first: SSAValue) -> scf.ForOp:
    """Put a loop that carries one index more, unchanged so far, in a loop's place."""
    end = last_op(loop)
    argument = loop.body.block.insert_arg(IndexType(), len(loop.body.block.args))
    argument.name_hint = "n"
    Rewriter.replace_op(end, scf.YieldOp(*end.operands, argument))
    body = loop.detach_region(loop.body)
    new = scf.ForOp(loop.lb, loop.ub, loop.step, [*loop.iter_args, first], body)
    new.attributes.update(loop.attributes)
    Rewriter.insert_op(new, InsertPoint.before(loop))
    for old, result in zip(loop.res, new.res, strict=False):
        copy_hint(old, result)
        old.replace_all_uses_with(result)
    loop.detach()
    loop.erase(safe_erase=False)
    return new


def last_op(loop: scf.ForOp) -> Operation:
    """Return the op that ends a loop's body."""
    end = loop.body.block.last_op
    assert end is not None
    return end


def _is_used(value: SSAValue, ops: Sequence[Operation]) -> bool:
    return any(op.is_ancestor(use.operation) for use in value.uses for op in ops)


def _memory(ops: Sequence[Operation], *, stores: bool = False) -> list[SSAValue]:
    """Return the roots of what the ops access, or only of what they write."""
    kinds = memref.StoreOp if stores else memref.StoreOp | memref.LoadOp
    accesses = [inner for op in ops for inner in op.walk() if isinstance(inner, kinds)]
    return list(dict.fromkeys(memref_root(op.memref) for op in accesses))
