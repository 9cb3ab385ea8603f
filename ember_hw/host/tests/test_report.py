from __future__ import annotations

import json
from typing import Any

from ember_hw.config import AcceleratorConfig
from ember_hw.host.report import Report, config_facts, counted
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
