"""What several passes ask about values and ops: constants, host values, roots of memrefs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn, TypeAlias, cast

from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    StringAttr,
    VectorType,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from ember_hw.compiler.dialects import slc
from ember_hw.errors import CompileError

#: Attribute of a function whose distinct memref arguments are known not to overlap.
NOALIAS = "ember.noalias"
#: Attribute of a function: symbols of vectors none of whose elements is below the one before.
RISING = "ember.rising"
#: Attribute of a function: the symbols of its arguments, in order.
ARGUMENT_NAMES = "ember.args"
#: Attribute of an index op that the execute side runs, wherever its operands come from.
EXECUTE = "ember.execute"
#: Attribute of a `memref.load` whose data is expected to be read again soon.
KEEP = "ember.keep"
#: Attribute of an `scf.for` that becomes a loop of the access unit.
OFFLOAD = "ember.offload"
#: Attribute of a top-level `scf.for` that the host runs.
HOST = "ember.host"
#: String attribute of a loop that a pass left as it was: why.
REMARK = "ember.remark"

_VIEWS = (memref.SubviewOp, memref.CastOp, memref.ReinterpretCastOp, slc.ViewOp)

AnyConstant: TypeAlias = IntegerAttr | DenseIntOrFPElementsAttr


def refuse(op: Operation, what: str, rule: str, found: object) -> NoReturn:
    """Raise `CompileError` "<what> must be <rule>, not <found>" with the op and its function."""
    message = (
        f"{what} must be {rule}, not {found} (op {op.name!r} in function {function_name(op)!r})"
    )
    raise CompileError(message, node=op.name)


def functions(module: ModuleOp) -> Iterator[func.FuncOp]:
    """Yield the module's functions that have a body, each of one block."""
    for op in module.walk():
        if isinstance(op, func.FuncOp) and op.body.blocks:
            if len(op.body.blocks) != 1:
                refuse(
                    op,
                    f"function {op.sym_name.data!r}",
                    "one block",
                    f"{len(op.body.blocks)} blocks",
                )
            yield op


def function_name(op: Operation) -> str:
    """Return the name of the function that holds the op, or "?"."""
    current: Operation | None = op
    while current is not None and not isinstance(current, func.FuncOp):
        current = current.parent_op()
    return current.sym_name.data if current is not None else "?"


def argument_symbols(function: func.FuncOp) -> dict[SSAValue, str]:
    """Return the symbol of each of the function's arguments; `CompileError` if they have none."""
    names = function.attributes.get(ARGUMENT_NAMES)
    arguments = function.body.block.args
    if not isa(names, ArrayAttr[StringAttr]) or len(names.data) != len(arguments):
        refuse(function, f"attribute {ARGUMENT_NAMES!r}", "a name for each argument", names)
    return {argument: name.data for argument, name in zip(arguments, names.data, strict=True)}


def value_name(value: SSAValue) -> str:
    """Return the value's name as IR text would most likely print it."""
    return f"%{value.name_hint}" if value.name_hint else "an unnamed value"


def defining_block(value: SSAValue) -> Block:
    """Return the block whose op or argument the value is."""
    if isinstance(value, BlockArgument):
        return value.owner
    block = cast(OpResult, value).op.parent_block()
    assert block is not None, "a value of a detached op"
    return block


def is_inside(value: SSAValue, op: Operation) -> bool:
    """Whether the value is defined inside one of the op's regions."""
    return any(op.is_ancestor(parent) for parent in [defining_block(value).parent_op()] if parent)


def is_host(value: SSAValue) -> bool:
    """Whether the value is defined at function level: an argument, or computed by the host."""
    return isinstance(defining_block(value).parent_op(), func.FuncOp)


def strip_stream(value: SSAValue) -> SSAValue:
    """Return what the value is a constant stream of, or the value itself."""
    owner = value.owner
    return owner.value if isinstance(owner, slc.ToStreamOp) else value


def constant(value: SSAValue) -> int | None:
    """Return the integer that the value or constant stream always is; None if unknown."""
    owner = strip_stream(value).owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return cast("IntegerAttr[IndexType]", owner.value).value.data
    return None


