"""Programs, bundles and rows for sums across rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ember_hw.config import AcceleratorConfig
from ember_hw.isa import Chain, Event, Fold, Place, RowFormat, event_mask
from ember_hw.isa.reduce import reduce_header_fields, reduce_step_fields
from ember_hw.rtl.execute.tests.reduce_cases import Case, any_numbers


def dot_case(
    config: AcceleratorConfig,
    fold: Fold,
    chains: tuple[Chain, Chain],
    columns: int,
    sums: int,
    *,
    seed: int,
    corners: float = 0.0,
    negated: Sequence[int] = (0, 0, 0),
    places: Sequence[Place] = tuple(Place),
    kept: Sequence[int] = (),
    format: RowFormat = RowFormat.FP32,
) -> Case:
    """Return sums across drawn rows, one an iteration of level 1.

    Parameters
    ----------
    config : AcceleratorConfig
        With at least as many row entries as there are rows.
    fold, chains
        Of the microcode; where a chain is none, no row comes for it.
    columns, sums : int
        Of a row; in all.
    corners : float
        Share of numbers that are corners, and of those that are any bits.
    negated, places : sequences
        Of the entries.
    kept : sequence of int
        Entries whose rows come as a loop begins, which is for every third sum or so.
    """
    random = np.random.default_rng(seed)
    begin, iterate = (event_mask([(event, 1)], config) for event in (Event.BEGIN, Event.ITERATE))
    root_end = event_mask([(Event.END, 0)], config)
    in_use = {Place.FIRST, *(p for p, chain in zip(list(Place)[1:], chains, strict=True) if chain)}
    entries = [entry for entry, place in enumerate(places) if place in in_use]
    records = {}
    for entry in range(config.row_entries):
        is_used = entry in entries
        events = (begin if entry in kept else iterate) if is_used else 0
        records[f"row{entry}"] = {"events": events}
        records[f"reduce{entry}"] = {f.name: 0 for f in reduce_step_fields(config)}
        if is_used:
            records[f"reduce{entry}"] |= {"place": places[entry], "negated": negated[entry]}
    records[f"reduce{entries[-1]}"]["emit_events"] = iterate
    records["reduce"] = {f.name: 0 for f in reduce_header_fields(config)}
    records["reduce"] |= {
        "length": 4 * columns,
        "format": format,
        "fold": fold,
        "second": chains[0],
        "third": chains[1],
    }
    records["issue"] = {"events": begin | iterate}
    bundles, rows = [], []
    for number in range(sums):
        begins = number == 0 or random.random() < 0.3
        last = number + 1 == sums
        events = iterate | (begin if begins else 0) | (root_end if last else 0)
        bundles.append((events, [0] * config.bundle_scalars, int(last)))
        for entry in entries:
            if entry not in kept or begins:
                rows.append(_row(random, columns, corners, format))
    return Case(records, bundles, rows)


def _row(random: np.random.Generator, columns: int, corners: float, format: RowFormat) -> NDArray:
    numbers = any_numbers(random, columns, corners)
    if format is RowFormat.BF16:
        return (numbers.view(np.uint32) >> 16).astype(np.uint16)
    return numbers
