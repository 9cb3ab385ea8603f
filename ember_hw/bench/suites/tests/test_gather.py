from __future__ import annotations

import pytest

from ember_hw.bench.suites.gather import limit_of, settings


@pytest.mark.parametrize(
    ("outstanding", "beats", "latency", "has_bar"),
    [(128, 1, 100, True), (112, 1, 100, True), (111, 1, 100, False), (32, 8, 200, True)],
)
def test_bar_needs_reads_in_flight_for_the_latency_and_12_cycles(
    outstanding: int, beats: int, latency: int, has_bar: bool
) -> None:
    limit, name, found = limit_of(
        port=0.9,
        bundles=1.0,
        beats=beats,
        row_share=1.0,
        outstanding=outstanding,
        latency_cycles=latency,
    )
    assert found is has_bar
    assert (limit, name) == (0.9, "port") or not has_bar


def test_too_few_reads_in_flight_are_a_limit_of_their_own() -> None:
    limit, name, _ = limit_of(
        port=0.9, bundles=1.0, beats=2, row_share=0.75, outstanding=14, latency_cycles=100
    )
    assert name == "reads in flight"
    assert limit == pytest.approx(14 * 2 * 0.75 / 112)


def test_sink_that_stalls_is_a_limit_where_it_is_the_least() -> None:
    limits = [
        limit_of(
            port=port,
            bundles=1.0,
            beats=4,
            row_share=1.0,
            outstanding=64,
            latency_cycles=100,
            sink_share=0.9,
        )
        for port in (0.8, 0.95)
    ]
    assert limits == [(0.8, "port", True), (0.9, "sink", True)]


def test_more_bundles_than_beats_are_a_limit() -> None:
    limit = limit_of(
        port=1.0, bundles=0.96, beats=1, row_share=1.0, outstanding=128, latency_cycles=100
    )
    assert limit == (0.96, "bundles", True)


def test_points_are_every_combination_and_have_names_of_their_own() -> None:
    all_settings = list(settings(quick=False, seed=0))
    names = [setting.name(*point) for setting in all_settings for point in setting.points]
    assert len(set(names)) == len(names)
    ideal = [name for name in names if "/latency 100/" in name and name.startswith("512-bit")]
    # rows x bags x index sizes x weights x reads in flight
    assert len(ideal) == 4 * 6 * 2 * 2 * 3
    assert {setting.config.data_width_bits for setting in all_settings} == {128, 512}


def test_quick_points_need_one_model() -> None:
    (setting,) = settings(quick=True, seed=0)
    assert setting.config.data_width_bits == 512
    assert len(setting.points) <= 24
