"""Payloads between the blocks of the reduce unit, each defined here once."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.lib import data

from ember_hw import isa
from ember_hw.config import AcceleratorConfig
from ember_hw.isa.dot import Place
from ember_hw.isa.reduce import (
    ACCUMULATOR_BEATS,
    NUMBER_BYTES,
    ReduceOperation,
    reduce_header_fields,
    reduce_step_fields,
    result_fields,
)
from ember_hw.rtl.execute.float_combine import Combine
from ember_hw.rtl.layouts import row_beat_layout


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


def lanes(config: AcceleratorConfig) -> int:
    """Return the numbers of a beat."""
    return config.bus_bytes // NUMBER_BYTES


def pass_layout(config: AcceleratorConfig) -> data.StructLayout:
    """Return one pass over the accumulator, a beat a cycle.

    `beats`: less one. `repeats`: how often its beat is repeated as it leaves: an empty accumulator
    takes one cycle. `bytes`: of the last beat. `takes_row`: each beat takes one of a row.
    `joins`: the accumulator holds something that the pass reads. `emits`: the result leaves.
    `scaled`: a row is multiplied by the weight. `place`, `negated`: of a row that is summed across.
    """
    return data.StructLayout(
        {
            "beats": range(ACCUMULATOR_BEATS),
            "repeats": range(ACCUMULATOR_BEATS),
            "bytes": config.bus_bytes.bit_length(),
            "takes_row": 1,
            "operation": ReduceOperation,
            "joins": 1,
            "emits": 1,
            "scaled": 1,
            **({"place": Place, "negated": 1} if config.reduce_dot else {}),
        }
    )


def beat_layout(config: AcceleratorConfig) -> data.StructLayout:
    """Return what goes with one beat of a pass to the accumulator.

    `number`: of the beat, or how often it is repeated where it `is_void`: zeros of an empty
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
            "bytes": config.bus_bytes.bit_length(),
            "last": 1,
        }
    )


def result_layout(config: AcceleratorConfig) -> data.StructLayout:
    """Return a beat of a result on its way out, and how often it is repeated."""
    return data.StructLayout({"beat": row_beat_layout(config), "repeats": range(ACCUMULATOR_BEATS)})