def host_value(value: SSAValue) -> SSAValue | None:
    """Return the host value that the value, or the constant stream of it, is; None if it varies."""
    stripped = strip_stream(value)
    if is_host(stripped) and not isinstance(stripped.type, slc.StreamType):
        return stripped
    return None


def is_all_true(mask: SSAValue) -> bool:
    """Whether the mask, or the constant stream of it, is a constant without a false lane."""
    owner = strip_stream(mask).owner
    if not isinstance(owner, arith.ConstantOp) or not isinstance(
        owner.value, DenseIntOrFPElementsAttr
    ):
        return False
    return all(bool(lane) for lane in owner.value.get_values())


def nest_root(loop: Operation) -> Operation:
    """Return the outermost loop around the loop, itself included."""
    while not isinstance(parent := loop.parent_op(), func.FuncOp):
        assert parent is not None, "a loop outside a function"
        loop = parent
    return loop


def memref_root(value: SSAValue) -> SSAValue:
    """Trace views to the memref they look into."""
    while isinstance(value.owner, _VIEWS):
        value = value.owner.operands[0]
    return value


def may_alias(a: SSAValue, b: SSAValue, function: func.FuncOp) -> bool:
    """
    Whether two roots may overlap.

    Distinct allocations don't; distinct arguments of a function don't if it has `ember.noalias`.
    What else there is may overlap anything.
    """
    if a is b:
        return True

    def fresh(value: SSAValue) -> bool:
        return isinstance(value.owner, memref.AllocOp | memref.AllocaOp)

    def argument(value: SSAValue) -> bool:
        return value.owner is function.body.block

    if fresh(a) or fresh(b):
        return not all(fresh(value) or argument(value) for value in (a, b))
    return not (argument(a) and argument(b) and NOALIAS in function.attributes)


def unit_inner_stride(type_: Attribute) -> bool:
    """Whether neighbours in the memref's last dimension are neighbours in memory."""
    if not isinstance(type_, MemRefType):
        return False
    strides = cast("MemRefType[Attribute]", type_).get_strides()
    return strides is not None and bool(strides) and strides[-1] == 1


def entry_constant(function: func.FuncOp, value: AnyConstant, name: str) -> SSAValue:
    """Return a constant at the start of the function: one that is there already, or a new one."""
    block = function.body.block
    last: Operation | None = None
    for op in block.ops:
        if op.regions:
            break
        if isinstance(op, arith.ConstantOp):
            if op.value == value:
                return op.result
            last = op
    new = arith.ConstantOp(value)
    new.result.name_hint = name
    Rewriter.insert_op(new, InsertPoint.after(last) if last else InsertPoint.at_start(block))
    return new.result


def index_constant(function: func.FuncOp, value: int) -> SSAValue:
    """Return the `index` constant at the start of the function."""
    return entry_constant(function, IntegerAttr.from_index_int_value(value), f"c{value}")


def zero_vector(element: Attribute, lanes: int) -> DenseIntOrFPElementsAttr:
    """Return the constant of a vector of zeros."""
    if isinstance(element, AnyFloat):
        return DenseIntOrFPElementsAttr.from_list(VectorType(element, [lanes]), [0.0] * lanes)
    integer = cast(IntegerType[int] | IndexType, element)
    return DenseIntOrFPElementsAttr.from_list(VectorType(integer, [lanes]), [0] * lanes)


def find_remarks(module: ModuleOp) -> list[str]:
    """Return the remarks of passes, each with its function and loop."""
    remarks: list[str] = []
    for op in module.walk():
        remark = op.attributes.get(REMARK)
        if isinstance(remark, StringAttr):
            variable = value_name(op.regions[0].block.args[0])
            remarks.append(f"{function_name(op)}: loop of {variable}: {remark.data}")
    return remarks


def erase(op: Operation) -> None:
    """Remove an op whose results nothing uses."""
    op.detach()
    op.erase()


def copy_hint(source: SSAValue, target: SSAValue) -> None:
    """Name the target after the source, unless it has a name."""
    if target.name_hint is None and source.name_hint is not None:
        target.name_hint = source.name_hint
