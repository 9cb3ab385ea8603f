from __future__ import annotations

import json
from typing import Any

import pytest

from ember_hw.config import AcceleratorConfig
from ember_hw.host.report import Report, config_facts, counted, profiler_of
from ember_hw.host.tests.profiles import a_profile, a_timed_report
from ember_hw.registers import Counter

COUNTERS = {counter: 10 * int(counter) + 1 for counter in Counter} | {
    Counter.CYCLES: 1000,
    Counter.ROW_BEATS: 800,
    Counter.INDEX_BEATS: 50,
    Counter.ROW_BYTES: 48_000,
}


def timed_report() -> Report:
    return Report(
        program="bag",
        backend="verilator",
        memory="ideal (latency 100 cycles)",
        sink="ideal",
        lookups=200,
        seed=7,
        versions={"torch": "2.13"},
        **config_facts(AcceleratorConfig()),
        **counted(COUNTERS),
    )


def untimed_report() -> Report:
    facts = config_facts(AcceleratorConfig())
    return Report("bag", "interpreter", "none", "none", lookups=2, bundles=3, row_beats=4, **facts)


def test_utilisation_is_useful_bytes_over_cycles_times_bus_bytes() -> None:
    assert timed_report().utilisation == 48_000 / (1000 * 64)


def test_moved_bytes_are_all_beats() -> None:
    assert timed_report().moved_bytes == 850 * 64


def test_lookups_a_second_follow_from_the_stated_clock() -> None:
    assert timed_report().lookups_per_second == 200 / 1000 * 100e6


def test_every_counter_is_reported_once() -> None:
    report = timed_report()
    shown: list[Any] = [
        report.cycles,
        report.row_beats,
        report.index_beats,
        report.bundles,
        report.rows,
    ]
    shown += [report.useful_bytes, *report.stalls.values(), *report.high_water.values()]
    assert sorted(shown) == sorted(COUNTERS.values())


def test_backend_without_a_clock_claims_no_timing() -> None:
    report = untimed_report()
    assert report.cycles is report.utilisation is report.lookups_per_second is None
    assert report.moved_bytes is None
    assert "cycles                  none: this backend has no clock" in str(report)


def test_json_holds_the_attributes_and_what_follows_from_them() -> None:
    values = json.loads(timed_report().to_json())
    assert values["utilisation"] == 0.75
    assert values["moved_bytes"] == 54_400
    assert values["stalls"]["execute"] == COUNTERS[Counter.STALL_EXECUTE]
    assert values["high_water"]["tokens"] == COUNTERS[Counter.HIGH_TOKENS]
    assert values["config"] == "default"
    assert values["config_hash"] == AcceleratorConfig().hash()
    assert values["seed"] == 7


def test_text_states_how_utilisation_is_counted() -> None:
    text = str(timed_report())
    assert "utilisation             0.7500 = useful bytes / (cycles x 64)" in text
    assert "lookups a second        20,000,000 at 100 MHz (stated)" in text
    assert "stall memory            71 cycles: reads are in flight, nothing else to ask for" in text


def test_fixed_and_per_lookup_cost_are_told_apart() -> None:
    report = a_timed_report()
    assert (report.fixed_cycles, report.cycles_per_lookup) == (200, 4.9)
    text = str(report)
    assert "fixed cost              200 cycles: 150 to the first row, 50 after the last" in text
    assert "cost of a lookup        4.900 cycles, without the fixed cost" in text
    assert "time                    100.00 us at 100 MHz (stated)" in text


def test_limits_are_shares_of_the_cycles() -> None:
    report = a_timed_report(a_profile(execute_cycles=2_000))
    limits = {"port": 9_000, "memory": 9_000, "traversal": 2_001, "execute": 2_000}
    assert report.limits == limits
    assert report.limit_shares == {name: cycles / 10_000 for name, cycles in limits.items()}
    line = "limit memory            9,000 cycles, 90.0% of all: the memory model, if it had all"
    assert line in str(report)


def test_index_port_s_beats_are_none_of_the_row_port_s_limit() -> None:
    parameters = AcceleratorConfig(index_port_bits=128).to_dict()
    assert a_timed_report(parameters=parameters).limits["port"] == 8_000


def test_report_suggests_depths() -> None:
    report = a_timed_report()
    assert [depth.suggested for depth in report.depths] == [32, 512, 128, 41]
    line = "depth outstanding       outstanding_reads 64: try 128; full at times, which cost 6.0%"
    assert line in str(report)
    assert "depth row beats         reorder_buffer_beats 512: keep; never held" in str(report)


def test_backend_that_is_not_simulated_has_no_profile() -> None:
    report = untimed_report()
    assert report.profile is report.fixed_cycles is report.cycles_per_lookup is None
    assert (report.limits, report.depths) == ({}, ())
    assert profiler_of([None], AcceleratorConfig()) is None


def test_report_survives_json() -> None:
    for report in (a_timed_report(), untimed_report()):
        text = report.to_json()
        again = Report.from_dict(json.loads(text))
        assert again == report
        assert again.to_json() == text
        assert str(again) == str(report)


def test_json_that_is_no_report_is_refused() -> None:
    def refusal(**changes: Any) -> str:
        with pytest.raises(ValueError, match=r"report must be") as error:
            Report.from_dict(a_timed_report().to_dict() | changes)
        return str(error.value)

    assert refusal(kind=None) == (
        "kind of a report must be 'ember_hw run', not None; `ember-hw run --json` prints one"
    )
    assert refusal(schema=0) == "schema of a report must be 1, not 0; run the program again"
    values = a_timed_report().to_dict()
    del values["bundles"]
    with pytest.raises(ValueError, match=r"^a report must have 'bundles', which this one lacks$"):
        Report.from_dict(values)
