"""`scf-to-slc`: the access slice becomes loops and streams, whose heads callbacks read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, MemRefType, ModuleOp
from xdsl.dialects.utils import get_dynamic_index_list
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ember_hw.compiler.dialects import slc
from ember_hw.compiler.transforms.access_slice import top_level_nests
from ember_hw.compiler.transforms.ir_facts import (
    KEEP,
    OFFLOAD,
    copy_hint,
    functions,
    index_constant,
    is_host,
    refuse,
    value_name,
)

_ALU: dict[type[Operation], slc.AluKind] = {
    arith.AddiOp: slc.AluKind.ADD,
    arith.SubiOp: slc.AluKind.SUB,
    arith.MuliOp: slc.AluKind.MUL,
    arith.DivSIOp: slc.AluKind.DIV,
}


@dataclass(frozen=True)
class ScfToSlc(ModulePass):
    """
    Turn offloaded loops into `slc.for` and what feeds them into streams.

    Accepts what `choose-decoupling` leaves. Loads, index arithmetic and index casts outside
    callbacks become stream ops; host values enter by `slc.to_stream` before the nest; a loop's
    `iter_args` become execute values. A callback reads each stream it uses once, by an
    `slc.from_stream` at its start: indices first, then other scalars, then rows, within these the
    outermost loop's first.

    The conversion is total: a top-level loop without `ember.offload` or `ember.host`, or an op
    that is neither slice, callback nor loop, is an error. The code in callbacks stays the same.
    """

    name = "scf-to-slc"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run the pass on every function."""
        for function in functions(op):
            for loop in top_level_nests(function):
                _Nest(loop).convert()


def read_order(stream: SSAValue) -> int:
    """Return the sort key of an operand: 0 for indices, 1 for scalars and vectors, 2 for rows."""
    assert isinstance(stream.type, slc.StreamType)
    element = stream.type.element_type
    if isinstance(element, IndexType):
        return 0
    return 2 if isinstance(element, MemRefType) else 1


