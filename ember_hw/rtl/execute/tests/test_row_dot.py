"""Sums across rows, in the reduce unit, against the NumPy model, bit for bit; and their cycles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ember_hw.compiler.interpreters.reduce import reduce_rows
from ember_hw.config import AcceleratorConfig
from ember_hw.isa import Chain, Fold, Place, RowFormat, Source
from ember_hw.rtl.execute.tests.dot_cases import dot_case
from ember_hw.rtl.execute.tests.reduce_cases import (
    Case,
    bag_case,
)
from ember_hw.rtl.execute.tests.reduce_model import Outcome, run_reduce
from ember_hw.rtl.execute.tests.test_reduce_unit import SMALL as CONFIG

NARROW = CONFIG.with_changes(name="narrow", data_width_bits=64)
WIDE = CONFIG.with_changes(name="wide", data_width_bits=512)

pytestmark = [pytest.mark.verilator, pytest.mark.timeout(900)]  # the first one builds the model

#: What the unit takes of each fold.
HEADERS = [
    (fold, (second, third))
    for fold in list(Fold)[1:]
    for second in Chain
    for third in Chain
    if (fold, third) != (Fold.SQUARE, Chain.MULTIPLY)
]
TRANSE = (Fold.ABSOLUTE, (Chain.ADD, Chain.ADD))


def run(case: Case, config: AcceleratorConfig, **options) -> Outcome:
    """Run a case; the model is that of other tests."""
    return run_reduce(case, config, forwards=False, **options)


def _expected(case: Case, config: AcceleratorConfig) -> list[int]:
    bundles = [(events, scalars) for events, scalars, _ in case.bundles]
    rows = reduce_rows(case.records, config, bundles, [row.tobytes() for row in case.rows])
    return [int(row.view(np.uint32)[0]) for row in rows]


def _assert_model(outcome: Outcome, case: Case, config: AcceleratorConfig) -> None:
    assert (outcome.legal, outcome.misfits) == (True, 0)
    assert all(len(row) == 1 for row in outcome.results)
    assert [int(row[0]) for row in outcome.results] == _expected(case, config)
    assert outcome.ended == sum(last for *_, last in case.bundles)


@pytest.mark.parametrize(
    "config",
    [
        CONFIG,
        pytest.param(NARROW, marks=pytest.mark.slow),
        pytest.param(WIDE, marks=pytest.mark.slow),
    ],
    ids=lambda config: config.name,
)
@pytest.mark.parametrize("seed", range(4))
def test_random_sums_are_the_models(config, seed):
    random = np.random.default_rng(seed)
    for number, (fold, chains) in enumerate(HEADERS):
        case = dot_case(
            config,
            fold,
            chains,
            int(random.choice([1, 2, 3, 4, 5, 16, 17, 33])),
            int(random.integers(1, 40)),
            seed=100 * seed + number,
            corners=float(random.choice([0.0, 0.02, 0.3])),
            negated=random.integers(0, 2, 3).tolist(),
            places=random.permutation(list(Place)).tolist(),
            kept=[int(random.integers(3))] if random.random() < 0.5 else [],
        )
        stalls = random.choice([0.0, 0.2, 0.9], 3).tolist()
        outcome = run(case, config, seed=number, stalls=stalls)
        _assert_model(outcome, case, config)


@pytest.mark.parametrize("columns", [1, 3, 255, 256, 257, 511, 513, 1023, 1025, 1100, 2048])
def test_rows_of_any_length_fit(columns):
    for seed, stalls in enumerate([(0.0, 0.0, 0.0), (0.2, 0.2, 0.2)]):
        case = dot_case(
            CONFIG, *TRANSE, columns, 21, seed=seed, corners=0.001, kept=[1] if seed else []
        )
        outcome = run(case, CONFIG, seed=seed, stalls=stalls, patience=5 * columns + 200)
        _assert_model(outcome, case, CONFIG)


def test_rows_of_small_numbers_are_widened():
    case = dot_case(CONFIG, *TRANSE, 35, 20, seed=1, corners=0.1, format=RowFormat.BF16)
    _assert_model(run(case, CONFIG, stalls=(0.2, 0.2, 0.2)), case, CONFIG)


def test_bags_are_pooled_as_ever():
    case = bag_case(CONFIG, [3, 0, 9, 1], 33, seed=2, corners=0.1, scaled=True)
    expected = reduce_rows(
        case.records,
        CONFIG,
        [(events, scalars) for events, scalars, _ in case.bundles],
        [row.tobytes() for row in case.rows],
    )
    outcome = run(case, CONFIG, stalls=(0.2, 0.2, 0.2))
    assert [row.tolist() for row in outcome.results] == [
        row.view(np.uint32).tolist() for row in expected
    ]


def test_an_element_a_cycle():
    cycles = []
    for sums in (100, 300):
        case = dot_case(CONFIG, *TRANSE, 64, sums, seed=3)
        outcome = run(case, CONFIG)
        _assert_model(outcome, case, CONFIG)
        cycles.append(outcome.cycles)
    assert cycles[1] - cycles[0] == 200 * 64


def test_short_rows_come_a_beat_a_cycle():
    case = dot_case(CONFIG, *TRANSE, 3, 400, seed=3)
    outcome = run(case, CONFIG)
    _assert_model(outcome, case, CONFIG)
    assert outcome.row_cycles <= 3 * 400 + 10


@pytest.mark.parametrize("columns", [7, 9])
def test_row_of_another_length_stops_the_unit(columns):
    case = dot_case(CONFIG, *TRANSE, 8, 4, seed=4)
    rows = [*case.rows[:7], case.rows[7][:1].repeat(columns), *case.rows[8:]]
    outcome = run(replace(case, rows=rows), CONFIG)
    assert (outcome.legal, outcome.misfits, outcome.ended) == (True, 1, 0)
    assert [int(row[0]) for row in outcome.results] == _expected(case, CONFIG)[:2]


def test_a_sum_that_lacks_a_row_stops_the_unit():
    case = dot_case(CONFIG, *TRANSE, 8, 4, seed=4)
    records = {path: dict(fields) for path, fields in case.records.items()}
    records["row1"]["events"] = 0
    rows = [row for number, row in enumerate(case.rows) if number % 3 != 1]
    outcome = run(replace(case, records=records, rows=rows), CONFIG)
    assert (outcome.legal, outcome.misfits, outcome.results) == (True, 1, [])


@pytest.mark.parametrize(
    ("path", "field", "value"),
    [
        ("reduce", "length_source", Source.SLOT),
        ("reduce", "second", 3),
        ("reduce", "third", 3),
        ("reduce", "length", 8196),
        ("reduce0", "place", 3),
        ("reduce1", "scaled", 1),
        ("reduce2", "operation", 1),
    ],
)
def test_microcode_that_means_nothing_is_illegal(path, field, value):
    case = dot_case(CONFIG, *TRANSE, 8, 1, seed=0)
    records = {name: dict(fields) for name, fields in case.records.items()}
    records[path][field] = value
    assert not run(replace(case, records=records), CONFIG).legal
    records["reduce"]["fold"] = Fold.NONE
    if path != "reduce" and field == "place":
        assert run(replace(case, records=records), CONFIG, max_cycles=3).legal


def test_a_square_has_no_multiplier_left_for_the_third_row():
    case = dot_case(CONFIG, Fold.SQUARE, (Chain.ADD, Chain.MULTIPLY), 8, 1, seed=0)
    assert not run(case, CONFIG).legal
