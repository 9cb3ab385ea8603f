"""The reduce unit against its NumPy model, bit for bit, and what it promises in cycles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ember_hw.compiler.interpreters.reduce import reduce_rows
from ember_hw.config import AcceleratorConfig
from ember_hw.isa import Source
from ember_hw.isa.reduce import ReduceOperation, RowFormat
from ember_hw.rtl.execute.reduce_unit import ReduceUnit
from ember_hw.rtl.execute.tests.reduce_cases import (
    Case,
    any_numbers,
    bag_case,
    queue_bundles,
    row_beats,
    rows_of,
)
from ember_hw.rtl.execute.tests.reduce_model import Outcome, run_reduce
from ember_hw.rtl.tests.harness import CONFIG, Bench, payloads

#: As many lanes as a beat has fp32 numbers; codes come a quarter of a beat a cycle.
NARROW = AcceleratorConfig.preset("tiny").with_changes(execute="reduce", int8_rows=1)
SMALL = AcceleratorConfig.preset("small").with_changes(
    execute="reduce", reduce_dot=1, row_entries=3
)
#: Lanes for whole beats of bf16 and fp16, and half of the codes of a beat.
WIDE = NARROW.with_changes(reduce_lanes=4)
#: Units that take rows of codes.
CODED = [(NARROW, True), (WIDE, True)]
#: Both ways to accumulate; narrow buses have results forwarded, as the widest ones do.
UNITS = [(NARROW, True), (SMALL, False), (WIDE, True)]


def _expected(case: Case, config: AcceleratorConfig) -> list[np.ndarray]:
    bundles = [(events, scalars) for events, scalars, _ in case.bundles]
    rows = reduce_rows(case.records, config, bundles, [row.tobytes() for row in case.rows])
    return [row.view(np.uint32) for row in rows]


def _assert_model(outcome: Outcome, case: Case, config: AcceleratorConfig) -> None:
    expected = _expected(case, config)
    assert (outcome.legal, outcome.misfits) == (True, 0)
    assert len(outcome.results) == len(expected)
    for n, (got, want) in enumerate(zip(outcome.results, expected, strict=True)):
        assert np.array_equal(got, want), f"result {n}"
    assert outcome.ended == sum(last for *_, last in case.bundles)


def test_stalls_on_every_port_change_nothing():
    seed = 3
    case = bag_case(CONFIG, [0, 2, 1, 0, 3], 3, seed=seed, scaled=True, corners=0.02)
    expected = _expected(case, CONFIG)
    beats = sum(-(-row.nbytes // CONFIG.bus_bytes) for row in expected)
    dut = ReduceUnit(config=CONFIG, forwards=True)
    bench = Bench(dut, seed=seed)

    async def microcode(ctx):
        ctx.set(dut.header, case.records["reduce"])
        for entry in range(CONFIG.row_entries):
            ctx.set(dut.steps[entry], case.records[f"reduce{entry}"])
            ctx.set(dut.row_events[entry], case.records[f"row{entry}"]["events"])

    bench.process(microcode)
    bench.send(dut.bundle, queue_bundles(case), stall=0.3, start=1)
    bench.send(dut.row, row_beats(case, CONFIG), stall=0.3, start=1)
    results = bench.receive(dut.result, beats, stall=0.3)
    bench.run(2000)
    got = rows_of(payloads(results), CONFIG)
    assert [row.tolist() for row in got] == [row.tolist() for row in expected]


@pytest.mark.verilator
@pytest.mark.parametrize(("config", "forwards"), UNITS)
def test_random_bags_are_the_models(config, forwards):
    for seed in range(16):
        random = np.random.default_rng(seed)
        case = bag_case(
            config,
            random.choice([0, 1, 2, 3, 5, 9], random.integers(1, 30)).tolist(),
            int(random.choice([1, 2, 3, 5, 8, 12, 16, 17, 24, 25, 28, 31, 32, 33])),
            seed=seed,
            operation=ReduceOperation(int(random.integers(3))),
            scaled=bool(random.integers(2)),
            corners=float(random.choice([0.0, 0.02, 0.3])),
        )
        stalls = random.choice([0.0, 0.2, 0.7], 3).tolist()
        outcome = run_reduce(case, config, forwards=forwards, seed=seed, stalls=stalls)
        _assert_model(outcome, case, config)


@pytest.mark.verilator
@pytest.mark.parametrize(("config", "forwards"), UNITS)
def test_short_rows_wait_for_slow_beats(config, forwards):
    # What waits before the multipliers while a beat with denormals turns is not yet on its way.
    for seed, beats in enumerate((1, 2, 3, 5)):
        columns = beats * config.bus_bytes // 4
        case = bag_case(config, [40, 0, 40], columns, seed=seed, scaled=True, corners=0.1)
        _assert_model(run_reduce(case, config, forwards=forwards), case, config)


@pytest.mark.verilator
@pytest.mark.parametrize("format", [RowFormat.BF16, RowFormat.FP16])
@pytest.mark.parametrize(("config", "forwards"), UNITS)
def test_rows_of_small_numbers_are_widened(config, forwards, format):
    for seed, columns in enumerate((1, 3, 4, 5, 8, 9, 31, 64)):
        case = bag_case(
            config,
            [3, 0, 1, 5],
            columns,
            seed=seed,
            operation=ReduceOperation(seed % 3),
            scaled=bool(seed % 2),
            corners=0.05,
            format=format,
            weight_format=(format, RowFormat.FP32)[seed // 4],
        )
        stalls = (0.2, 0.2 * (seed % 2), 0.2)
        outcome = run_reduce(case, config, forwards=forwards, seed=seed, stalls=stalls)
        _assert_model(outcome, case, config)


@pytest.mark.verilator
@pytest.mark.parametrize("half_scale", [False, True])
@pytest.mark.parametrize(("config", "forwards"), CODED)
def test_rows_of_codes_are_scaled_and_biased(config, forwards, half_scale):
    for seed, columns in enumerate((1, 3, 4, 8, 9, 12, 31, 64, 120)):
        case = bag_case(
            config,
            [3, 0, 1, 20],
            columns,
            seed=seed,
            operation=ReduceOperation(seed % 3),
            scaled=bool(seed % 2),
            corners=float(seed % 4) / 10,
            format=RowFormat.INT8,
            half_scale=half_scale,
        )
        stalls = (0.2, 0.2 * (seed % 2), 0.2)
        outcome = run_reduce(case, config, forwards=forwards, seed=seed, stalls=stalls)
        _assert_model(outcome, case, config)


@pytest.mark.verilator
@pytest.mark.parametrize(("config", "forwards"), CODED)
def test_codes_come_at_a_number_a_lane(config, forwards):
    case = bag_case(config, [8] * 20, 120, seed=1, format=RowFormat.INT8)
    outcome = run_reduce(case, config, forwards=forwards)
    _assert_model(outcome, case, config)
    assert outcome.beats == 160 * 128 // config.bus_bytes
    cycles = 160 * 120 // config.lanes
    assert cycles - 35 <= outcome.row_cycles <= cycles


@pytest.mark.verilator
@pytest.mark.parametrize("columns", [0, 7, 9])
@pytest.mark.parametrize(("config", "forwards"), CODED)
def test_row_of_other_codes_stops_the_unit(config, forwards, columns):
    case = bag_case(config, [2, 2], 8, seed=4, format=RowFormat.INT8)
    row = case.rows[3][:8].tolist() + [1] * columns
    case = replace(case, rows=[*case.rows[:3], np.array(row, np.uint8)])
    outcome = run_reduce(case, config, forwards=forwards)
    assert (outcome.legal, outcome.misfits, outcome.ended) == (True, 1, 0)


@pytest.mark.verilator
@pytest.mark.parametrize("format", [RowFormat.BF16, RowFormat.FP16])
@pytest.mark.parametrize(("config", "forwards"), UNITS)
def test_small_numbers_come_at_a_number_a_lane(config, forwards, format):
    case = bag_case(config, [8] * 20, 64, seed=1, format=format)
    outcome = run_reduce(case, config, forwards=forwards)
    beats = 160 * 128 // config.bus_bytes
    cycles = beats * (2 if config.lanes == config.beat_numbers else 1)
    assert outcome.beats == beats
    assert cycles - 3 <= outcome.row_cycles <= cycles + 2


@pytest.mark.verilator
def test_results_wait_for_beats_where_groups_are_wider():
    # A result of 28 beats comes of 14 groups, so each row of a copy waits for the one before it.
    case = bag_case(WIDE, [1] * 40, 56, seed=1, format=RowFormat.BF16)
    outcome = run_reduce(case, WIDE, forwards=True)
    _assert_model(outcome, case, WIDE)
    assert 40 * 28 <= outcome.cycles <= 40 * 28 + 250


@pytest.mark.verilator
@pytest.mark.parametrize("columns", [1023, 1100, 2048])
def test_long_rows_fit(columns):
    case = bag_case(SMALL, [2, 0, 3], columns, seed=columns, scaled=True)
    _assert_model(run_reduce(case, SMALL, forwards=False), case, SMALL)


@pytest.mark.verilator
@pytest.mark.parametrize(("config", "forwards"), UNITS)
def test_sum_is_sequential(config, forwards):
    case = bag_case(config, [1001], 1, seed=0)
    numbers = [np.array([2.0**24], np.float32)] + [np.ones(1, np.float32)] * 1000
    outcome = run_reduce(replace(case, rows=numbers), config, forwards=forwards)
    assert outcome.results[0].view(np.float32).tolist() == [2.0**24]


@pytest.mark.verilator
def test_two_entries_share_the_accumulator():
    # A node's own row is copied as its loop begins, those of its neighbours are added, scaled.
    lengths = [3, 1, 4, 2]
    case = bag_case(SMALL, lengths, 9, seed=5, scaled=True)
    records = {path: dict(fields) for path, fields in case.records.items()}
    events = SMALL.events
    begin = 1 << 1  # of level 1
    records["row1"]["events"] = records["row0"]["events"]
    records["row0"]["events"] = begin
    records["reduce1"] = records["reduce0"]
    records["reduce0"] = dict.fromkeys(records["reduce1"], 0)
    records["issue"]["events"] |= begin
    bundles, rows, row = [], [], 0
    own = any_numbers(np.random.default_rng(6), (len(lengths), 9), 0.0)
    for node, length in enumerate(lengths):
        for position in range(length):
            events, scalars, last = case.bundles[row]
            bundles.append((events | (0 if position else begin), scalars, last))
            rows += [] if position else [own[node]]
            rows.append(case.rows[row])
            row += 1
    case = Case(records, bundles, rows)
    _assert_model(run_reduce(case, SMALL, forwards=False, stalls=(0.2, 0.2, 0.2)), case, SMALL)


@pytest.mark.verilator
def test_length_of_a_scalar():
    case = bag_case(SMALL, [2, 0, 3], 11, seed=1)
    records = {path: dict(fields) for path, fields in case.records.items()}
    records["reduce"] |= {"length_source": Source.SLOT, "length": 0, "length_scalar": 1}
    for _, scalars, _ in case.bundles:
        scalars[1] = 44
    case = replace(case, records=records)
    _assert_model(run_reduce(case, SMALL, forwards=False), case, SMALL)
    case.bundles[1][1][1] = 40
    outcome = run_reduce(case, SMALL, forwards=False)
    assert (outcome.misfits, outcome.results, outcome.ended) == (1, [], 0)


@pytest.mark.verilator
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(
    ("config", "forwards", "beats"), [(NARROW, True, 4), (SMALL, False, 8), (WIDE, True, 4)]
)
def test_no_cycle_is_lost(config, forwards, beats, scaled):
    columns = beats * config.bus_bytes // 4
    case = bag_case(config, [8] * 40, columns, seed=2, scaled=scaled)
    outcome = run_reduce(case, config, forwards=forwards)
    _assert_model(outcome, case, config)
    # The first beat of all goes ahead to where it is widened.
    assert outcome.beats == 320 * beats
    assert outcome.row_cycles <= 320 * beats + 2


@pytest.mark.verilator
def test_an_empty_bag_takes_one_cycle():
    case = bag_case(SMALL, [8, 0, 0, 9, 0] * 20, 64, seed=6)
    outcome = run_reduce(case, SMALL, forwards=False)
    _assert_model(outcome, case, SMALL)
    assert outcome.row_cycles <= 20 * (17 * 16 + 3) + 2


@pytest.mark.verilator
@pytest.mark.parametrize(("config", "forwards"), UNITS)
def test_short_rows_take_the_cycles_that_are_promised(config, forwards):
    dut = ReduceUnit(config=config, forwards=forwards)
    dut._MustUse__used = True
    for beats in range(1, dut.least_row_groups + 1):
        columns = beats * config.bus_bytes // 4
        cycles = []
        for rows in (40, 100):
            case = bag_case(config, [rows], columns, seed=beats)
            outcome = run_reduce(case, config, forwards=forwards)
            _assert_model(outcome, case, config)
            cycles.append(outcome.row_cycles)
        assert cycles[1] - cycles[0] == 60 * dut.least_row_groups


@pytest.mark.verilator
def test_rows_of_one_beat_are_copied_one_a_cycle():
    case = bag_case(SMALL, [1] * 100, 4, seed=3, operation=ReduceOperation.COPY)
    outcome = run_reduce(case, SMALL, forwards=False)
    _assert_model(outcome, case, SMALL)
    assert 98 <= outcome.row_cycles <= 102


@pytest.mark.verilator
@pytest.mark.parametrize("columns", [7, 9])
def test_row_of_another_length_stops_the_unit(columns):
    case = bag_case(SMALL, [2, 2], 8, seed=4)
    rows = [*case.rows[:3], case.rows[3][:1].repeat(columns)]
    outcome = run_reduce(replace(case, rows=rows), SMALL, forwards=False)
    assert (outcome.legal, outcome.misfits, outcome.ended) == (True, 1, 0)
    assert len(outcome.results) == 1


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("path", "field", "value"),
    [
        ("reduce", "length", 0),
        ("reduce", "length", 30),
        ("reduce", "length", 8196),
        ("reduce", "weight_format", RowFormat.INT8),
        ("reduce0", "operation", 3),
        ("row1", "events", 1),
        ("reduce1", "emit_events", 1),
    ],
)
def test_microcode_that_means_nothing_is_illegal(path, field, value):
    case = bag_case(SMALL, [1], 8, seed=0)
    records = {name: dict(fields) for name, fields in case.records.items()}
    records[path][field] = value
    assert not run_reduce(replace(case, records=records), SMALL, forwards=False).legal


@pytest.mark.verilator
def test_codes_are_illegal_without_lanes_for_them():
    case = bag_case(SMALL, [1], 8, seed=0, format=RowFormat.INT8)
    assert not run_reduce(case, SMALL, forwards=False).legal