class _Nest:
    """One top-level nest and the stream of each value of its slice."""

    def __init__(self, root: scf.ForOp) -> None:
        self.root = root
        self.before = InsertPoint.before(root)
        # In order of definition, so outermost loops first.
        self.streams: dict[SSAValue, SSAValue] = {}
        self.constants: dict[SSAValue, SSAValue] = {}

    def convert(self) -> None:
        """Replace the nest."""
        loop = self._loop(self.root, None)
        Rewriter.insert_op(loop, self.before)
        self.root.detach()
        self.root.erase(safe_erase=False)

    def _stream(self, value: SSAValue, user: Operation) -> SSAValue:
        """Return the stream of a slice or host value."""
        if value in self.streams:
            return self.streams[value]
        if not is_host(value):
            refuse(
                user,
                f"operand {value_name(value)} of the access slice",
                "a stream or a host value",
                "an execute value",
            )
        if value not in self.constants:
            op = slc.ToStreamOp(value)
            Rewriter.insert_op(op, self.before)
            self.constants[value] = op.stream
        return self.constants[value]

    def _define(self, value: SSAValue, stream: SSAValue) -> None:
        copy_hint(value, stream)
        self.streams[value] = stream

    def _loop(self, loop: scf.ForOp, around: Block | None) -> slc.ForOp:
        if OFFLOAD not in loop.attributes:
            refuse(loop, "loop outside a callback", f"marked {OFFLOAD!r}", "unmarked")
        lower, upper, step = (self._stream(b, loop) for b in (loop.lb, loop.ub, loop.step))
        old = loop.body.block
        block = Block(arg_types=[slc.StreamType(IndexType()), *(arg.type for arg in old.args[1:])])
        self._define(old.args[0], block.args[0])
        for before, after in zip(old.args[1:], block.args[1:], strict=True):
            copy_hint(before, after)
            before.replace_all_uses_with(after)
        for op in list(old.ops):
            block.add_op(self._op(op, block))
        attributes = {name: value for name, value in loop.attributes.items() if name != OFFLOAD}
        inits = (
            list(loop.iter_args) if around is None else self._execute_values(around, loop.iter_args)
        )
        new = slc.ForOp(lower, upper, step, inits, Region(block), attributes)
        for before, after in zip(loop.res, new.res, strict=True):
            copy_hint(before, after)
            before.replace_all_uses_with(after)
        return new

    def _op(self, op: Operation, block: Block) -> Operation:
        """Return the new form of an op at the end of the block."""
        if isinstance(op, scf.ForOp):
            return self._loop(op, block)
        if isinstance(op, slc.CallbackOp):
            op.detach()
            self._sink_reads(op)
            return op
        if isinstance(op, scf.YieldOp):
            return slc.YieldOp(*self._execute_values(block, op.operands))
        new: Operation
        if type(op) in _ALU:
            lhs, rhs = (self._stream(value, op) for value in op.operands)
            new = slc.AluStreamOp(_ALU[type(op)], lhs, rhs)
        elif isinstance(op, arith.IndexCastOp) and isinstance(op.result.type, IndexType):
            new = slc.CastStreamOp(self._stream(op.input, op))
        elif isinstance(op, memref.ReinterpretCastOp):
            new = self._view(op)
            copy_hint(op.result, new.result)
            op.result.replace_all_uses_with(new.result)
            return new
        elif isinstance(op, memref.LoadOp):
            keep = KEEP in op.attributes
            indices = [self._stream(index, op) for index in op.indices]
            new = slc.MemStreamOp(op.memref, indices, nontemporal=bool(op.nontemporal), keep=keep)
        else:
            rule = "a load, index arithmetic, an index cast, a marked loop or an slc.callback"
            refuse(op, "op outside a callback", rule, repr(op.name))
        self._define(op.results[0], new.results[0])
        return new

    def _view(self, op: memref.ReinterpretCastOp) -> slc.ViewOp:
        """Return a table of the access slice as a view at streams."""
        shape = [
            get_dynamic_index_list(static.get_values(), dynamic, DYNAMIC_INDEX)
            for static, dynamic in (
                (op.static_offsets, op.offsets),
                (op.static_sizes, op.sizes),
                (op.static_strides, op.strides),
            )
        ]
        (base,), (rows, length), (pitch, _) = (
            [
                self._stream(item, op) if isinstance(item, SSAValue) else self._constant(op, item)
                for item in items
            ]
            for items in shape
        )
        return slc.ViewOp(op.source, base, rows, length, pitch, op.result.type)

    def _constant(self, op: Operation, number: int) -> SSAValue:
        function = self.root.parent_op()
        assert isinstance(function, func.FuncOp)
        return self._stream(index_constant(function, number), op)

    def _execute_values(self, block: Block, values: Iterable[SSAValue]) -> list[SSAValue]:
        """Return what is carried; a callback at the block's end reads the streams among it."""
        carried = list(values)
        streams = [value for value in carried if value in self.streams]
        if not streams:
            return carried
        callback = slc.CallbackOp(
            [value.type for value in streams], Region(Block([slc.YieldOp(*streams)]))
        )
        self._sink_reads(callback)
        block.add_op(callback)
        results = dict(zip(streams, callback.res, strict=True))
        return [results.get(value, value) for value in carried]

    def _sink_reads(self, callback: slc.CallbackOp) -> None:
        """Let the callback read each stream that it uses, once, at its start."""
        inside = list(callback.walk())
        used = [value for value in self.streams if any(value in op.operands for op in inside)]
        reads: list[Operation] = []
        for value in sorted(used, key=lambda value: read_order(self.streams[value])):
            read = slc.FromStreamOp(self.streams[value])
            copy_hint(value, read.value)
            value.replace_uses_with_if(read.value, lambda use: callback.is_ancestor(use.operation))
            reads.append(read)
        Rewriter.insert_op(reads, InsertPoint.at_start(callback.body.block))
