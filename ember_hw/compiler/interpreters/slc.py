"""
Meaning of `slc`: sequential.

A stream is its head, so a stream op computes one value where it stands, loops run in order, and a
callback runs its body at its place.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from ember_hw.compiler.dialects import slc
from ember_hw.compiler.interpreters.arithmetic import divide_signed
from ember_hw.compiler.interpreters.frame import Frame, Handlers, Lowering, Step, run_loop
from ember_hw.compiler.interpreters.memory import load, view_of
from ember_hw.compiler.interpreters.values import as_memref

__all__ = ["SLC"]

SLC = Handlers()

_ALU: dict[slc.AluKind, Callable[[int, int], int]] = {
    slc.AluKind.ADD: operator.add,
    slc.AluKind.SUB: operator.sub,
    slc.AluKind.MUL: operator.mul,
    slc.AluKind.DIV: divide_signed,
}


@SLC.register(slc.ToStreamOp)
def _to_stream(op: slc.ToStreamOp, lowering: Lowering) -> None:
    lowering.alias(op.stream, lowering.slot(op.value))


@SLC.register(slc.FromStreamOp)
def _from_stream(op: slc.FromStreamOp, lowering: Lowering) -> Step | None:
    source = lowering.slot(op.stream)
    if as_memref(op.value.type) is None:
        lowering.alias(op.value, source)
        return None
    target = lowering.slot(op.value)

    def read_row(frame: Frame) -> None:
        frame[target] = frame[source].row

    return read_row


@SLC.register(slc.CastStreamOp)
def _cast_stream(op: slc.CastStreamOp, lowering: Lowering) -> None:
    lowering.alias(op.result, lowering.slot(op.stream))


@SLC.register(slc.MemStreamOp)
def _mem_stream(op: slc.MemStreamOp, lowering: Lowering) -> Step:
    return load(op.name, lowering, op.memref, op.indices, op.result)


@SLC.register(slc.ViewOp)
def _view(op: slc.ViewOp, lowering: Lowering) -> Step:
    source, target = lowering.slot(op.source), lowering.slot(op.result)
    base, rows, length, pitch = lowering.slots((op.base, op.rows, op.length, op.pitch))

    def run(frame: Frame) -> None:
        sizes, strides = [frame[rows], frame[length]], [frame[pitch], 1]
        frame[target] = view_of(frame[source], frame[base], sizes, strides)

    return run


@SLC.register(slc.AluStreamOp)
def _alu_stream(op: slc.AluStreamOp, lowering: Lowering) -> Step:
    compute = _ALU[op.alu_op.data]
    lhs, rhs, target = lowering.slot(op.lhs), lowering.slot(op.rhs), lowering.slot(op.result)

    def run(frame: Frame) -> None:
        frame[target] = compute(frame[lhs], frame[rhs])

    return run


@SLC.register(slc.ForOp)
def _for(op: slc.ForOp, lowering: Lowering) -> Step:
    return run_loop(
        op.name,
        (lowering.slot(op.lower_bound), lowering.slot(op.upper_bound), lowering.slot(op.step)),
        lowering.slots(op.init_args),
        lowering.slots(op.res),
        lowering.body(op.body.block),
    )


@SLC.register(slc.CallbackOp)
def _callback(op: slc.CallbackOp, lowering: Lowering) -> Step:
    body, results = lowering.body(op.body.block), lowering.slots(op.res)
    if not results:
        return body.run

    def run(frame: Frame) -> None:
        body.run(frame)
        for target, value in zip(results, body.results(frame), strict=True):
            frame[target] = value

    return run


@SLC.register(slc.AccelerateForOp, slc.ConfigureOp)
def _marker(op: slc.AccelerateForOp | slc.ConfigureOp, lowering: Lowering) -> None:
    return None
