"""`assign-variables`: execute values that cross from one event to another become variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    VectorType,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue, Use
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ember_hw.compiler.dialects import dlc, slc, slcvec
from ember_hw.compiler.transforms.callbacks import (
    merge_callbacks,
    replace_callback,
    replace_loop,
)
from ember_hw.compiler.transforms.ir_facts import copy_hint, functions, host_value, is_host
from ember_hw.compiler.transforms.rows import is_row_loop, row_loops_first

Loop: TypeAlias = slc.ForOp | slcvec.ForOp


@dataclass(frozen=True)
class AssignVariables(ModulePass):
    """
    Keep execute values in variables of the execute side, where they outlive their callback.

    Accepts `slc` and `slcvec` at any level. Callbacks side by side become one, so that a value
    which only they share stays a value. What else crosses from callback to callback is written by
    `dlc.set_var` at the end of the callback that computes it and read by `dlc.get_var` at the start
    of those that use it: results of callbacks, and the values that loops carry, one variable for a
    loop's argument, what it yields and its result. A loop that only hands on what the loop around
    it carries shares that one's variable.

    A carried value starts at its first value before the nest. An inner loop sets it back in the
    callback before it; if there is none, where its result is read last; if that isn't known either,
    in a new callback before it. Where nothing crosses, nothing changes.
    """

    name = "assign-variables"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run the pass on every function."""
        for function in functions(op):
            for nest in list(function.body.block.ops):
                if isinstance(nest, Loop) and any(map(_carries, nest.walk())):
                    _Nest(function, nest).assign()


def _carries(op: Operation) -> bool:
    return isinstance(op, slc.CallbackOp | slc.ForOp | slcvec.ForOp) and bool(op.results)


@dataclass
class _Code:
    """What one callback gets at its start and sets at its end."""

    reads: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    sets: list[tuple[SSAValue, int]] = field(default_factory=list[tuple[SSAValue, int]])


