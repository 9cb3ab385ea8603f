from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest

from ember_hw.bench.result import Result, Row, summarise


def a_row(value: float = 0.5, **changes: Any) -> Row:
    facts: dict[str, Any] = {
        "workload": "w",
        "metric": "m",
        "unit": "1",
        "reference_name": "limit",
        "reference": 1.0,
    }
    return Row(value=value, **(facts | changes))


def test_result_is_the_schema_and_survives_json() -> None:
    row = a_row(0.97, params={"bag": 8}, bar=0.99)
    plain = Row(workload="w", metric="cells", value=3, unit="cells")
    result = Result(
        suite="gather", commit="c0ffee", seed=7, machine={"cores": 2}, rows=(row, plain)
    )
    assert json.loads(json.dumps(result.to_dict())) == {
        "schema": 1,
        "suite": "gather",
        "commit": "c0ffee",
        "seed": 7,
        "machine": {"cores": 2},
        "rows": [
            {
                "workload": "w",
                "metric": "m",
                "value": 0.97,
                "unit": "1",
                "params": {"bag": 8, "bar": 0.99},
                "reference": {"name": "limit", "value": 1.0},
                "ratio": 0.97,
            },
            {
                "workload": "w",
                "metric": "cells",
                "value": 3,
                "unit": "cells",
                "params": {},
                "reference": None,
                "ratio": None,
            },
        ],
    }


def test_ratio_is_turned_so_that_larger_is_better() -> None:
    assert a_row(8.0, reference=10.0).ratio == 0.8
    assert a_row(8.0, reference=10.0, is_smaller_better=True).ratio == 1.25
    assert a_row(0.0, is_smaller_better=True).ratio == math.inf


@pytest.mark.parametrize(
    ("value", "bar", "is_below"),
    [(0.98, 0.99, True), (0.99, 0.99, False), (0.5, None, False), (math.nan, 0.1, True)],
)
def test_bar_is_the_least_good_ratio(value: float, bar: float | None, is_below: bool) -> None:
    assert a_row(value, bar=bar).is_below_bar is is_below


def test_summary_counts_ratios_and_bars() -> None:
    rows = [
        a_row(0.25, bar=0.5),
        a_row(1.0, bar=0.5),
        a_row(2.0),
        Row(workload="w", metric="m", value=9.0, unit="1"),
    ]
    summary = summarise(rows)
    assert (summary.rows, summary.with_bar, summary.below_bar) == (4, 2, 1)
    assert summary.worst == 0.25
    assert summary.geomean == pytest.approx(0.5 ** (1 / 3))
    assert str(summarise([])) == "0 rows: no ratios; 0 of 0 rows with a bar are below it"
    assert summarise([a_row(0.0), a_row(1.0)]).geomean == 0.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"reference": None},
            "reference of 'w' must be a name with a value, not 'limit' with None",
        ),
        ({"reference": 0.0}, "reference of 'w' must be positive and finite, not 0.0"),
        (
            {"reference": None, "reference_name": None, "bar": 0.9},
            "bar of 'w' must have a reference, not 0.9",
        ),
    ],
)
def test_rows_that_make_no_sense_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        a_row(**changes)
