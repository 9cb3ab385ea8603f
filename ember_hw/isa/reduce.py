"""Microcode of the reduce unit, the execute side in fabric: its records, written here only.

The unit has one accumulator, a row of fp32 numbers. For each bundle it goes through the row entries
in order, as their rows come. For an entry r of whose events the bundle has one, it takes the row
and does the entry's `operation`: accumulator (operation) row, where the row is first multiplied by
scalar number `scalar` of the bundle, a number of `weight_format`, if `scaled` is set. Then, if the
bundle has an event of `emit_events`, the accumulator leaves as a result, and is empty. So is it
when a request begins. In an empty accumulator `sum` finds +0 and `maximum` finds -inf, and an empty
one leaves as zeros. `copy` keeps every bit. Rows are of `format`, results fp32 and `length` bytes;
a row with another number of columns is a fault. The numbers of bf16 and fp16 rows are widened to
fp32, which is exact. A row of `int8`, where `config.int8_rows` allows it, is its scale, its bias,
both fp32 or both fp16, and one byte for each column, a code from 0 to 255: its numbers are scale *
code + bias in fp32, each of both operations rounded.

What it can express, for e from 0 to D - 1, with r a row and w a scalar of the bundle, at any event:

- ``acc[e] = r[e]``: copy;
- ``acc[e] = w * r[e]``: copy, scaled;
- ``acc[e] = acc[e] + r[e]``: sum;
- ``acc[e] = acc[e] + w * r[e]``: sum, scaled, each of both operations rounded;
- ``acc[e] = max(acc[e], r[e])``: maximum, NaN where one is, +0 of zeros of both signs;
- ``out[n][e] = acc[e]``, then n += 1, then acc is empty: emit.

There is one such line for each row entry, in the order of the entries, and an emission may follow
each of them. It has no second accumulator, and no product of two rows and no sum across a row but
for those of `isa.dot`: compute loops with others stay on the host, as does the division of a mean.

With results in memory (`config.results`) record ``result`` names a region. A start that does not
join others begins at its base; each result begins on the beat behind the one before it, those of
requests that join included. Bytes of a beat behind a result's end are not written. A beat that does
not lie in the region is a fault, and is not written.
"""

from __future__ import annotations

from collections.abc import Mapping

from amaranth.lib import enum  # pyright: ignore[reportMissingTypeStubs]  # amaranth has none

from ember_hw.config import AcceleratorConfig
from ember_hw.isa.dot import dot_header_fields, dot_step_fields
from ember_hw.isa.fields import Field, FieldKind, Source

#: Beats that the accumulator holds.
ACCUMULATOR_BEATS = 512
#: Bytes of an accumulated number.
NUMBER_BYTES = 4


class RowFormat(enum.IntEnum, shape=2):
    """Format of a row's numbers; INT8 has scale and bias before them, others are widened."""

    FP32 = 0
    BF16 = 1
    FP16 = 2
    INT8 = 3


class ReduceOperation(enum.IntEnum, shape=2):
    """What a row does to the accumulator."""

    COPY = 0
    SUM = 1
    MAXIMUM = 2


#: What an operation finds in an empty accumulator; a copy finds nothing.
EMPTY = {ReduceOperation.SUM: 0.0, ReduceOperation.MAXIMUM: float("-inf")}


#: Bytes of a number, or a code, in a row.
STORED_BYTES = {RowFormat.FP32: 4, RowFormat.BF16: 2, RowFormat.FP16: 2, RowFormat.INT8: 1}


def factor_bytes(format: RowFormat, half_scale: int = 0) -> int:
    """Return the bytes of a row that are its scale and bias."""
    return (4 if half_scale else 8) if format is RowFormat.INT8 else 0


def row_bytes(length: int, format: RowFormat, half_scale: int = 0) -> int:
    """Return the bytes of a row whose result has `length` bytes."""
    columns = length // NUMBER_BYTES
    return factor_bytes(format, half_scale) + STORED_BYTES[format] * columns


def result_bytes(header: Mapping[str, int]) -> int:
    """Return the bytes of a result; not where a scalar tells them."""
    return NUMBER_BYTES if header.get("fold") else header["length"]


def reduce_header_fields(config: AcceleratorConfig) -> tuple[Field, ...]:
    """Return the fields of record ``reduce``: what all steps share."""
    return (
        Field("format", 2, "format of the rows' numbers", FieldKind.ENUM, RowFormat),
        Field("length_source", 1, "where the length comes from", FieldKind.ENUM, Source),
        Field(
            "length",
            16,
            f"bytes of a result, {NUMBER_BYTES} for each column, {ACCUMULATOR_BEATS} beats at most",
        ),
        _scalar("length_scalar", "scalar of the bundle that is the length", config),
        Field("half_scale", 1, "scale and bias of an INT8 row are fp16, not fp32"),
        Field(
            "weight_format",
            2,
            "format of scalars that multiply rows, in their low bits; not INT8",
            FieldKind.ENUM,
            RowFormat,
        ),
        *(dot_header_fields() if config.reduce_dot else ()),
    )


def reduce_step_fields(config: AcceleratorConfig) -> tuple[Field, ...]:
    """Return the fields of record ``reduce<r>``: what becomes of the rows of entry r."""
    return (
        Field(
            "emit_events",
            config.events,
            "events after which the accumulator leaves as a result",
            FieldKind.EVENTS,
        ),
        Field(
            "operation", 2, "what a row does to the accumulator", FieldKind.ENUM, ReduceOperation
        ),
        Field("scaled", 1, "the row is multiplied by a scalar first"),
        _scalar("scalar", "scalar of the bundle that multiplies the row", config),
        *(dot_step_fields() if config.reduce_dot else ()),
    )


def result_fields(config: AcceleratorConfig) -> tuple[Field, ...]:
    """Return the fields of record ``result``: where results are written."""
    address = config.address_width_bits
    return (
        Field("base", address, "byte address of the region, a multiple of the bus width"),
        Field("region_bytes", address, "bytes of the region; a result beyond it is a fault"),
    )


def _scalar(name: str, description: str, config: AcceleratorConfig) -> Field:
    width_bits = max(1, (config.bundle_scalars - 1).bit_length())
    return Field(name, width_bits, description, limit=config.bundle_scalars)