class _Nest:
    """One top-level nest: the variable of each value, and what each callback does to them."""

    def __init__(self, function: func.FuncOp, root: Loop) -> None:
        self.function = function
        self.root = root
        self.variables: dict[SSAValue, int] = {}
        self.initial: dict[int, SSAValue | Attribute] = {}
        self.code: dict[slc.CallbackOp, _Code] = {}
        used = [
            op.variable
            for op in function.walk()
            if isinstance(op, dlc.SetVarOp | dlc.GetVarOp | dlc.IncrementVarOp)
        ]
        self.next = max(used, default=-1) + 1

    def assign(self) -> None:
        """Give variables, place reads and writes, then take the values out of the loops' forms."""
        loops = [op for op in self.root.walk() if isinstance(op, Loop) and not is_row_loop(op)]
        for loop in loops:
            row_loops_first(loop.body.block)
            merge_callbacks(loop.body.block)
        for loop in loops:
            for position, argument in enumerate(loop.execute_args):
                self._carried(loop, position, argument)
        for loop in loops:
            self._enter(loop)
            self._advance(loop)
        for callback in [op for op in self.root.walk() if isinstance(op, slc.CallbackOp)]:
            self._read_outer(callback)
        self._insert()
        for loop in reversed(loops):
            self._strip(loop)

    def _new(self, initial: SSAValue | Attribute) -> int:
        number = self.next
        self.next += 1
        self.initial[number] = initial
        return number

    def _variable(self, value: SSAValue) -> int:
        """Return the variable of an execute value, which its callback sets if it is a result."""
        if value not in self.variables:
            self.variables[value] = self._new(value.type)
            callback = cast(slc.CallbackOp, value.owner)
            self._set(callback, value, self.variables[value])
        return self.variables[value]

    def _of(self, callback: slc.CallbackOp) -> _Code:
        return self.code.setdefault(callback, _Code())

    def _set(self, callback: slc.CallbackOp, value: SSAValue, variable: int) -> None:
        """Let the callback set a variable at its end, reading the value first if it must."""
        if value.owner is not callback and host_value(value) is None:
            self._of(callback).reads[value] = self._variable(value)
        self._of(callback).sets.append((value, variable))

    def _carried(self, loop: Loop, position: int, argument: BlockArgument) -> None:
        """Give a carried value its variable: that of its first value, if only this loop has it."""
        first = loop.init_args[position]
        if _is_handed_through(first, loop):
            variable = self.variables[first]
        else:
            variable = self._new(first if is_host(first) else first.type)
        self.variables[argument] = self.variables[loop.res[position]] = variable

    def _enter(self, loop: Loop) -> None:
        """Set the variables of a loop to their first values whenever it is entered."""
        if loop is self.root:
            return
        for argument, first, result in zip(
            loop.execute_args, loop.init_args, loop.res, strict=True
        ):
            variable = self.variables[argument]
            if self.variables.get(first) == variable:
                continue
            if isinstance(first.owner, slc.CallbackOp) and first.owner.parent is loop.parent:
                self._set(first.owner, first, variable)
                continue
            before = loop.prev_op
            if is_host(first) and not isinstance(before, slc.CallbackOp):
                after = _last_reader(result, loop)
                if after is not None:
                    self._set(after, first, variable)
                    continue
            self._set(self._callback_at(InsertPoint.before(loop), before), first, variable)

    def _callback_at(self, place: InsertPoint, beside: Operation | None) -> slc.CallbackOp:
        if isinstance(beside, slc.CallbackOp):
            return beside
        callback = slc.CallbackOp()
        Rewriter.insert_op(callback, place)
        return callback

    def _advance(self, loop: Loop) -> None:
        """Set the variables of a loop to what an iteration yields."""
        body = loop.body.block
        terminator = body.last_op
        assert terminator is not None
        late: list[tuple[SSAValue, int]] = []
        for argument, value in zip(loop.execute_args, loop.yielded, strict=True):
            variable = self.variables[argument]
            if self.variables.get(value) == variable:
                continue
            owner = value.owner
            if (
                isinstance(owner, slc.CallbackOp)
                and owner.parent is body
                and not self._lives_after(variable, owner, loop)
            ):
                self._set(owner, value, variable)
            else:
                late.append((value, variable))
        if late:
            last = self._callback_at(InsertPoint.before(terminator), terminator.prev_op)
            for value, variable in late:
                self._set(last, value, variable)

    def _lives_after(self, variable: int, callback: slc.CallbackOp, loop: Loop) -> bool:
        """Whether an iteration needs what a variable holds behind one of its callbacks."""
        held = [value for value, number in self.variables.items() if number == variable]
        return any(_comes_after(use, callback, loop) for value in held for use in value.uses)

    def _read_outer(self, callback: slc.CallbackOp) -> None:
        """Read the execute values that a callback takes from elsewhere."""
        for op in callback.walk():
            for value in op.operands:
                if not _is_execute_value(value) or callback.is_ancestor(_owner_op(value)):
                    continue
                self._of(callback).reads[value] = self._variable(value)

    def _insert(self) -> None:
        """Write the reads and sets of every callback, the first values and the final reads."""
        for callback, code in self.code.items():
            values: dict[SSAValue, SSAValue] = {}
            place = _behind_reads(callback)
            for value, variable in code.reads.items():
                get = dlc.GetVarOp(value.type, variable)
                copy_hint(value, get.result)
                Rewriter.insert_op(get, place)
                values[value] = get.result
                value.replace_uses_with_if(get.result, _inside(callback))
            values.update(zip(callback.res, callback.yielded, strict=True))
            end = callback.body.block.last_op
            assert end is not None
            for value, variable in code.sets:
                new = values.get(value, host_value(value) or value)
                Rewriter.insert_op(dlc.SetVarOp(new, variable), InsertPoint.before(end))
        for result in self.root.res:
            if result.uses:
                get = dlc.GetVarOp(result.type, self.variables[result])
                copy_hint(result, get.result)
                Rewriter.insert_op(get, InsertPoint.after(self.root))
                result.replace_all_uses_with(get.result)
        for variable, initial in self.initial.items():
            self._initialize(variable, initial)

    def _initialize(self, variable: int, initial: SSAValue | Attribute) -> None:
        if isinstance(initial, Attribute):
            if isinstance(initial, MemRefType):
                return
            zero = arith.ConstantOp(_zero(initial))
            Rewriter.insert_op(zero, InsertPoint.before(self.root))
            initial = zero.result
        Rewriter.insert_op(dlc.SetVarOp(initial, variable), InsertPoint.before(self.root))

    def _strip(self, loop: Loop) -> None:
        """Replace a loop and its callbacks by ones without execute values."""
        for op in list(loop.body.block.ops):
            if isinstance(op, slc.CallbackOp) and op.res:
                replace_callback(op, [])
        if loop.res:
            replace_loop(loop)


