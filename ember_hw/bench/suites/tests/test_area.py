from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

from ember_hw.bench.presets import unit
from ember_hw.bench.suites.area import (
    PLAIN,
    POINTS,
    Point,
    cell_rows,
    count,
    reduce_row,
    reducing,
    step_rows,
)

FACTS: dict[str, Any] = {"data_width_bits": 128}


def test_cells_of_the_unit_have_the_bar_and_those_of_the_wrapper_are_told() -> None:
    cells = Counter({"LUT4": 7_000, "FF": 9})
    rows = {row.metric: row for row in cell_rows(POINTS[0], cells, Counter(LUT4=300), FACTS)}
    lut4 = rows["LUT4"]
    assert (lut4.value, lut4.reference, lut4.is_below_bar) == (7_000, 7_500, False)
    assert lut4.params["wrapper_cells"] == 300
    assert rows["FF"].value == 9
    assert rows["FF"].bar is None


def test_step_to_another_level_is_held_against_its_bars_at_128_bits() -> None:
    step = Counter({"LUT4": 3_001, "FF": 4_000})
    narrow = {row.metric: row.is_below_bar for row in step_rows("u", step, FACTS)}
    assert narrow == {"LUT4 of the last level": True, "FF of the last level": False}
    wide = step_rows("u", step, {"data_width_bits": 512})
    assert [row.bar for row in wide] == [None, None]


def test_cells_are_counted_by_their_short_names() -> None:
    types = ("LUT4", "LUT4", "DP16KD", "$scopeinfo")
    netlist = {"cells": {str(n): {"type": name} for n, name in enumerate(types)}}
    counted = count(netlist)
    assert (counted["LUT4"], counted["EBR"], counted["FF"]) == (2, 1, 0)


def test_each_point_with_a_step_stands_behind_the_one_with_a_level_less() -> None:
    units = [point for point in POINTS if point.config.execute == "queues"]
    for before, point in pairwise(units):
        if point.is_step:
            less = point.config.traversal_units - 1
            changes = {"traversal_units": less, "name": before.config.name}
            assert before.config == point.config.with_changes(**changes)


def test_each_reduce_unit_stands_behind_the_unit_without_it() -> None:
    without: set[int] = set()
    for point in POINTS:
        if point.config.execute == "queues":
            without.add(point.config.hash())
        else:
            assert point.config.with_changes(execute="queues", **PLAIN).hash() in without


def test_reduce_unit_has_a_bar_unless_it_has_more_than_it_must() -> None:
    plain, more, wide = (
        Point(reducing(unit(128, 64), **changes))
        for changes in ({}, {"results": "memory"}, {"reduce_lanes": 16, "int8_rows": 1})
    )
    assert more.config.name == f"{unit(128, 64).name}, reduce, memory"
    assert wide.config.name == f"{unit(128, 64).name}, reduce, 16 lanes, int8 rows"
    row = reduce_row(plain, 5_001, FACTS)
    assert (row.value, row.reference, row.is_below_bar) == (5_001, 5_000, True)
    assert reduce_row(plain, 5_000, FACTS).is_below_bar is False
    sums = Point(reducing(unit(128, 64), reduce_dot=1))
    assert sums.config.name == f"{unit(128, 64).name}, reduce, sums across"
    assert {reduce_row(point, 9_000, FACTS).bar for point in (more, wide, sums)} == {None}
