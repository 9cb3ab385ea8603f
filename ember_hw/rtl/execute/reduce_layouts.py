"""Payloads between the blocks of the reduce unit, each defined here once."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Const, Mux, Value
from amaranth.lib import data

from ember_hw import isa
from ember_hw.config import AcceleratorConfig
from ember_hw.isa.dot import Place
from ember_hw.isa.reduce import (
    ACCUMULATOR_BEATS,
    NUMBER_BYTES,
    STORED_BYTES,
    ReduceOperation,
    RowFormat,
    reduce_header_fields,
    reduce_step_fields,
    result_fields,
)
from ember_hw.rtl.execute.float_combine import Combine

#: Width of a code.
CODE_BITS = 8


def _fields_layout(fields: Sequence[isa.Field]) -> data.StructLayout:
    return data.StructLayout({f.name: f.choices or f.width_bits for f in fields})


def header_layout(config: AcceleratorConfig) -> data.StructLayout:
    """Return the record ``reduce``."""
    return _fields_layout(reduce_header_fields(config))


def step_layout(config: AcceleratorConfig) -> data.StructLayout:
    """Return the record ``reduce<r>``."""
    return _fields_layout(reduce_step_fields(config))


def region_layout(config: AcceleratorConfig) -> data.StructLayout:
    """Return the record ``result``."""
    return _fields_layout(result_fields(config))


def group_numbers(config: AcceleratorConfig, format: RowFormat) -> int:
    """Return the numbers of a group, those that go through the unit together.

    As many as a beat of `format` holds, or as there are lanes.
    """
    return min(config.lanes, config.bus_bytes // STORED_BYTES[format])


def group_bytes(config: AcceleratorConfig, format: Value) -> Value:
    """Return the bytes of a group whose numbers have become fp32."""
    least = NUMBER_BYTES * group_numbers(config, RowFormat.FP32)
    size: Value = Const(least)
    for wide in (RowFormat.BF16, RowFormat.FP16, RowFormat.INT8):
        more = NUMBER_BYTES * group_numbers(config, wide)
        if more > least:
            size = Mux(format == wide, more, size)
    return size


def group_layout(config: AcceleratorConfig) -> data.StructLayout:
    """Return a group of a row: `bytes` of its fp32 numbers count, `last` ends the row."""
    most = NUMBER_BYTES * config.lanes
    return data.StructLayout({"data": 8 * most, "bytes": most.bit_length(), "last": 1})


def coded_layout(config: AcceleratorConfig) -> data.StructLayout:
    """Return a beat of a row's codes, of which `count` count, with its scale below its bias."""
    return data.StructLayout(
        {
            "codes": data.ArrayLayout(CODE_BITS, config.bus_bytes),
            "factors": 64,
            "count": range(config.bus_bytes + 1),
            "last": 1,
        }
    )


def pass_layout(config: AcceleratorConfig) -> data.StructLayout:
    """Return one pass over the accumulator, a group a cycle.

    `groups`: less one. `repeats`: how often its group is repeated as it leaves: an empty
    accumulator takes one cycle. `bytes`: of the last group. `takes_row`: each group takes one of a
    row. `joins`: the accumulator holds something that the pass reads. `emits`: the result leaves.
    `scaled`: a row is multiplied by the weight. `place`, `negated`: of a row that is summed across.
    """
    return data.StructLayout(
        {
            "groups": range(ACCUMULATOR_BEATS),
            "repeats": range(ACCUMULATOR_BEATS),
            "bytes": (NUMBER_BYTES * config.lanes).bit_length(),
            "takes_row": 1,
            "operation": ReduceOperation,
            "joins": 1,
            "emits": 1,
            "scaled": 1,
            **({"place": Place, "negated": 1} if config.reduce_dot else {}),
        }
    )


def control_layout(config: AcceleratorConfig) -> data.StructLayout:
    """Return what goes with one group of a pass to the accumulator.

    `number`: of the group, or how often it is repeated where it `is_void`: zeros of an empty
    accumulator. `combine`: of the row's number and the accumulated one, which is -inf or +0 where
    not `joins`. `keeps`: the accumulator takes the result. `emits`: it leaves; `bytes` of it count,
    `last` ends it.
    """
    return data.StructLayout(
        {
            "number": range(ACCUMULATOR_BEATS),
            "is_void": 1,
            "combine": Combine,
            "joins": 1,
            "keeps": 1,
            "emits": 1,
            "bytes": (NUMBER_BYTES * config.lanes).bit_length(),
            "last": 1,
        }
    )


def result_layout(config: AcceleratorConfig) -> data.StructLayout:
    """Return a group of a result on its way out, and how often it is repeated."""
    return data.StructLayout({"group": group_layout(config), "repeats": range(ACCUMULATOR_BEATS)})