def _owner_op(value: SSAValue) -> Operation:
    owner = value.owner
    op = owner.parent_op() if isinstance(owner, Block) else owner
    assert op is not None
    return op


def _is_execute_value(value: SSAValue) -> bool:
    """Whether the value is a result or a carried argument of callbacks and loops."""
    if isinstance(value, BlockArgument):
        loop = value.owner.parent_op()
        return isinstance(loop, Loop) and value in loop.execute_args
    return isinstance(value.owner, slc.CallbackOp | slc.ForOp | slcvec.ForOp)


def _is_handed_through(first: SSAValue, loop: Loop) -> bool:
    """Whether a loop takes over what the loop around it, or one beside it, has carried so far."""
    parent = loop.parent_op()
    if not isinstance(parent, Loop):
        return False
    beside = isinstance(first.owner, Loop) and first.owner.parent is loop.parent
    if not beside and first not in parent.execute_args:
        return False
    takers = [use for use in first.uses if use.operation is loop]
    others = [_in_body(use.operation, parent) for use in first.uses if use.operation is not loop]
    return len(takers) == 1 and not any(
        op is loop or (op is not None and _is_below(op, loop)) for op in others
    )


def _inside(callback: slc.CallbackOp) -> Callable[[Use], bool]:
    return lambda use: callback.is_ancestor(use.operation)


def _behind_reads(callback: slc.CallbackOp) -> InsertPoint:
    """Return the place behind the reads of streams at the callback's start."""
    ops = callback.body.block.ops
    return InsertPoint.before(next(op for op in ops if not isinstance(op, slc.FromStreamOp)))


def _in_body(op: Operation, loop: Operation) -> Operation | None:
    """Return the op of the loop's body that is or holds the op; None outside of it."""
    while (parent := op.parent_op()) is not None:
        if parent is loop:
            return op
        op = parent
    return None


def _comes_after(use: Use, op: Operation, loop: Loop) -> bool:
    """Whether a use happens behind the op in the loop's body; its yield comes last."""
    user = _in_body(use.operation, loop)
    return user is not None and user is not op and _is_below(user, op)


def _is_below(op: Operation, other: Operation) -> bool:
    return any(op is following for following in _following(other))


def _following(op: Operation) -> Iterator[Operation]:
    while (following := op.next_op) is not None:
        yield following
        op = following


def _last_reader(result: SSAValue, loop: Loop) -> slc.CallbackOp | None:
    """Return the last callback behind the loop that reads its result, if only callbacks do."""
    parent = loop.parent_op()
    assert isinstance(parent, Loop)
    users = [_in_body(use.operation, parent) for use in result.uses]
    following = list(_following(loop))
    readers = [op for op in following if any(op is user for user in users)]
    if not readers and following and isinstance(following[0], slc.CallbackOp):
        return following[0]
    if not readers or not all(isinstance(op, slc.CallbackOp) for op in readers):
        return None
    return cast(slc.CallbackOp, readers[-1])


def _zero(type_: Attribute) -> IntegerAttr | FloatAttr | DenseIntOrFPElementsAttr:
    if isinstance(type_, VectorType):
        vector = cast("VectorType[IndexType]", type_)
        return DenseIntOrFPElementsAttr.from_list(vector, [0] * vector.get_shape()[0])
    if isinstance(type_, AnyFloat):
        return FloatAttr(0.0, type_)
    return IntegerAttr(0, cast(IntegerType, type_))
