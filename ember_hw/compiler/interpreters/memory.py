"""Meaning of the host's `memref` ops, and of reading a struct. Every access checks its bounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import llvm, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.utils import get_dynamic_index_list
from xdsl.ir import SSAValue

from ember_hw.compiler.interpreters.frame import Frame, Handlers, Lowering, Step
from ember_hw.compiler.interpreters.values import (
    Array,
    element,
    from_array,
    memref_type,
    out_of_bounds,
    poisoned,
)
from ember_hw.errors import CheckError, UnsupportedError

__all__ = ["MEMORY", "load", "view_of"]

MEMORY = Handlers()


def load(
    name: str, lowering: Lowering, source: SSAValue, indices: Sequence[SSAValue], result: SSAValue
) -> Step:
    """Return the step of a scalar load; streams of memory use it too."""
    array, target = lowering.slot(source), lowering.slot(result)
    positions = lowering.slots(indices)
    convert = from_array(memref_type(source).element_type)

    def run(frame: Frame) -> None:
        memory = frame[array]
        position = tuple(frame[slot] for slot in positions)
        frame[target] = convert(memory[element(memory, position, name)])

    return run


@MEMORY.register(memref.LoadOp)
def _load(op: memref.LoadOp, lowering: Lowering) -> Step:
    return load(op.name, lowering, op.memref, op.indices, op.res)


@MEMORY.register(memref.StoreOp)
def _store(op: memref.StoreOp, lowering: Lowering) -> Step:
    array, value = lowering.slot(op.memref), lowering.slot(op.value)
    positions = lowering.slots(op.indices)

    def run(frame: Frame) -> None:
        memory = frame[array]
        position = tuple(frame[slot] for slot in positions)
        memory[element(memory, position, "memref.store")] = frame[value]

    return run


@MEMORY.register(memref.DimOp)
def _dim(op: memref.DimOp, lowering: Lowering) -> Step:
    array, index, target = (
        lowering.slot(op.source),
        lowering.slot(op.index),
        lowering.slot(op.result),
    )

    def run(frame: Frame) -> None:
        shape, dimension = frame[array].shape, frame[index]
        if not 0 <= dimension < len(shape):
            raise CheckError(
                f"dimension of memref.dim must be at least 0 and below {len(shape)}, "
                f"not {dimension}"
            )
        frame[target] = shape[dimension]

    return run


@MEMORY.register(memref.AllocOp, memref.AllocaOp)
def _alloc(op: memref.AllocOp | memref.AllocaOp, lowering: Lowering) -> Step:
    type_ = memref_type(op.memref)
    element_type, static = type_.element_type, type_.get_shape()
    sizes, target = lowering.slots(op.dynamic_sizes), lowering.slot(op.memref)

    def run(frame: Frame) -> None:
        dynamic = iter(sizes)
        shape = [frame[next(dynamic)] if extent == DYNAMIC_INDEX else extent for extent in static]
        frame[target] = poisoned(shape, element_type)

    return run


@MEMORY.register(llvm.ExtractValueOp)
def _extract_value(op: llvm.ExtractValueOp, lowering: Lowering) -> Step:
    source, target = lowering.slot(op.container), lowering.slot(op.res)
    places = tuple(op.position.get_values())

    def run(frame: Frame) -> None:
        value = frame[source]
        for place in places:
            value = value[place]
        frame[target] = value

    return run


@MEMORY.register(memref.DeallocOp)
def _dealloc(op: memref.DeallocOp, lowering: Lowering) -> None:
    return None


@MEMORY.register(memref.CastOp)
def _cast(op: memref.CastOp, lowering: Lowering) -> Step:
    source, target = lowering.slot(op.source), lowering.slot(op.dest)

    def run(frame: Frame) -> None:
        frame[target] = frame[source]

    return run


@MEMORY.register(memref.CopyOp)
def _copy(op: memref.CopyOp, lowering: Lowering) -> Step:
    source, target = lowering.slot(op.source), lowering.slot(op.destination)

    def run(frame: Frame) -> None:
        if frame[source].shape != frame[target].shape:
            raise CheckError(
                f"shape copied must be that of the destination {frame[target].shape}, "
                f"not {frame[source].shape}"
            )
        frame[target][...] = frame[source]

    return run


def view_of(memory: Array, base: int, sizes: Sequence[int], strides: Sequence[int]) -> Array:
    """
    Return the array of these sizes and strides that begins at an element of a vector.

    Raises
    ------
    CheckError
        The memory isn't a vector without gaps, or the array would leave it.
    """
    if memory.ndim != 1 or (memory.size > 1 and memory.strides[0] != memory.itemsize):
        raise CheckError(
            f"memory of a view must be one dimension without gaps, not of shape {memory.shape}"
        )
    last = base + sum((n - 1) * stride for n, stride in zip(sizes, strides, strict=True))
    is_legal = min(sizes) >= 0 and min(strides) >= 0 and base >= 0
    if not is_legal or (0 not in sizes and last >= memory.size):
        raise CheckError(
            f"view must lie in the {memory.size} elements of its memory, not at {base} with sizes "
            f"{tuple(sizes)} and strides {tuple(strides)}"
        )
    if 0 in sizes:
        return np.zeros(sizes, memory.dtype)
    byte_strides = [stride * memory.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(memory[base:], sizes, byte_strides)


def _view_slots(
    op: memref.ReinterpretCastOp | memref.SubviewOp, lowering: Lowering
) -> list[list[int]]:
    """Return where the offsets, sizes and strides of a view are held, one list each."""
    return [
        [
            lowering.slot(item) if isinstance(item, SSAValue) else lowering.constant_slot(item)
            for item in get_dynamic_index_list(static.get_values(), dynamic, DYNAMIC_INDEX)
        ]
        for static, dynamic in (
            (op.static_offsets, op.offsets),
            (op.static_sizes, op.sizes),
            (op.static_strides, op.strides),
        )
    ]


@MEMORY.register(memref.ReinterpretCastOp)
def _reinterpret_cast(op: memref.ReinterpretCastOp, lowering: Lowering) -> Step:
    array, target = lowering.slot(op.source), lowering.slot(op.result)
    bases, sizes, strides = _view_slots(op, lowering)

    def run(frame: Frame) -> None:
        frame[target] = view_of(
            frame[array],
            frame[bases[0]],
            [frame[slot] for slot in sizes],
            [frame[slot] for slot in strides],
        )

    return run


@MEMORY.register(memref.SubviewOp)
def _subview(op: memref.SubviewOp, lowering: Lowering) -> Step:
    if memref_type(op.source).get_num_dims() != memref_type(op.result).get_num_dims():
        raise UnsupportedError(
            f"result of memref.subview must have the source's rank to be interpreted, "
            f"not {op.result.type}",
            node=op.name,
        )
    array, target = lowering.slot(op.source), lowering.slot(op.result)
    dimensions = list(zip(*_view_slots(op, lowering), strict=True))

    def run(frame: Frame) -> None:
        memory = frame[array]
        view: list[slice] = []
        for (start, size, stride), extent in zip(dimensions, memory.shape, strict=True):
            first, count, distance = frame[start], frame[size], frame[stride]
            if distance < 1:
                raise CheckError(f"stride of memref.subview must be at least 1, not {distance}")
            last = first + (count - 1) * distance
            if count and not (0 <= first < extent and 0 <= last < extent):
                raise out_of_bounds("memref.subview", (first, last), memory.shape)
            view.append(slice(first, last + 1 if count else first, distance))
        frame[target] = memory[tuple(view)]

    return run
