"""`sink-regular-loops`: loops that reread what is regular run on the execute side, over one row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, vector
from xdsl.dialects.builtin import (
    IndexType,
    MemRefType,
    ModuleOp,
)
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ember_hw.compiler.dialects import slc, slcvec
from ember_hw.compiler.dialects.stream_types import vector_shape
from ember_hw.compiler.transforms.callbacks import (
    merge_callbacks,
    replace_by_callback,
    to_execute_loop,
)
from ember_hw.compiler.transforms.ir_facts import (
    constant,
    copy_hint,
    entry_constant,
    functions,
    host_value,
    index_constant,
    is_host,
    is_inside,
    zero_vector,
)
from ember_hw.compiler.transforms.rows import MemStream, is_row_loop, move_row, row_source

_ARITHMETIC: dict[slc.AluKind, type[arith.AddiOp | arith.SubiOp | arith.MuliOp | arith.DivSIOp]] = {
    slc.AluKind.ADD: arith.AddiOp,
    slc.AluKind.SUB: arith.SubiOp,
    slc.AluKind.MUL: arith.MuliOp,
    slc.AluKind.DIV: arith.DivSIOp,
}
_STREAMS = (slc.AluStreamOp, slc.CastStreamOp, slc.MemStreamOp, slcvec.BufStreamOp)


@dataclass(frozen=True)
class SinkRegularLoops(ModulePass):
    """
    Send a row once for all iterations of a loop that otherwise reads only what is regular.

    Accepts `slcvec` from `buffer-compound-types`. A read is *regular* if no value that the access
    unit has loaded takes part in its address: sums and products of host values and of induction
    variables of loops whose bounds are host values. An inner loop qualifies if its bounds are host
    values, its body has no loop of the access unit, every memory read in it that depends on its
    induction variable is regular, and at least one row that isn't regular stays the same in all its
    iterations (the key of a block, read against each of its queries).

    Such a loop leaves the access unit: the rows that stay the same are filled once in front, and
    the loop becomes an `scf.for` in one callback, which computes indices itself and reads regular
    memory directly, at the same places in the same order.

    Parameters
    ----------
    stay : tuple of int
        Nests of a function, by number from 0 on, all of whose loops stay with the access unit.
    """

    name = "sink-regular-loops"

    stay: tuple[int, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run the pass on every function."""
        for function in functions(op):
            nests = [op for op in function.body.block.ops if isinstance(op, slc.ForOp)]
            nests = [nest for number, nest in enumerate(nests) if number not in self.stay]
            loops = [op for nest in nests for op in nest.walk() if isinstance(op, slc.ForOp)]
            for loop in reversed(loops):
                if isinstance(loop.parent_op(), slc.ForOp) and not is_row_loop(loop):
                    merge_callbacks(loop.body.block)
                    sink = _Loop(function, loop)
                    if sink.qualifies():
                        sink.sink()


