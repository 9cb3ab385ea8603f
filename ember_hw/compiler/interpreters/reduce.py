"""The reduce unit in NumPy, bit for bit: what its microcode makes of bundles and rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ember_hw.compiler.interpreters.arithmetic import maximum
from ember_hw.compiler.interpreters.dot import negative, places_in_use, sums_across
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError
from ember_hw.isa import Event, Place, Source, event_bit
from ember_hw.isa.reduce import (
    ACCUMULATOR_BEATS,
    EMPTY,
    NUMBER_BYTES,
    ReduceOperation,
    RowFormat,
    row_bytes,
)
from ember_hw.registers import NO_UNIT, FaultCode, fault_error

#: What an operation gives that has no other NaN to give.
QUIET_NAN = 0x7FC00000

Row = NDArray[np.float32]


def reduce_rows(
    records: Mapping[str, Mapping[str, int]],
    config: AcceleratorConfig,
    bundles: Iterable[tuple[int, Sequence[int]]],
    rows: Iterable[bytes],
) -> list[Row]:
    """Return the results of one or more requests, in order.

    Parameters
    ----------
    records : mapping of path to mapping of field to int
        Of a program: ``reduce``, ``reduce<r>`` and, for its events, ``row<r>``.
    config : AcceleratorConfig
        What the program was made for.
    bundles : iterable of (events, scalars)
        The control queue.
    rows : iterable of bytes
        The data queue, row by row.

    Returns
    -------
    list of float32 (D,)
        The rows that leave. A NaN that an operation made is `QUIET_NAN`; copies keep theirs.

    Raises
    ------
    DeviceError
        A row is missing, is left over, or hasn't the length that the program says.
    """
    waiting = iter(rows)
    if records["reduce"].get("fold"):
        return _sums_across(records, config, bundles, waiting)
    results: list[Row] = []
    accumulator: Row | None = None
    root_end = 1 << event_bit(Event.END, 0, config)
    for events, scalars in bundles:
        for entry in range(config.row_entries):
            step = records[f"reduce{entry}"]
            takes_row = bool(records[f"row{entry}"]["events"] & events)
            emits = bool(step["emit_events"] & events)
            if not takes_row and not emits:
                continue
            length = _length(records["reduce"], scalars, config)
            if takes_row:
                row = _next_row(waiting, records["reduce"], length)
                if step["scaled"]:
                    format = RowFormat(records["reduce"]["weight_format"])
                    row = _scale(row, weights([scalars[step["scalar"]]], format))
                accumulator = _combine(ReduceOperation(step["operation"]), accumulator, row)
            if emits:
                empty = np.zeros(length // NUMBER_BYTES, np.float32)
                result = empty if accumulator is None else accumulator
                _check_length(result, length)
                results.append(result)
                accumulator = None
        if events & root_end:
            accumulator = None
    _check_taken(waiting)
    return results


def _sums_across(
    records: Mapping[str, Mapping[str, int]],
    config: AcceleratorConfig,
    bundles: Iterable[tuple[int, Sequence[int]]],
    waiting: Iterator[bytes],
) -> list[Row]:
    """Return the results where rows are summed across, see `isa.dot`."""
    header = records["reduce"]
    places: dict[Place, Row] = {}
    results: list[Row] = []
    for events, scalars in bundles:
        for entry in range(config.row_entries):
            step = records[f"reduce{entry}"]
            if records[f"row{entry}"]["events"] & events:
                row = _next_row(waiting, header, _length(header, scalars, config))
                places[Place(step["place"])] = negative(row) if step["negated"] else row
            if step["emit_events"] & events:
                for place in places_in_use(header):
                    if place not in places:
                        raise DeviceError(
                            f"a {place.name.lower()} row must come before a result, and none came"
                        )
                results.append(_computed(sums_across(header, places)))
    _check_taken(waiting)
    return results


def _check_taken(waiting: Iterator[bytes]) -> None:
    left = sum(1 for _ in waiting)
    if left:
        raise DeviceError(f"every row must be taken by a bundle, but {left} are left")


def placed_results(
    records: Mapping[str, Mapping[str, int]], config: AcceleratorConfig, results: Iterable[Row]
) -> list[tuple[int, bytes]]:
    """Return where the results of a start, and of those that join it, lie in memory.

    Parameters
    ----------
    records : mapping of path to mapping of field to int
        With ``result``.
    config : AcceleratorConfig
        With results in memory.
    results : iterable of float32 (D,)
        In order.

    Returns
    -------
    list of (int, bytes)
        Byte address and content of each.

    Raises
    ------
    DeviceError
        A result doesn't lie in the region: the fault RESULT_OUT_OF_BOUNDS, with the address of the
        first beat that doesn't.
    """
    base, region_bytes = (records["result"][name] for name in ("base", "region_bytes"))
    placed: list[tuple[int, bytes]] = []
    offset = 0
    for result in results:
        content = result.tobytes()
        for beat in range(0, len(content), config.bus_bytes):
            if offset + min(beat + config.bus_bytes, len(content)) > region_bytes:
                address = base + offset + beat
                raise fault_error(FaultCode.RESULT_OUT_OF_BOUNDS, NO_UNIT, 0, address)
        placed.append((base + offset, content))
        offset += -(-len(content) // config.bus_bytes) * config.bus_bytes
    return placed


def _length(header: Mapping[str, int], scalars: Sequence[int], config: AcceleratorConfig) -> int:
    """Return the bytes of a row and of a result."""
    length = header["length"]
    if header["length_source"] == Source.SLOT:
        length = scalars[header["length_scalar"]] & 0xFFFF_FFFF
    most = ACCUMULATOR_BEATS * config.bus_bytes
    if length % NUMBER_BYTES or not 0 < length <= most:
        raise DeviceError(
            f"length of a row must be a multiple of {NUMBER_BYTES} up to {most} bytes, "
            f"not {length!r}"
        )
    return length


def _next_row(rows: Iterator[bytes], header: Mapping[str, int], length: int) -> Row:
    format, half_scale = RowFormat(header["format"]), header["half_scale"]
    row = next(rows, None)
    if row is None:
        raise DeviceError("a row must come for each bundle that takes one, but none is left")
    expected = row_bytes(length, format, half_scale)
    if len(row) != expected:
        raise DeviceError(f"a row must be {expected} bytes, not {len(row)}")
    return widened(np.frombuffer(row, np.uint8), format, half_scale)


def widened(rows: NDArray[np.uint8], format: RowFormat, half_scale: int = 0) -> Row:
    """Return the numbers of rows, uint8 (.., bytes), as fp32; copies keep the bits of a NaN."""
    if format is RowFormat.FP32:
        return rows.view(np.float32)
    if format is RowFormat.INT8:
        dtype, first = (np.float16, 4) if half_scale else (np.float32, 8)
        # The header of a row may begin at any byte.
        factors = np.ascontiguousarray(rows[..., :first]).view(dtype).astype(np.float32)
        with np.errstate(all="ignore"):
            return _computed(factors[..., :1] * rows[..., first:] + factors[..., 1:])
    small = rows.view(np.uint16)
    if format is RowFormat.BF16:
        return (small.astype(np.uint32) << 16).view(np.float32)
    wide = small.view(np.float16).astype(np.float32).view(np.uint32)
    nan = small.astype(np.uint32)[np.isnan(small.view(np.float16))]
    # NumPy may make a NaN quiet; copies keep what it was.
    wide[np.isnan(wide.view(np.float32))] = (nan & 0x8000) << 16 | 0x7F800000 | (nan & 0x3FF) << 13
    return wide.view(np.float32)


def _check_length(result: Row, length: int) -> None:
    if result.nbytes != length:
        raise DeviceError(f"a result must be {length} bytes, not {result.nbytes}")


def weights(scalars: ArrayLike, format: RowFormat) -> NDArray[np.float32]:
    """Return scalars of bundles (N,) as numbers of a format, widened to fp32."""
    bits = np.asarray(scalars).astype(np.uint32)
    narrow = bits if format is RowFormat.FP32 else bits.astype(np.uint16)
    return widened(narrow.view(np.uint8), format)


def _scale(row: Row, weight: NDArray[np.float32]) -> Row:
    """Return the row times a weight."""
    with np.errstate(all="ignore"):
        return _computed(row * weight)


def _combine(operation: ReduceOperation, accumulator: Row | None, row: Row) -> Row:
    if operation is ReduceOperation.COPY:
        return row
    before = np.float32(EMPTY[operation])
    if accumulator is not None:
        _check_length(accumulator, row.nbytes)
        before = accumulator
    with np.errstate(all="ignore"):
        if operation is ReduceOperation.SUM:
            return _computed(before + row)
        return _computed(maximum(before, row))


def _computed(numbers: Row) -> Row:
    """Return numbers that an operation made: each NaN is the same."""
    bits = np.array(numbers, np.float32).view(np.uint32)
    bits[np.isnan(numbers)] = QUIET_NAN
    return bits.view(np.float32)
