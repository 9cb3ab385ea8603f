"""Vectors of `dlc` as loops over elements: what `extract_code` makes of vector ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from xdsl.dialects import arith, memref, scf, vector
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, Operation, SSAValue

from ember_hw.compiler.backend.execute_code import (
    Carried,
    Compute,
    For,
    Load,
    ReadRow,
    Statement,
    Store,
)
from ember_hw.compiler.backend.execute_operations import FLOATS
from ember_hw.compiler.backend.extract_values import computation, scalar_type
from ember_hw.compiler.dialects import dlc, slcvec
from ember_hw.compiler.dialects.quantized import DequantizeOp
from ember_hw.compiler.transforms.ir_facts import NOALIAS, constant, host_value

if TYPE_CHECKING:
    from ember_hw.compiler.backend.extract_code import Extraction

__all__ = ["is_vector", "lane_loop", "loop"]

_STORES = (memref.StoreOp, memref.CopyOp, vector.StoreOp, vector.MaskedStoreOp)


def is_vector(op: Operation) -> bool:
    """Whether an op works on vectors."""
    types = [value.type for value in (*op.operands, *op.results)]
    return any(isinstance(type_, VectorType) for type_ in types)


def loop(extraction: Extraction, op: scf.ForOp) -> list[Statement]:
    """Return an `scf.for`; one over elements where its body works on vectors."""
    types = [
        value.type for inner in op.body.block.ops for value in (*inner.operands, *inner.results)
    ]
    widths = {lanes for type_ in types if (lanes := _lanes(type_))}
    lower, upper = extraction.value(op, op.lb), extraction.value(op, op.ub)
    initial = [extraction.value(op, value) for value in op.iter_args]
    variable, *carried = op.body.block.args
    index = extraction.define(variable)
    arguments = [extraction.define(argument) for argument in carried]
    last = op.body.block.last_op
    assert isinstance(last, scf.YieldOp)
    if widths:
        if len(widths) != 1 or constant(op.step) not in widths:
            extraction.refuse(op, "of one vector a step")
        step = extraction.host.constant("index", 1)
        _check_independent(extraction, op)
        lane = _Lane(extraction, variable, index, (op.lb, op.ub))
        for inner in op.body.block.ops:
            lane.visit(inner)
        body = lane.statements
    else:
        step = extraction.value(op, op.step)
        body = extraction.block(op.body.block)
    following = [extraction.value(op, value) for value in last.operands]
    results = [extraction.define(result) for result in op.res]
    values = zip(arguments, initial, following, results, strict=True)
    return [For(index, lower, upper, step, tuple(body), tuple(Carried(*each) for each in values))]


def lane_loop(extraction: Extraction, op: Operation) -> list[Statement]:
    """Return the loop over lanes that stores or folds a vector outside a loop over vectors.

    Other vector ops have no statements of their own: the loop computes what it needs.
    """
    if not isinstance(op, vector.MaskedStoreOp | slcvec.FoldOp):
        is_known = isinstance(
            op,
            arith.ConstantOp
            | vector.BroadcastOp
            | vector.MaskedLoadOp
            | slcvec.FromBufferOp
            | slcvec.MaskOp
            | slcvec.VecIndvarOp,
        )
        if not is_known and computation(op) is None:
            extraction.refuse(op, "an operation of execute code")
        return []
    mask = op.mask.owner
    if not isinstance(mask, slcvec.MaskOp):
        extraction.refuse(op, "masked by an slcvec.mask of its case")
    head, lower, upper, step = mask.operands
    if constant(step) != 1:
        extraction.refuse(mask, "of element step 1")
    names, host = extraction.names, extraction.host
    first, room = names.new("first"), names.new("room")
    below, count = names.new("below"), names.new("count")
    lanes = _lanes(op.mask.type)
    start = extraction.value(op, head)
    zero, width = host.constant("index", 0), host.constant("index", lanes)
    statements: list[Statement] = [
        Compute(below, "index", "subi", (extraction.value(op, lower), start)),
        Compute(first, "index", "maxsi", (below, zero)),
        Compute(room, "index", "subi", (extraction.value(op, upper), start)),
        Compute(count, "index", "minsi", (room, width)),
    ]
    number, index = names.new("lane"), names.new(head.name_hint or "index")
    lane = _Lane(extraction, head, index, (lower, upper), offset=number, effect=op)
    lane.statements.append(Compute(index, "index", "addi", (start, number)))
    carried: tuple[Carried, ...] = ()
    if isinstance(op, slcvec.FoldOp):
        argument = names.new("folded")
        initial = extraction.value(op, op.initial)
        following = lane.fold(op, argument)
        carried = (Carried(argument, initial, following, extraction.define(op.result)),)
    else:
        lane.visit(op)
    one = host.constant("index", 1)
    return [*statements, For(number, first, count, one, tuple(lane.statements), carried)]


class _Lane:
    """One lane of a loop: the statements that compute it.

    Parameters
    ----------
    extraction : Extraction
        Gives names.
    head : SSAValue
        Position of lane 0.
    index : str
        Position of this lane.
    bounds : (SSAValue, SSAValue)
        Between which lanes are active.
    offset : str, optional
        Number of the lane in its vector; None in a loop over vectors.
    effect : Operation, optional
        Where a vector outside such a loop is stored or folded.
    """

    def __init__(
        self,
        extraction: Extraction,
        head: SSAValue,
        index: str,
        bounds: tuple[SSAValue, SSAValue],
        *,
        offset: str | None = None,
        effect: Operation | None = None,
    ) -> None:
        self.extraction, self.head, self.index = extraction, head, index
        self.bounds, self.offset, self.effect = bounds, offset, effect
        self.statements: list[Statement] = []
        self.names: dict[SSAValue, str] = {}

    def value(self, user: Operation, value: SSAValue) -> str:
        """Return the name of a vector's element in this lane, computing it first if need be."""
        if value not in self.names:
            owner = value.owner
            if not isinstance(owner, Operation):
                self.extraction.refuse(user, "on vectors of its case")
            if (literal := self.extraction.host.literal(value)) is not None:
                return literal
            self.visit(owner)
        return self.names[value]

    def define(self, value: SSAValue) -> str:
        self.names[value] = self.extraction.names.new(value.name_hint or "v")
        return self.names[value]

    def visit(self, op: Operation) -> None:
        """Add what an op does in this lane."""
        extraction = self.extraction
        match op:
            case arith.ConstantOp() | memref.DimOp() | scf.YieldOp():
                pass
            case slcvec.MaskOp():
                self.check_mask(op, op.result)
            case slcvec.VecIndvarOp():
                if op.operands[0] is not self.head or constant(op.operands[3]) != 1:
                    extraction.refuse(op, "of its loop's variable and element step 1")
                self.names[op.results[0]] = self.index
            case vector.BroadcastOp():
                self.names[op.vector] = extraction.value(op, op.source)
            case slcvec.FromBufferOp() if isinstance(op.result.type, VectorType):
                if op.indices[0] is not self.head:
                    extraction.refuse(op, "of the lanes of its loop")
                row = extraction.value(op, op.memref)
                self.statements.append(ReadRow(self.define(op.result), row, self.index))
            case dlc.PopOperandOp() if isinstance(op.result.type, VectorType):
                if self.offset is None:
                    extraction.refuse(op, "outside a loop over vectors")
                row = extraction.value(op, op.result)
                self.statements.append(ReadRow(self.define(op.result), row, self.offset))
            case DequantizeOp():
                self.names[op.result] = self.value(op, op.quantized)  # a read of the row gives it
            case vector.MaskedLoadOp():
                self.check_mask(op, op.mask)
                self.check_unchanged(op)
                symbol = extraction.memory(op, op.base)
                at = self.position(op, op.indices)
                self.statements.append(Load(self.define(op.result), symbol, at))
            case vector.MaskedStoreOp():
                self.check_mask(op, op.mask)
                symbol = extraction.memory(op, op.base, is_written=True)
                value = self.value(op, op.value_to_store)
                self.statements.append(Store(symbol, self.position(op, op.indices), value))
            case slcvec.FoldOp():
                name = self.fold(op, extraction.value(op, op.initial))
                extraction.values[op.result] = name
            case _ if is_vector(op):
                found = computation(op)
                if found is None:
                    extraction.refuse(op, "an operation of execute code")
                operands = tuple(
                    self.value(op, operand)
                    if isinstance(operand.type, VectorType)
                    else extraction.value(op, operand)
                    for operand in op.operands
                )
                name = self.define(op.results[0])
                self.statements.append(Compute(name, found[1], found[0], operands))
            case _:
                self.statements += extraction.statement(op)

    def fold(self, op: slcvec.FoldOp, initial: str) -> str:
        """Add one step of a fold; return the name of what it gives."""
        self.check_mask(op, op.mask)
        kind, type_ = op.kind.data.value, scalar_type(op.result.type)
        if type_ is None:
            self.extraction.refuse(op, "an operation of execute code")
        suffix = {"add": "f", "mul": "f"} if type_ in FLOATS else {"add": "i", "mul": "i"}
        suffix |= {"and": "i", "or": "i", "xor": "i"}
        value = self.value(op, op.vector)
        name = self.extraction.names.new(op.result.name_hint or "v")
        operation = kind + suffix.get(kind, "")
        self.statements.append(Compute(name, type_, operation, (initial, value)))
        return name

    def position(self, op: Operation, indices: Sequence[SSAValue]) -> tuple[str, ...]:
        """Return the indices of this lane's element."""
        *outer, last = indices
        is_shifted = isinstance(last.owner, arith.AddiOp) and self.head in last.owner.operands
        if (last is not self.head and not is_shifted) or self.head in outer:
            self.extraction.refuse(op, "of the lanes of its mask")
        index = self.index
        if is_shifted:
            index = self.extraction.value(op, last)
            if self.offset is not None:
                first, index = index, self.extraction.names.new(last.name_hint or "index")
                self.statements.append(Compute(index, "index", "addi", (first, self.offset)))
        return (*self.extraction.indices(op, outer), index)

    def check_mask(self, op: Operation, value: SSAValue) -> None:
        mask = value.owner
        if not isinstance(mask, slcvec.MaskOp):
            self.extraction.refuse(op, "masked by an slcvec.mask of its case")
        head, lower, upper, step = mask.operands
        is_same = head is self.head and all(
            _same(left, right) for left, right in zip((lower, upper), self.bounds, strict=True)
        )
        if not is_same or constant(step) != 1:
            self.extraction.refuse(op, "masked by the bounds of its loop")

    def check_unchanged(self, op: vector.MaskedLoadOp) -> None:
        """Refuse a load whose memory is written before its vector is used."""
        if self.effect is None:
            return
        no_alias = NOALIAS in self.extraction.function.attributes
        following = op.next_op
        while following is not None and following is not self.effect:
            for inner in following.walk():
                if isinstance(inner, _STORES) and (
                    not no_alias or any(operand is op.base for operand in inner.operands)
                ):
                    self.extraction.refuse(op, "used before its memory is written")
            following = following.next_op