class _Loop:
    """A loop that may leave the access unit."""

    def __init__(self, function: func.FuncOp, loop: slc.ForOp) -> None:
        self.function = function
        self.loop = loop
        ops = list(loop.body.block.ops)
        self.row_loops = [op for op in ops if is_row_loop(op)]
        self.callbacks = [op for op in ops if isinstance(op, slc.CallbackOp)]
        self.streams = [op for op in ops if isinstance(op, _STREAMS)]
        known = (*self.row_loops, *self.callbacks, *self.streams)
        self.others = [op for op in ops if op not in known and not isinstance(op, slc.YieldOp)]
        buffers = [op for op in ops if isinstance(op, slcvec.BufStreamOp)]
        self.rows: dict[SSAValue, MemStream] = {
            buffer.result: row_source(buffer.result) for buffer in buffers
        }

    def qualifies(self) -> bool:
        """Whether the loop can leave and has a row to send once."""
        loop = self.loop
        step = constant(loop.step)
        if any(host_value(v) is None for v in (loop.lower_bound, loop.upper_bound)):
            return False
        if step is None or self.others or len(self.callbacks) != 1:
            return False
        for stream in self.streams:
            if isinstance(stream, slc.MemStreamOp) and not all(map(_is_regular, stream.indices)):
                return False
        memories = [stream.memref for stream in self.streams if isinstance(stream, slc.MemStreamOp)]
        varying = [row for row in self.rows if self._varies(row)]
        memories += [self.rows[row].memref for row in varying]
        if not all(map(is_host, memories)):
            return False
        for row in varying:
            if not all(map(_is_regular, self.rows[row].indices[:-1])) or not self._is_direct(row):
                return False
        return any(
            row not in varying and not all(map(_is_regular, source.indices[:-1]))
            for row, source in self.rows.items()
        )

    def _varies(self, row: SSAValue) -> bool:
        return any(is_inside(index, self.loop) for index in self.rows[row].indices[:-1])

    def _is_direct(self, row: SSAValue) -> bool:
        """Whether the callback only reads elements of the row, which a load can do as well."""
        reads = [use.operation for use in row.uses if isinstance(use.operation, slc.FromStreamOp)]
        return all(
            isinstance(use.operation, slcvec.FromBufferOp | memref.LoadOp) and use.index == 0
            for read in reads
            for use in read.results[0].uses
        )

    def sink(self) -> None:
        """Replace the loop by rows and a callback."""
        loop = self.loop
        (callback,) = self.callbacks
        block = loop.parent_block()
        assert block is not None
        for row in [row for row in self.rows if not self._varies(row)]:
            move_row(row, block)
            del self.rows[row]
        bounds = [host_value(v) for v in (loop.lower_bound, loop.upper_bound, loop.step)]
        lower, upper, step = (bound for bound in bounds if bound is not None)
        code, reads = to_execute_loop(loop, callback, (lower, upper, step))
        values: dict[SSAValue, SSAValue] = {loop.induction_variable: code.body.block.args[0]}
        outer: dict[SSAValue, slc.FromStreamOp] = {}
        place = InsertPoint.at_start(code.body.block)
        for read in reads:
            if read.stream in self.rows:
                self._read_directly(read, values, outer, place)
            else:
                value = self._value(read.stream, values, outer, place)
                copy_hint(read.value, value)
                read.value.replace_all_uses_with(value)
            read.erase()
        replace_by_callback(loop, list(outer.values()), code)
        loop.detach()
        loop.erase(safe_erase=False)

    def _value(
        self,
        stream: SSAValue,
        values: dict[SSAValue, SSAValue],
        outer: dict[SSAValue, slc.FromStreamOp],
        place: InsertPoint,
    ) -> SSAValue:
        """Return a stream's head as a value of the execute side."""
        host = host_value(stream)
        if host is not None:
            return host
        if stream in values:
            return values[stream]
        if not is_inside(stream, self.loop):
            read = outer[stream] = slc.FromStreamOp(stream)
            copy_hint(stream, read.value)
            values[stream] = read.value
            return read.value
        source = cast(Operation, stream.owner)
        operands = [
            value if isinstance(value.type, MemRefType)
            else self._value(value, values, outer, place)
            for value in source.operands
        ]  # fmt: skip
        new: Operation
        if isinstance(source, slc.AluStreamOp):
            new = _ARITHMETIC[source.alu_op.data](operands[0], operands[1])
        elif isinstance(source, slc.CastStreamOp):
            new = arith.IndexCastOp(operands[0], IndexType())
        else:
            new = memref.LoadOp.get(operands[0], operands[1:])
        Rewriter.insert_op(new, place)
        copy_hint(stream, new.results[0])
        values[stream] = new.results[0]
        return new.results[0]

    def _read_directly(
        self,
        read: slc.FromStreamOp,
        values: dict[SSAValue, SSAValue],
        outer: dict[SSAValue, slc.FromStreamOp],
        place: InsertPoint,
    ) -> None:
        """Let reads of a regular row's elements load them from memory."""
        source = self.rows[read.stream]
        indices = [self._value(index, values, outer, place) for index in source.indices[:-1]]
        for use in list(read.value.uses):
            element = use.operation
            position = element.operands[1]
            new: Operation
            shape = vector_shape(element.results[0].type)
            if shape is None:
                new = memref.LoadOp.get(source.memref, [*indices, position])
            else:
                new = self._masked_load(element, source, [*indices, position], shape)
            copy_hint(element.results[0], new.results[0])
            Rewriter.replace_op(element, new)

    def _masked_load(
        self,
        element: Operation,
        source: MemStream,
        indices: list[SSAValue],
        shape: tuple[int, Attribute],
    ) -> Operation:
        """Return the load of lanes that, like those of a row, are 0 beyond the row's end."""
        lanes, element_type = shape
        fill = source.parent_op()
        assert isinstance(fill, slc.ForOp | slcvec.ForOp)
        length = host_value(fill.upper_bound)
        assert length is not None, "rows have a length that the host knows"
        zero, one = (index_constant(self.function, value) for value in (0, 1))
        mask = slcvec.MaskOp(indices[-1], zero, length, one, lanes)
        mask.result.name_hint = "mask"
        mask = _shared_mask(mask, element)
        zeros = entry_constant(self.function, zero_vector(element_type, lanes), "zeros")
        return vector.MaskedLoadOp(source.memref, indices, mask.result, zeros)


def _shared_mask(mask: slcvec.MaskOp, element: Operation) -> slcvec.MaskOp:
    """Return an equal mask in front of the element's op: one of its block, moved there, or this."""
    block = element.parent_block()
    assert block is not None
    is_above = True
    for op in block.ops:
        if op is element:
            is_above = False
        if isinstance(op, slcvec.MaskOp) and op.operands == mask.operands:
            if is_above:
                return op
            op.detach()
            mask = op
            break
    Rewriter.insert_op(mask, InsertPoint.before(element))
    return mask


def _is_regular(index: SSAValue) -> bool:
    """Whether nothing that the access unit has loaded takes part in the index."""
    if host_value(index) is not None:
        return True
    if isinstance(index, BlockArgument):
        loop = index.owner.parent_op()
        return (
            isinstance(loop, slc.ForOp)
            and host_value(loop.lower_bound) is not None
            and host_value(loop.upper_bound) is not None
        )
    return isinstance(index.owner, slc.AluStreamOp) and all(map(_is_regular, index.owner.operands))
