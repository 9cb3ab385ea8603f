# pyright: basic
"""The rules for results, as calls with one answer each."""

from __future__ import annotations

import numpy as np

from ember_hw.host.tests.contract.rule import CLI, ROWS, Array, Bag, Rule, call, ints
from ember_hw.host.tests.contract.rules import BAGS, LOOKUPS, STARTS


def _poison_unread(table: Array) -> None:
    table[[row for row in range(ROWS) if row not in LOOKUPS]] = np.nan


def _poison_padding(table: Array) -> None:
    table[1] = np.nan


def _nan_and_infinite(table: Array) -> None:
    table[3, 0] = np.nan
    table[4, 1] = np.inf


def _mixed(table: Array) -> None:
    table[:] = 1
    table[4] = 2.0**24


def _denormal(table: Array) -> None:
    table *= np.float32(2.0**-130)


RESULTS: list[Rule] = [
    *(
        Rule(
            f"empty_{mode}",
            "an empty bag is zeros in every mode",
            call(ints(3), ints(0, 0, 1, 1)),
            Bag(mode),
            bags=([], [0], [], []),
        )
        for mode in ("sum", "mean", "max")
    ),
    *(
        Rule(
            f"all_padding_{mode}",
            "so is a bag of padding, whatever that row holds",
            call(ints(1, 1, 1), ints(0, 2)),
            Bag(mode, padding_idx=1),
            bags=([], []),
            table=_poison_padding,
        )
        for mode in ("sum", "mean", "max")
    ),
    Rule(
        "mean",
        "the sum is divided by the exact count, once",
        call(ints(*range(ROWS), 3), ints(0, 3)),
        Bag("mean"),
        bags=([0, 1, 2], list(range(3, 11))),
    ),
    *(
        Rule(
            f"max_nan_{'first' if order else 'last'}",
            "a NaN in a bag is its maximum, whatever the order",
            call(ints(3, 1, 4)[:: 1 if order else -1].copy(), ints(0)),
            Bag("max"),
            table=_nan_and_infinite,
            expected=lambda table: np.array(
                [[np.nan, np.inf, *table[[3, 1, 4], 2:].max(0)]], np.float32
            ),
        )
        for order in (True, False)
    ),
    Rule(
        "duplicates",
        "a row counts each time",
        call(ints(3, 3, 3), ints(0)),
        bags=([0, 1, 2],),
    ),
    Rule(
        "weight_0",
        "0 times NaN or infinity is NaN",
        call(ints(3, 4), ints(0), np.zeros(2, np.float32)),
        table=_nan_and_infinite,
        expected=lambda table: np.array([[np.nan, np.nan, 0, 0]], np.float32),
    ),
    Rule(
        "unread",
        "rows that no bag reads never matter",
        call(LOOKUPS, STARTS),
        bags=BAGS,
        table=_poison_unread,
    ),
    Rule(
        "order",
        "fp32 sums are sequential in the order of the indices",
        call(ints(4, 1, 1, 1, 1, 4), ints(0, 3)),
        table=_mixed,
        expected=lambda table: np.array([[2.0**24] * 4, [2.0**24 + 2] * 4], np.float32),
    ),
    Rule(
        "denormal", "denormal numbers are kept", call(LOOKUPS, STARTS), bags=BAGS, table=_denormal
    ),
    *(
        Rule(
            f"dim_{columns}",
            "rows may have any number of elements",
            call(ints(3, 9, 0), ints(0, 2)),
            Bag(embedding_dim=columns),
            bags=([0, 1], [2]),
        )
        for columns in (1, 3, 17, 1100)
    ),
    Rule(
        "strided_indices",
        "strided indices are as their contiguous copy",
        call(np.arange(ROWS)[::-3], ints(0, 0, 2, 2)[::2]),
        bags=([0, 1], [2, 3]),
        not_at={CLI: "a file holds contiguous arrays"},
    ),
]
