"""
A function run as hardware does: microcode in place of its access programs, against its dlc cases.

Bundles and row beats become tokens and entries again, so that results and counts can be compared
with those of dlc. Memory is laid out here, with padding that shows if it is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Attribute

from ember_hw.compiler.backend.assemble import Assembly
from ember_hw.compiler.dialects.quantized import QuantizedType
from ember_hw.compiler.interpreters.dlc import DlcMachine, row_as_vector
from ember_hw.compiler.interpreters.function import (
    InterpreterResult,
    find_function_of,
    run_function,
)
from ember_hw.compiler.interpreters.microcode import execute
from ember_hw.compiler.interpreters.microcode_issue import Chunk
from ember_hw.compiler.interpreters.queues import DONE, Entry, Push, Queue, Schedule
from ember_hw.compiler.interpreters.values import (
    Array,
    as_memref,
    as_vector,
    dtype_of,
    is_integer,
)
from ember_hw.compiler.program import Callback
from ember_hw.compiler.quantized_rows import FORMATS, RowFormat
from ember_hw.config import LINE_BYTES
from ember_hw.errors import CheckError
from ember_hw.isa import Event, Microcode, event_bit, events_in_order

__all__ = ["Placed", "bind", "place_arrays", "run_microcode"]

_FIRST_ADDRESS, _PAGE_BYTES = 1 << 20, 4096
_POISON = 0xFF  # a NaN in every float format, -1 in every integer

Placed = tuple[dict[str, int], list[tuple[int, NDArray[np.uint8]]]]
"""Symbols of a launch, and memory: base address and bytes of each region."""


def run_microcode(
    assemblies: Sequence[Assembly],
    compute: ModuleOp,
    function: str,
    arguments: Sequence[Any],
    environment: Mapping[str, Any],
    *,
    schedule: Schedule = Schedule.AHEAD,
    vector_length: int | None = None,
) -> InterpreterResult:
    """
    Run microcode in place of the access regions of a dlc function.

    Parameters
    ----------
    assemblies : sequence of Assembly
        One per compute loop of the function, in order.
    compute : ModuleOp
        Holds the dlc function, whose own access regions don't run.
    function, arguments
        As for `interpret`.
    environment : Mapping of str
        The value of each symbol: an array for memory, an integer otherwise. What follows from an
        array (`tab.pitch`, `tab.rows`, `tab.dim1`) need not be there.
    schedule, vector_length
        As for `interpret`.

    Returns
    -------
    InterpreterResult
        Returned values and counts of queue entries.

    Raises
    ------
    DeviceError
        The access unit would stop with a fault.
    CheckError
        There is another number of access programs than of compute loops.
    """
    op = find_function_of(compute, function, len(assemblies))
    sources = [_Nest(assembly, environment).start for assembly in assemblies]
    machine = DlcMachine(schedule, vector_length, access=sources, receive=_receive)
    return run_function(op, arguments, machine)


def place_arrays(assembly: Assembly, environment: Mapping[str, Any]) -> Placed:
    """Lay out the arrays that a program reads; rows are padded to the bus, with poison."""
    bus_bytes = assembly.config.bus_bytes
    symbols: dict[str, int] = {}
    regions: list[tuple[int, NDArray[np.uint8]]] = []
    address = _FIRST_ADDRESS
    read = {patch.symbol for patch in assembly.patches if patch.field == "base"}
    for symbol, value in environment.items():
        if not isinstance(value, np.ndarray):
            symbols[symbol] = int(value)
            continue
        array = cast(Array, value)
        symbols |= {f"{symbol}.dim{k}": extent for k, extent in enumerate(array.shape)}
        symbols[f"{symbol}.rows"] = array.shape[0]
        if symbol not in read:
            continue
        form = record_format(assembly, symbol)
        if form is not None:
            is_row = array.ndim > 1  # of a vector each byte has its codes, those of scales too
            array = form.from_records(array) if is_row else form.packed(array["code"])
        content = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
        elements = array.size
        if array.ndim > 1:
            row_bytes = array.shape[-1] * array.itemsize
            pitch_bytes = -(-row_bytes // bus_bytes) * bus_bytes
            rows = content.reshape(-1, row_bytes)
            padded = np.full((len(rows), pitch_bytes), _POISON, np.uint8)
            padded[:, :row_bytes] = rows
            content = padded.reshape(-1)
            symbols[f"{symbol}.pitch"] = pitch_bytes // array.itemsize
            symbols[f"{symbol}.rows"] = len(rows)
            elements = content.size // array.itemsize
        symbols |= {symbol: address, f"{symbol}.bytes": content.size}
        symbols[f"{symbol}.elements"] = elements
        tail = np.full(-content.size % max(LINE_BYTES, bus_bytes), _POISON, np.uint8)
        regions.append((address, np.concatenate([content, tail])))
        address += _PAGE_BYTES * (1 + len(regions[-1][1]) // _PAGE_BYTES)
    return symbols, regions


def bind(assembly: Assembly, symbols: Mapping[str, int]) -> Microcode:
    """Return a program's microcode with the launch's values in it."""
    return assembly.microcode.with_fields(
        {
            (patch.record, patch.field): patch.scale * symbols[patch.symbol] + patch.addend
            for patch in assembly.patches
        }
    )


class _Nest:
    """One access program, as a source of tokens and entries."""

    def __init__(self, assembly: Assembly, environment: Mapping[str, Any]) -> None:
        self.assembly, self.environment = assembly, environment
        self.config = assembly.config
        callbacks = {(callback.event, callback.level): callback for callback in assembly.callbacks}
        #: Event bit and callback, in the order in which a bundle's events happen.
        self.order: list[tuple[int, Callback]] = [
            (1 << event_bit(event, level, self.config), callbacks[event, level])
            for event, level in events_in_order(self.config.traversal_units)
            if (event, level) in callbacks
        ]
        self.root_end = 1 << event_bit(Event.END, 0, self.config)

    def start(self, allocated: Mapping[str, Array], entry_elements: int) -> Iterator[Push]:
        """Run the microcode on memory as it is now; the access agent."""
        symbols, regions = place_arrays(self.assembly, {**self.environment, **allocated})
        microcode = bind(self.assembly, symbols)
        for chunk in execute(microcode, regions):
            yield from self._expand(microcode, chunk, entry_elements)

    def _expand(self, microcode: Microcode, chunk: Chunk, width: int) -> Iterator[Push]:
        """Turn bundles and beats into tokens and entries."""
        masks = [microcode.get(f"row{r}", "events") for r in range(self.config.row_entries)]
        ends: list[int] = (np.flatnonzero(chunk.row_last) + 1).tolist()
        found = iter(zip([0, *ends][:-1], ends, strict=True))
        for events, scalars in zip(chunk.events.tolist(), chunk.scalars, strict=True):
            rows: dict[int, NDArray[np.uint8]] = {}
            for entry, mask in enumerate(masks):
                if mask & events:
                    first, end = next(found)
                    beats = zip(chunk.row_beats[first:end], chunk.row_keep[first:end], strict=True)
                    rows[entry] = np.concatenate([beat[:keep] for beat, keep in beats])
            for bit, callback in self.order:
                if events & bit:
                    yield from self._push(callback, scalars, rows, width)
            if events & self.root_end:
                yield Queue.CONTROL, DONE
        if next(found, None) is not None:
            raise CheckError("row must be announced by a bundle, not left over")

    def _push(
        self,
        callback: Callback,
        scalars: NDArray[np.uint32],
        rows: Mapping[int, NDArray[np.uint8]],
        width: int,
    ) -> Iterator[Push]:
        yield Queue.CONTROL, callback.id
        for operand in callback.operands:
            if operand.kind == "scalar":
                yield Queue.DATA, Entry(IndexType(), scalars[operand.index])
                continue
            row = rows[operand.index]
            size = width * _SIZES[operand.dtype]
            for first in range(0, row.size, size):
                last = first + size >= row.size
                yield Queue.DATA, Entry(IndexType(), row[first : first + size], last)


def record_format(assembly: Assembly, symbol: str) -> RowFormat | None:
    """Return the format of a memory of quantised rows; None of another memory."""
    for callback in assembly.callbacks:
        for operand in callback.operands:
            if operand.kind == "row" and operand.symbol == symbol:
                return FORMATS.get(operand.dtype)
    return None


_SIZES = {
    **dict.fromkeys(("i8", *FORMATS), 1),
    **dict.fromkeys(("i16", "f16", "bf16"), 2),
    **dict.fromkeys(("i32", "f32"), 4),
    **dict.fromkeys(("i64", "index", "f64"), 8),
}


def _receive(type_: Attribute, token: int, entries: list[Entry]) -> Any:
    """Return what the bits of an operand are as a value of the type popped."""
    vector, memref = as_vector(type_), as_memref(type_)
    shaped = vector or memref
    if shaped is None:
        word: np.uint32 = entries[0].value
        if is_integer(type_):
            return int(word.view(np.int32))
        dtype = dtype_of(type_)
        return word.reshape(1).view(dtype)[0] if dtype.itemsize <= 4 else _too_wide(type_, token)
    content = np.concatenate([entry.value for entry in entries])
    if isinstance(shaped.element_type, QuantizedType):
        return shaped.element_type.format.to_records(content)
    row = content.view(dtype_of(shaped.element_type))
    if vector is None:
        return row
    (lanes,) = vector.get_shape()
    return row_as_vector(row, lanes, token)


def _too_wide(type_: Attribute, token: int) -> Any:
    raise CheckError(f"scalar popped in case {token} must be of at most 32 bits, not {type_}")
