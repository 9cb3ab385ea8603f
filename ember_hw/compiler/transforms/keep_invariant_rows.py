"""`keep-invariant-rows`: a row that stays the same in a loop is sent once, in front of it."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ember_hw.compiler.dialects import slc, slcvec
from ember_hw.compiler.transforms.callbacks import add_result
from ember_hw.compiler.transforms.ir_facts import copy_hint, functions, is_inside
from ember_hw.compiler.transforms.rows import move_row, row_source


@dataclass(frozen=True)
class KeepInvariantRows(ModulePass):
    """
    Send a row where its place is decided, and keep it on the execute side.

    Accepts `slcvec` from `buffer-compound-types`. A row whose indices are all known outside a loop
    that isn't the root is filled in front of the outermost such loop, and a callback there reads
    it: the one that stands right before the loop, or a new one. Callbacks in the loop use what that
    callback yields.

    What is computed stays the same. A loop without iterations now sends its row too, which the
    program wouldn't load (that of a node without neighbours): it must exist, else the access unit
    reports it as out of bounds.
    """

    name = "keep-invariant-rows"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run the pass on every function."""
        for function in functions(op):
            for buffer in [op for op in function.walk() if isinstance(op, slcvec.BufStreamOp)]:
                loop = _outermost_loop(buffer)
                if loop is not None:
                    _keep(buffer.result, loop)


def _outermost_loop(buffer: slcvec.BufStreamOp) -> slc.ForOp | None:
    """Return the outermost loop in which the row stays the same; None if there is none."""
    source = row_source(buffer.result)
    places = [source.memref, *source.indices[:-1]]
    found: slc.ForOp | None = None
    loop = buffer.parent_op()
    while isinstance(loop, slc.ForOp) and not isinstance(loop.parent_op(), func.FuncOp):
        if any(is_inside(place, loop) for place in places):
            break
        found = loop
        loop = loop.parent_op()
    return found


def _keep(row: SSAValue, loop: slc.ForOp) -> None:
    block = loop.parent_block()
    assert block is not None
    readers = [use.operation for use in row.uses if isinstance(use.operation, slc.FromStreamOp)]
    move_row(row, block)
    before = loop.prev_op
    if not isinstance(before, slc.CallbackOp):
        before = slc.CallbackOp()
        Rewriter.insert_op(before, InsertPoint.before(loop))
    read = slc.FromStreamOp(row)
    copy_hint(row, read.value)
    Rewriter.insert_op(read, InsertPoint.at_start(before.body.block))
    kept = add_result(before, read.value)
    copy_hint(row, kept)
    for reader in readers:
        assert isinstance(reader, slc.FromStreamOp)
        Rewriter.replace_op(reader, [], [kept])
