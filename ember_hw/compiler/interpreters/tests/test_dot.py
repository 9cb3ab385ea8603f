# pyright: basic
"""Sums across rows against sums by hand, number by number."""

from __future__ import annotations

import numpy as np
import pytest

from ember_hw.compiler.interpreters.dot import negative, places_in_use, sums_across
from ember_hw.compiler.interpreters.reduce import QUIET_NAN, reduce_rows
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError
from ember_hw.isa import Chain, Event, Fold, Place, RowFormat, event_mask
from ember_hw.isa.reduce import reduce_header_fields, reduce_step_fields, result_bytes

CONFIG = AcceleratorConfig(name="sums", execute="reduce", reduce_dot=1, row_entries=3)
BEGIN, ITERATE, END = (event_mask([(event, 1)], CONFIG) for event in Event)


def by_hand(header, rows):
    """Return a sum in Python, each operation in fp32."""
    total = np.float32(0)
    with np.errstate(all="ignore"):
        for e in range(len(rows[0])):
            x = rows[0][e]
            for chain, row in zip((header["second"], header["third"]), rows[1:], strict=False):
                x = x + row[e] if chain is Chain.ADD else x * row[e] if chain else x
            fold = header["fold"]
            total = total + (
                abs(x) if fold is Fold.ABSOLUTE else x * x if fold is Fold.SQUARE else x
            )
    return total


def records(columns, header, events=(ITERATE,) * 3, emits=(0, 0, ITERATE), **steps):
    found = {f"row{r}": {"events": events[r]} for r in range(3)}
    for r in range(3):
        found[f"reduce{r}"] = {f.name: 0 for f in reduce_step_fields(CONFIG)}
        found[f"reduce{r}"] |= {"place": Place(r), "emit_events": emits[r]}
        found[f"reduce{r}"] |= {name: value[r] for name, value in steps.items()}
    fields = {f.name: 0 for f in reduce_header_fields(CONFIG)}
    return found | {"reduce": fields | {"length": 4 * columns} | header}


HEADERS = [
    {"fold": fold, "second": second, "third": third}
    for fold in (Fold.SUM, Fold.ABSOLUTE, Fold.SQUARE)
    for second in Chain
    for third in Chain
]


@pytest.mark.parametrize("header", HEADERS, ids=str)
def test_each_operation_is_rounded_and_the_order_is_that_of_the_columns(header):
    random = np.random.default_rng(5)
    rows = random.standard_normal((3, 40, 33)).astype(np.float32) * np.float32(2.0**20)
    rows[:, ::3] *= random.choice([2.0**-150, 2.0**100, 1], rows[:, ::3].shape).astype(np.float32)
    rows[:, 7, 5] = np.inf
    sums = sums_across(header, dict(zip(Place, rows, strict=True)))
    assert sums.shape == (40, 1)
    for sum_, triple in zip(sums[:, 0], rows.swapaxes(0, 1), strict=True):
        expected = by_hand(header, triple)
        assert sum_ == expected or (np.isnan(sum_) and np.isnan(expected))


def test_order_is_seen():
    rows = np.array([[2.0**24, 1, 1], [1, 1, 2.0**24]], np.float32)
    header = {"fold": Fold.SUM, "second": 0, "third": 0}
    assert sums_across(header, {Place.FIRST: rows}).tolist() == [[2.0**24], [2.0**24 + 2]]


def test_sum_begins_at_zero():
    header = {"fold": Fold.SUM, "second": 0, "third": 0}
    (total,) = sums_across(header, {Place.FIRST: np.array([-0.0], np.float32)})
    assert not np.signbit(total)


def test_places_in_use():
    for second in Chain:
        for third in Chain:
            expected = (
                (Place.FIRST,) + (Place.SECOND,) * bool(second) + (Place.THIRD,) * bool(third)
            )
            assert places_in_use({"second": second, "third": third}) == expected


def test_a_negated_nan_keeps_its_bits():
    row = np.array([0x7FC12345, 0, 0x80000001], np.uint32).view(np.float32)
    assert negative(row).view(np.uint32).tolist() == [0xFFC12345, 0x80000000, 1]


def test_triples():
    header = {"fold": Fold.ABSOLUTE, "second": Chain.ADD, "third": Chain.ADD}
    program = records(2, header, negated=(0, 0, 1))
    rows = np.array([[1, 2], [3, 4], [10, 0.5], [np.nan, 1], [0, 0], [0, 0]], np.float32)
    results = reduce_rows(program, CONFIG, [(ITERATE, [0])] * 2, [row.tobytes() for row in rows])
    assert [row.view(np.uint32).tolist() for row in results] == [
        np.array([6 + 5.5], np.float32).view(np.uint32).tolist(),
        [QUIET_NAN],
    ]
    assert result_bytes(program["reduce"]) == results[0].nbytes
    assert result_bytes({"length": 36}) == 36


def test_a_row_stays_until_another_comes():
    program = records(
        1,
        {"fold": Fold.SUM, "second": Chain.MULTIPLY, "format": RowFormat.FP16},
        events=(BEGIN, ITERATE, 0),
        emits=(0, ITERATE, 0),
    )
    bundles = [(BEGIN | ITERATE, [0]), (ITERATE, [0]), (BEGIN | END, [0]), (BEGIN | ITERATE, [0])]
    rows = [np.array([x], np.float16).tobytes() for x in (2, 3, 5, 7, 11, 13)]
    assert [float(row[0]) for row in reduce_rows(program, CONFIG, bundles, rows)] == [6, 10, 143]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([4], "a second row must come before a result, and none came"),
        ([4, 8], "a row must be 4 bytes, not 8"),
        ([4, 4, 4], "every row must be taken by a bundle, but 1 are left"),
    ],
)
def test_what_does_not_fit_is_refused(rows, message):
    header = {"fold": Fold.SUM, "second": Chain.MULTIPLY}
    second = ITERATE if len(rows) > 1 else 0
    program = records(1, header, events=(ITERATE, second, 0), emits=(0, ITERATE, 0))
    with pytest.raises(DeviceError) as caught:
        reduce_rows(program, CONFIG, [(ITERATE, [0])], [bytes(size) for size in rows])
    assert str(caught.value) == message