def _check_independent(extraction: Extraction, loop: scf.ForOp) -> None:
    """Refuse a vector loop whose lanes depend on each other, other than by folds."""
    last = loop.body.block.last_op
    assert last is not None
    stored: set[SSAValue] = set()
    for op in loop.body.block.ops:
        if isinstance(op, vector.MaskedStoreOp):
            stored.add(op.base)
        elif op.regions or isinstance(op, (*_STORES, dlc.SetVarOp, dlc.IncrementVarOp)):
            extraction.refuse(op, "outside a loop over vectors")
    no_alias = NOALIAS in extraction.function.attributes
    for op in loop.body.block.ops:
        is_lane = isinstance(op, vector.MaskedLoadOp)
        source = op.base if isinstance(op, vector.MaskedLoadOp) else None
        source = op.memref if isinstance(op, memref.LoadOp) else source
        if source is None or source in extraction.values or not stored:
            continue
        if (source in stored and not is_lane) or (source not in stored and not no_alias):
            extraction.refuse(op, "of the lanes that are stored")
    for position, argument in enumerate(loop.body.block.args[1:]):
        result = last.operands[position]
        fold = result.owner
        is_fold = (
            isinstance(fold, slcvec.FoldOp)
            and fold.initial is argument
            and _readers(loop, argument) == [fold]
            and _readers(loop, result) == [last]
        )
        if not is_fold:
            extraction.refuse(loop, "one that carries folds of its vectors only")


def _lanes(type_: Attribute) -> int:
    """Return the lanes of a vector; 0 of anything else."""
    if not isinstance(type_, VectorType):
        return 0
    return cast("VectorType[Attribute]", type_).get_shape()[0]


def _readers(loop: scf.ForOp, value: SSAValue) -> list[Operation]:
    """Return the ops of a loop without inner regions that read a value."""
    ops = loop.body.block.ops
    return [op for op in ops if any(operand is value for operand in op.operands)]


def _same(left: SSAValue, right: SSAValue) -> bool:
    """Whether two values are the same on every run."""
    left, right = host_value(left) or left, host_value(right) or right
    if left is right:
        return True
    if constant(left) is not None:
        return constant(left) == constant(right)
    a, b = left.owner, right.owner
    if isinstance(a, memref.DimOp) and isinstance(b, memref.DimOp):
        return a.source is b.source and _same(a.index, b.index)
    return False
