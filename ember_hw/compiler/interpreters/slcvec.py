"""
Meaning of `slcvec`: sequential, one vector of lanes at a time.

An inactive lane makes no memory access and holds 0. Lanes of `from_buffer` beyond the row are 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation

from ember_hw.compiler.dialects import slcvec
from ember_hw.compiler.dialects.stream_types import head_type
from ember_hw.compiler.element_dtypes import is_float
from ember_hw.compiler.interpreters.arithmetic import FLOAT_COMPARE, INTEGER_COMPARE
from ember_hw.compiler.interpreters.frame import (
    Body,
    Frame,
    Handlers,
    Lowering,
    Step,
    iterations,
)
from ember_hw.compiler.interpreters.values import (
    Array,
    as_vector,
    dtype_of,
    element,
    from_array,
    memref_type,
    out_of_bounds,
    vector_type,
    zero_lanes,
)
from ember_hw.compiler.interpreters.vectors import REDUCTIONS
from ember_hw.errors import CheckError, UnsupportedError

__all__ = ["SLCVEC", "RowBuffer"]

SLCVEC = Handlers()


class RowBuffer:
    """
    A row that a vector loop fills.

    Parameters
    ----------
    dtype : dtype
        Of the elements.

    Attributes
    ----------
    row : ndarray
        What has been put so far, up to the last element written; the object is new whenever
        the row grows.
    """

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.row: Array = np.empty(0, dtype)

    def put(self, positions: Array, values: Array) -> None:
        """Write elements at these positions; what lies between and was never written is 0."""
        if not positions.size:
            return
        if positions.min() < 0:
            raise out_of_bounds("slcvec.to_buffer", [positions.min()], self.row.shape)
        missing = int(positions.max()) + 1 - self.row.size
        if missing > 0:
            self.row = np.concatenate([self.row, np.zeros(missing, self.row.dtype)])
        self.row[positions] = values


def _enclosing_mask(op: Operation, lowering: Lowering, lanes: int) -> int:
    """Slot of the mask of the vector loop around the op; all lanes if there is none."""
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, slcvec.ForOp) and parent.lanes == lanes:
            return lowering.slot(parent.out_mask)
        parent = parent.parent_op()
    return lowering.constant_slot(np.ones(lanes, np.bool_))


@SLCVEC.register(slcvec.ForOp)
def _for(op: slcvec.ForOp, lowering: Lowering) -> Step:
    if head_type(op.lower_bound.type) != IndexType():
        raise UnsupportedError(
            "bounds of slcvec.for must be scalars to be interpreted, not "
            f"{op.lower_bound.type} (loop form {op.loop_config.data.value!r})",
            node=op.name,
        )
    lanes = op.lanes
    lower, upper, stride = lowering.slots((op.lower_bound, op.upper_bound, op.step))
    in_mask, initial = lowering.slot(op.in_mask), lowering.slots(op.init_args)
    body, results = lowering.body(op.body.block), lowering.slots(op.res)
    lane_numbers = np.arange(lanes)
    variable, out_mask, *carried = body.arguments

    def run(frame: Frame) -> None:
        step, end = frame[stride], frame[upper]
        if step % lanes:
            raise CheckError(
                f"step of slcvec.for must be a multiple of its {lanes} lanes, not {step}"
            )
        offsets = lane_numbers * (step // lanes)
        _move(frame, initial, carried)
        for head in iterations("slcvec.for", frame[lower], end, step):
            frame[variable] = head + offsets
            frame[out_mask] = (frame[variable] < end) & frame[in_mask]
            body.run(frame)
            _carry(frame, body, carried)
        _move(frame, carried, results)

    return run


def _move(frame: Frame, sources: tuple[int, ...] | list[int], targets: Any) -> None:
    for source, target in zip(sources, targets, strict=True):
        frame[target] = frame[source]


def _carry(frame: Frame, body: Body, carried: list[int]) -> None:
    for target, value in zip(carried, body.results(frame), strict=True):
        frame[target] = value


@SLCVEC.register(slcvec.MemStreamOp)
def _mem_stream(op: slcvec.MemStreamOp, lowering: Lowering) -> Step:
    vector = vector_type(op.result)
    (lanes,) = vector.get_shape()
    array, target = lowering.slot(op.memref), lowering.slot(op.result)
    mask = _enclosing_mask(op, lowering, lanes)
    positions = lowering.slots(op.indices)
    gathers = any(as_vector(head_type(index.type)) is not None for index in op.indices)
    lane_numbers = np.arange(lanes)

    def run(frame: Frame) -> None:
        memory, active = frame[array], frame[mask]
        indices = [frame[slot] for slot in positions]
        if not gathers:
            # Contiguous elements from the last index: the row's end clips the vector.
            element(memory[..., :1], (*indices[:-1], 0), op.name)
            if indices[-1] < 0:
                raise out_of_bounds(op.name, indices, memory.shape)
            indices[-1] = indices[-1] + lane_numbers
            active = active & (indices[-1] < memory.shape[-1])
        lanes_read = [np.broadcast_to(index, lanes)[active] for index in indices]
        for position in zip(*lanes_read, strict=True):
            element(memory, position, op.name)
        result = zero_lanes(vector)
        result[active] = memory[tuple(lanes_read)]
        frame[target] = result

    return run


@SLCVEC.register(slcvec.BroadcastOp)
def _broadcast(op: slcvec.BroadcastOp, lowering: Lowering) -> Step:
    vector = vector_type(op.result)
    shape, dtype = vector.get_shape(), dtype_of(vector.element_type)
    source, target = lowering.slot(op.stream), lowering.slot(op.result)

    def run(frame: Frame) -> None:
        frame[target] = np.full(shape, frame[source], dtype)

    return run


@SLCVEC.register(slcvec.ExtractOp)
def _extract(op: slcvec.ExtractOp, lowering: Lowering) -> Step:
    lane, convert = op.index.value.data, from_array(head_type(op.result.type))
    source, target = lowering.slot(op.stream), lowering.slot(op.result)

    def run(frame: Frame) -> None:
        frame[target] = convert(frame[source][lane])

    return run


@SLCVEC.register(slcvec.TmpVecStreamCastOp, slcvec.TmpVecCastOp)
def _temporary(op: Operation, lowering: Lowering) -> None:
    raise CheckError(
        f"op to execute must be none of the vectorizer's temporary casts, not {op.name!r}"
    )


@SLCVEC.register(slcvec.BufStreamOp)
def _buf_stream(op: slcvec.BufStreamOp, lowering: Lowering) -> Step:
    dtype, target = dtype_of(memref_type(op.result).element_type), lowering.slot(op.result)

    def run(frame: Frame) -> None:
        frame[target] = RowBuffer(dtype)

    return run


@SLCVEC.register(slcvec.ToBufferOp)
def _to_buffer(op: slcvec.ToBufferOp, lowering: Lowering) -> Step:
    value, buffer = lowering.slot(op.stream), lowering.slot(op.buffer)
    index = lowering.slot(op.indices[0])
    vector = as_vector(head_type(op.stream.type))
    lanes = 1 if vector is None else vector.get_shape()[0]
    mask = _enclosing_mask(op, lowering, lanes)

    def run(frame: Frame) -> None:
        active = frame[mask]
        positions = np.atleast_1d(frame[index])[active]
        frame[buffer].put(positions, np.atleast_1d(frame[value])[active])

    return run


@SLCVEC.register(slcvec.FromBufferOp)
def _from_buffer(op: slcvec.FromBufferOp, lowering: Lowering) -> Step:
    row, index = lowering.slot(op.memref), lowering.slot(op.indices[0])
    target, vector = lowering.slot(op.result), as_vector(op.result.type)
    lanes = 1 if vector is None else vector.get_shape()[0]
    convert = from_array(op.result.type) if vector is None else None

    def run(frame: Frame) -> None:
        elements, first = frame[row], frame[index]
        if first < 0:
            raise out_of_bounds("slcvec.from_buffer", [first], elements.shape)
        read = np.zeros(lanes, elements.dtype)
        inside = elements[first : first + lanes]
        read[: inside.size] = inside
        frame[target] = read if convert is None else convert(read[0])

    return run


@SLCVEC.register(slcvec.VecIndvarOp, slcvec.MaskOp)
def _lane_op(op: slcvec.VecIndvarOp | slcvec.MaskOp, lowering: Lowering) -> Step:
    (lanes,) = vector_type(op.result).get_shape()
    lane_numbers = np.arange(lanes)
    head, lower, upper, step = lowering.slots(op.operands)
    target, is_mask = lowering.slot(op.result), isinstance(op, slcvec.MaskOp)

    def run(frame: Frame) -> None:
        values = frame[head] + lane_numbers * frame[step]
        if is_mask:
            values = (frame[lower] <= values) & (values < frame[upper])
        frame[target] = values

    return run


@SLCVEC.register(slcvec.FoldOp)
def _fold(op: slcvec.FoldOp, lowering: Lowering) -> Step:
    combine = REDUCTIONS[op.kind.data.value]
    initial, source, mask = lowering.slots(op.operands)
    target, dtype = lowering.slot(op.result), dtype_of(op.result.type)
    convert = from_array(op.result.type)

    def run(frame: Frame) -> None:
        folded = dtype.type(frame[initial])
        for lane in frame[source][frame[mask]]:
            folded = combine(folded, lane)
        frame[target] = convert(folded)

    return run


@SLCVEC.register(slcvec.CompareOp)
def _compare(op: slcvec.CompareOp, lowering: Lowering) -> Step:
    name = op.predicate.data
    lhs, rhs, target = lowering.slot(op.lhs), lowering.slot(op.rhs), lowering.slot(op.result)
    dtype = dtype_of(vector_type(op.lhs).element_type)
    unsigned = np.dtype(f"u{dtype.itemsize}") if dtype.kind == "i" and name[0] == "u" else dtype
    compare = FLOAT_COMPARE[name] if is_float(dtype) else INTEGER_COMPARE[name[-2:]]

    def run(frame: Frame) -> None:
        frame[target] = compare(frame[lhs].view(unsigned), frame[rhs].view(unsigned))

    return run


@SLCVEC.register(slcvec.SelectOp)
def _select(op: slcvec.SelectOp, lowering: Lowering) -> Step:
    mask, lhs, rhs = lowering.slots(op.operands)
    target = lowering.slot(op.result)

    def run(frame: Frame) -> None:
        frame[target] = np.where(frame[mask], frame[lhs], frame[rhs])

    return run


@SLCVEC.register(slcvec.VectorizeForOp)
def _marker(op: slcvec.VectorizeForOp, lowering: Lowering) -> None:
    return None
