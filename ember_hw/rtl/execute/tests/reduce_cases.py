"""Programs, bundles and rows for the reduce unit, and a simulation that runs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ember_hw.config import AcceleratorConfig
from ember_hw.isa import Event, event_bit, event_mask
from ember_hw.isa.reduce import ReduceOperation, RowFormat, reduce_header_fields, reduce_step_fields

Records = Mapping[str, Mapping[str, int]]

#: Bits that arithmetic may trip over: zeros, denormals, ones, 2^24, infinities, NaN.
CORNERS = (
    *(0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x00800000, 0x3F800000, 0xBF800000),
    *(0x4B800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC12345),
)


@dataclass(frozen=True)
class Case:
    """What goes into the unit.

    Attributes
    ----------
    records : mapping
        ``reduce``, ``reduce<r>``, and ``row<r>`` for its events.
    bundles : list of (events, scalars, last)
    rows : list of arrays (D,)
        float32, or uint16 for the bits of the smaller formats, or uint8 for coded rows.
    """

    records: Records
    bundles: list[tuple[int, list[int], int]]
    rows: list[NDArray]


def bag_records(
    config: AcceleratorConfig,
    columns: int,
    operation: ReduceOperation = ReduceOperation.SUM,
    scaled: bool = False,
) -> dict[str, dict[str, int]]:
    """Return the microcode of an EmbeddingBag: a row an iteration of level 1, a result its end."""
    iterate, end = ((event_mask([(event, 1)], config)) for event in (Event.ITERATE, Event.END))
    records: dict[str, dict[str, int]] = {}
    for entry in range(config.row_entries):
        records[f"row{entry}"] = {"events": 0}
        records[f"reduce{entry}"] = {f.name: 0 for f in reduce_step_fields(config)}
    records["reduce"] = {f.name: 0 for f in reduce_header_fields(config)}
    records["reduce"]["length"] = 4 * columns
    records["row0"]["events"] = iterate
    records["reduce0"] |= {
        "emit_events": end,
        "operation": operation,
        "scaled": int(scaled),
        "scalar": config.bundle_scalars - 1,
    }
    records["issue"] = {"events": iterate | end}
    return records


def any_numbers(random: np.random.Generator, shape, corners: float) -> NDArray[np.float32]:
    """Return numbers of near exponents, with corners and arbitrary bits among them."""
    numbers = (random.standard_normal(shape) * 2.0 ** random.integers(-4, 5, shape)).astype("f4")
    bits = numbers.view(np.uint32)
    odd = random.random(shape) < corners
    bits[odd] = random.choice(np.array(CORNERS, np.uint32), shape)[odd]
    odd = random.random(shape) < corners
    bits[odd] = random.integers(0, 1 << 32, shape, dtype=np.uint32)[odd]
    return numbers


def coded_rows(
    random: np.random.Generator, rows: int, columns: int, corners: float, *, half_scale: bool
) -> NDArray[np.uint8]:
    """Return int8 rows: scale and bias, then codes, the least and the greatest among them."""
    factors = any_numbers(random, (rows, 2), corners)
    with np.errstate(all="ignore"):
        header = factors.astype(np.float16) if half_scale else factors
    codes = random.integers(0, 256, (rows, columns), dtype=np.uint8)
    codes[random.random((rows, columns)) < 0.1] = 0
    codes[random.random((rows, columns)) < 0.1] = 255
    return np.hstack([header.view(np.uint8), codes])


def bag_case(
    config: AcceleratorConfig,
    lengths: Sequence[int],
    columns: int,
    *,
    seed: int,
    operation: ReduceOperation = ReduceOperation.SUM,
    scaled: bool = False,
    corners: float = 0.0,
    format: RowFormat = RowFormat.FP32,
    half_scale: bool = False,
    weight_format: RowFormat = RowFormat.FP32,
) -> Case:
    """Return bags of some lengths, as the access unit tells of them.

    Parameters
    ----------
    lengths : sequence of int
        Rows of each bag.
    corners : float
        Share of numbers that are corners, and of those that are any bits.
    weight_format : RowFormat
        Smaller weights are any bits, below bits of noise.
    """
    random = np.random.default_rng(seed)
    iterate, end, root_end = (
        1 << event_bit(*event, config)
        for event in ((Event.ITERATE, 1), (Event.END, 1), (Event.END, 0))
    )
    numbers = any_numbers(random, (sum(lengths), columns), corners)
    if format is RowFormat.BF16:
        numbers = (numbers.view(np.uint32) >> 16).astype(np.uint16)
    elif format is RowFormat.FP16:
        with np.errstate(all="ignore"):
            numbers = numbers.astype(np.float16).view(np.uint16)
    elif format is RowFormat.INT8:
        numbers = coded_rows(random, sum(lengths), columns, corners, half_scale=half_scale)
    weights = any_numbers(random, sum(lengths), corners).view(np.uint32)
    bundles = []
    row = 0
    for bag, length in enumerate(lengths):
        for position in range(max(1, length)):
            last = position >= length - 1
            events = (iterate if length else 0) | (end if last else 0)
            ends = last and bag == len(lengths) - 1
            scalars = [int(x) for x in random.integers(0, 1 << 32, config.bundle_scalars)]
            if length:
                scalars[-1] = int(weights[row])
                row += 1
            bundles.append((events | (root_end if ends else 0), scalars, int(ends)))
    records = bag_records(config, columns, operation, scaled)
    records["reduce"] |= {
        "format": format,
        "half_scale": int(half_scale),
        "weight_format": weight_format,
    }
    return Case(records, bundles, list(numbers))


def queue_bundles(case: Case) -> list[dict]:
    """Return the bundles as the control queue's payloads."""
    return [{"events": e, "scalars": s, "last": last} for e, s, last in case.bundles]


def row_beats(case: Case, config: AcceleratorConfig) -> list[dict[str, int]]:
    """Return the rows as beats; what is behind a row's end is noise."""
    beats = []
    random = np.random.default_rng(len(case.rows))
    for row in case.rows:
        text = row.tobytes()
        for first in range(0, len(text), config.bus_bytes):
            part = text[first : first + config.bus_bytes]
            noise = random.bytes(config.bus_bytes - len(part))
            beats.append(
                {
                    "data": int.from_bytes(part + noise, "little"),
                    "bytes": len(part),
                    "last": int(first + config.bus_bytes >= len(text)),
                }
            )
    return beats


def rows_of(beats, config: AcceleratorConfig) -> list[NDArray[np.uint32]]:
    """Return the rows that beats make, as bits; the last may be without an end."""
    rows, text = [], b""
    for beat in beats:
        data = int(beat["data"]).to_bytes(config.bus_bytes, "little")
        text += data[: beat["bytes"]]
        if beat["last"]:
            rows.append(np.frombuffer(text, np.uint32))
            text = b""
    return rows
