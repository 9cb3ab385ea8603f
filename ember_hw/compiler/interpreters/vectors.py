"""Meaning of the host's `vector` ops. Inactive lanes make no access, so they may lie outside."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects import vector
from xdsl.ir import SSAValue

from ember_hw.compiler.interpreters.arithmetic import (
    maximum,
    maximum_number,
    minimum,
    minimum_number,
)
from ember_hw.compiler.interpreters.frame import Frame, Handlers, Lowering, Step
from ember_hw.compiler.interpreters.values import (
    Array,
    as_vector,
    dtype_of,
    element,
    from_array,
    lane_positions,
    vector_type,
)
from ember_hw.errors import UnsupportedError

__all__ = ["REDUCTIONS", "VECTORS"]

VECTORS = Handlers()


@VECTORS.register(vector.LoadOp)
def _vector_load(op: vector.LoadOp, lowering: Lowering) -> Step:
    all_lanes = np.ones(vector_type(op.result).get_shape(), np.bool_)
    array, target = lowering.slot(op.base), lowering.slot(op.result)
    positions = lowering.slots(op.indices)

    def run(frame: Frame) -> None:
        position = tuple(frame[slot] for slot in positions)
        row, columns = lane_positions(frame[array], position, all_lanes, "vector.load")
        frame[target] = row[columns]

    return run


@VECTORS.register(vector.StoreOp)
def _vector_store(op: vector.StoreOp, lowering: Lowering) -> Step:
    all_lanes = np.ones(vector_type(op.vector).get_shape(), np.bool_)
    array, value = lowering.slot(op.base), lowering.slot(op.vector)
    positions = lowering.slots(op.indices)

    def run(frame: Frame) -> None:
        position = tuple(frame[slot] for slot in positions)
        row, columns = lane_positions(frame[array], position, all_lanes, "vector.store")
        row[columns] = frame[value]

    return run


@VECTORS.register(vector.MaskedLoadOp)
def _masked_load(op: vector.MaskedLoadOp, lowering: Lowering) -> Step:
    array, target = lowering.slot(op.base), lowering.slot(op.result)
    mask, inactive = lowering.slot(op.mask), lowering.slot(op.pass_thru)
    positions = lowering.slots(op.indices)

    def run(frame: Frame) -> None:
        position = tuple(frame[slot] for slot in positions)
        row, columns = lane_positions(frame[array], position, frame[mask], "vector.maskedload")
        lanes = frame[inactive].copy()
        lanes[frame[mask]] = row[columns]
        frame[target] = lanes

    return run


@VECTORS.register(vector.MaskedStoreOp)
def _masked_store(op: vector.MaskedStoreOp, lowering: Lowering) -> Step:
    array, mask = lowering.slot(op.base), lowering.slot(op.mask)
    value, positions = lowering.slot(op.value_to_store), lowering.slots(op.indices)

    def run(frame: Frame) -> None:
        position = tuple(frame[slot] for slot in positions)
        row, columns = lane_positions(frame[array], position, frame[mask], "vector.maskedstore")
        row[columns] = frame[value][frame[mask]]

    return run


@VECTORS.register(vector.BroadcastOp)
def _broadcast(op: vector.BroadcastOp, lowering: Lowering) -> Step:
    type_ = vector_type(op.vector)
    shape, dtype = type_.get_shape(), dtype_of(type_.element_type)
    source, target = lowering.slot(op.source), lowering.slot(op.vector)

    def run(frame: Frame) -> None:
        frame[target] = np.full(shape, frame[source], dtype)

    return run


@VECTORS.register(vector.CreateMaskOp)
def _create_mask(op: vector.CreateMaskOp, lowering: Lowering) -> Step:
    shape = vector_type(op.mask_vector).get_shape()
    lane_numbers: list[Array] = list(np.indices(shape))
    counts, target = lowering.slots(op.mask_dim_sizes), lowering.slot(op.mask_vector)

    def run(frame: Frame) -> None:
        mask: Array = np.ones(shape, np.bool_)
        for lanes, count in zip(lane_numbers, counts, strict=True):
            mask &= lanes < frame[count]
        frame[target] = mask

    return run


@VECTORS.register(vector.ExtractOp)
def _extract(op: vector.ExtractOp, lowering: Lowering) -> Step:
    source, target = lowering.slot(op.vector), lowering.slot(op.result)
    positions = _lane_slots(op, lowering)
    convert = from_array(op.result.type)

    def run(frame: Frame) -> None:
        lanes = frame[source]
        position = tuple(frame[slot] for slot in positions)
        frame[target] = convert(lanes[element(lanes, position, "vector.extract")])

    return run


@VECTORS.register(vector.InsertOp)
def _insert(op: vector.InsertOp, lowering: Lowering) -> Step:
    source, target = lowering.slot(op.source), lowering.slot(op.result)
    into, positions = lowering.slot(op.dest), _lane_slots(op, lowering)

    def run(frame: Frame) -> None:
        lanes = frame[into].copy()
        position = tuple(frame[slot] for slot in positions)
        lanes[element(lanes, position, "vector.insert")] = frame[source]
        frame[target] = lanes

    return run


def _lane_slots(op: vector.ExtractOp | vector.InsertOp, lowering: Lowering) -> list[int]:
    """Slots of a lane's position; one scalar of a vector of any rank."""
    scalar = op.result if isinstance(op, vector.ExtractOp) else op.source
    if as_vector(scalar.type) is not None:
        raise UnsupportedError(
            f"lane of {op.name} must be a scalar to be interpreted, not {scalar.type}",
            node=op.name,
        )
    return [
        lowering.slot(item) if isinstance(item, SSAValue) else lowering.constant_slot(item)
        for item in op.get_mixed_position()
    ]


REDUCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "mul": operator.mul,
    "minsi": min,
    "maxsi": max,
    "minimumf": minimum,
    "maximumf": maximum,
    "minnumf": minimum_number,
    "maxnumf": maximum_number,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


@VECTORS.register(vector.ReductionOp)
def _reduction(op: vector.ReductionOp, lowering: Lowering) -> Step:
    """Fold the lanes in order, from the accumulator if there is one."""
    kind = str(op.kind.data)
    if kind not in REDUCTIONS:
        raise UnsupportedError(
            f"kind of vector.reduction must be one of {', '.join(REDUCTIONS)} to be "
            f"interpreted, not {kind!r}",
            node=op.name,
        )
    combine = REDUCTIONS[kind]
    source, target = lowering.slot(op.vector), lowering.slot(op.dest)
    initial = [] if op.acc is None else [lowering.slot(op.acc)]
    dtype = dtype_of(op.dest.type)
    convert = from_array(op.dest.type)

    def run(frame: Frame) -> None:
        folded, *others = [*(dtype.type(frame[slot]) for slot in initial), *frame[source]]
        for lane in others:
            folded = combine(folded, lane)
        frame[target] = convert(folded)

    return run
