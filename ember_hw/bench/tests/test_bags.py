from __future__ import annotations

import numpy as np
import pytest

from ember_hw.bench.bags import MIXED, Bags, port_limit


@pytest.mark.parametrize(
    ("row_bytes", "index_bytes", "weight_bytes", "bag", "limit"),
    [
        (64, 4, 0, 80, 64 / (64 + 4 + 4 / 80)),
        (64, 8, 4, 1, 64 / 84),
        (512, 4, 0, 1, 512 / 520),
        (40, 4, 0, 1, 40 / 72),  # a row fills whole beats
    ],
)
def test_limit_counts_every_byte_that_the_port_must_carry(
    row_bytes: int, index_bytes: int, weight_bytes: int, bag: float, limit: float
) -> None:
    computed = port_limit(
        row_bytes=row_bytes,
        bus_bytes=64,
        index_bytes=index_bytes,
        weight_bytes=weight_bytes,
        offset_bytes=index_bytes,
        bag=bag,
    )
    assert computed == pytest.approx(limit)


@pytest.mark.parametrize(
    ("row_bytes", "index_bytes", "limit"),
    [(64, 8, 16 / 20), (64, 4, 1.0), (512, 8, 1.0), (40, 4, 40 / 64)],
)
def test_indices_with_a_port_of_their_own_leave_the_other_to_rows(
    row_bytes: int, index_bytes: int, limit: float
) -> None:
    computed = port_limit(
        row_bytes=row_bytes,
        bus_bytes=64,
        index_bytes=index_bytes,
        weight_bytes=4,
        offset_bytes=8,
        bag=1,
        index_port_bytes=16,
    )
    assert computed == pytest.approx(limit)


def test_mixed_bags_are_a_quarter_empty() -> None:
    workload = Bags(row_bytes=64, bag=MIXED, lookups=6_000).workload(3)
    lengths = np.diff(workload.arrays["off"])
    assert np.mean(lengths == 0) == pytest.approx(0.25, abs=0.001)
    assert lengths.max() == 16
    assert workload.params["bag"] == pytest.approx(lengths.mean())
    assert workload.params["lookups"] == len(workload.arrays["idx"]) == lengths.sum()


def test_index_bytes_are_those_of_every_element() -> None:
    bags = Bags(row_bytes=256, bag=8, index_bytes=8, has_weights=True, lookups=80)
    workload = bags.workload(0)
    arrays = workload.arrays
    assert workload.index_bytes == arrays["idx"].nbytes + arrays["weight"].nbytes + 11 * 8
    assert arrays["idx"].dtype == arrays["off"].dtype == np.int64
    assert workload.rows is not None
    assert workload.rows.shape == (80, 256)
    assert workload.name == "256 B/bag 8/int64, weights"


def test_seed_makes_the_arrays() -> None:
    def indices(seed: int) -> list[int]:
        return Bags(row_bytes=64, bag=4).workload(seed).arrays["idx"].tolist()

    assert indices(1) == indices(1) != indices(2)
