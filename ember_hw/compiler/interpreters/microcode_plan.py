"""What microcode says once and for all: its units' records, and which values are ever read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from weakref import finalize

import numpy as np

from ember_hw.config import AcceleratorConfig
from ember_hw.isa import BoundSource, Event, Microcode, Source, StreamSource, event_bit

__all__ = ["UnitPlan", "plan_of"]


@dataclass(frozen=True)
class UnitPlan:
    """A traversal unit.

    Attributes
    ----------
    level : int
    record : mapping of str to int
        Its fields.
    streams : list of mapping of str to int
        Those of its streams.
    fed : tuple of int
        Streams that the input queue feeds.
    exports : list of int
        Its selectors: 0 for the inherited value, or 1 more than the number of an own one.
    inherited : frozenset of int
        Inherited values that it, what lies below it, rows or bundles read. Others don't matter.
    computes : bool
        Whether the ALU's value is exported.
    own : list of uint32
        Its begin, iterate and end events.
    rides_first, rides_last : uint32
        Events of levels above that ride on its first and on its last token.
    """

    level: int
    record: Mapping[str, int]
    streams: list[Mapping[str, int]]
    fed: tuple[int, ...]
    exports: list[int]
    inherited: frozenset[int]
    computes: bool
    own: list[np.uint32]
    rides_first: np.uint32
    rides_last: np.uint32


_plans: dict[int, list[UnitPlan]] = {}


def plan_of(microcode: Microcode) -> list[UnitPlan]:
    """Return the plans of the units that are enabled, made once while the microcode lives."""
    number = id(microcode)
    if number not in _plans:
        _plans[number] = _make(microcode)
        finalize(microcode, _plans.pop, number)
    return _plans[number]


def _make(microcode: Microcode) -> list[UnitPlan]:
    config, records = microcode.config, microcode.records
    wanted = _read_at_the_end(microcode)
    plans: list[UnitPlan] = []
    for level in reversed(range(config.traversal_units)):
        record = records[f"unit{level}"]
        if not record["enable"]:
            continue
        streams = [records[f"unit{level}.stream{s}"] for s in range(config.streams_per_unit)]
        exports = [record[f"export{number}"] for number in range(config.exports)]
        kept = {number for number in wanted if not exports[number]}
        wanted = kept | _read_by(record, streams, config)
        own, first, last = events_of(level, config)
        plans.append(
            UnitPlan(
                level=level,
                record=record,
                streams=streams,
                fed=tuple(
                    number
                    for number, stream in enumerate(streams)
                    if stream["enable"] and stream["source"] == StreamSource.QUEUE
                ),
                exports=exports,
                inherited=frozenset(wanted),
                computes=len(streams) + 2 in exports,
                own=own,
                rides_first=first,
                rides_last=last,
            )
        )
    return plans[::-1]


def _read_at_the_end(microcode: Microcode) -> set[int]:
    """Return the exports of the innermost unit that bundles and rows read."""
    config = microcode.config
    wanted = set(range(config.bundle_scalars))
    for number in range(config.row_entries):
        get = microcode.records[f"row{number}"]
        if get["events"]:
            names = ("index", "rows", "pitch", "length", "base", "offset")
            wanted.update(get[f"{name}_export"] for name in names)
    return wanted


def _read_by(
    record: Mapping[str, int], streams: list[Mapping[str, int]], config: AcceleratorConfig
) -> set[int]:
    """Return the inherited values that a unit reads."""
    wanted: set[int] = set()
    if record["lower_source"] == Source.SLOT:
        wanted.add(record["lower_export"])
    if record["upper_source"] == BoundSource.SLOT:
        wanted.add(record["upper_export"])
    for stream in streams:
        if stream["enable"] and stream["outer_enable"]:
            wanted.add(stream["outer_export"])
    inherited = record["alu_b_slot"] - 1 - config.streams_per_unit
    if inherited >= 0:
        wanted.add(inherited)
    return wanted


@cache
def events_of(
    level: int, config: AcceleratorConfig
) -> tuple[list[np.uint32], np.uint32, np.uint32]:
    """Return the events of a level, and those of all above on its first and its last token."""
    own = [np.uint32(1 << event_bit(event, level, config)) for event in Event]
    first = last = np.uint32(0)
    for above in range(level):
        begin, iterate, end = events_of(above, config)[0]
        first, last = first | begin | iterate, last | end
    return own, first, last
