from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.typing import NDArray

from ember_hw.host.reuse import ReuseCurve, reuse_curve, stack_distances


def slow_distances(addresses: NDArray[np.uint64], sizes: NDArray[np.int64]) -> list[int]:
    """A stack of blocks, the latest on top."""
    stack: list[int] = []
    size_of: dict[int, int] = {}
    found: list[int] = []
    for address, size in zip(addresses.tolist(), sizes.tolist(), strict=True):
        distance = -1
        if address in stack:
            place = stack.index(address)
            distance = sum(size_of[block] for block in stack[: place + 1])
            stack.pop(place)
        stack.insert(0, address)
        size_of[address] = size
        found.append(distance)
    return found


@pytest.mark.parametrize("blocks", [1, 2, 17, 300])
@pytest.mark.parametrize("reads", [0, 1, 2, 255, 256, 257])
def test_distances_are_those_of_a_stack(blocks: int, reads: int) -> None:
    rng = np.random.default_rng([blocks, reads])
    addresses = rng.integers(0, blocks, reads).astype(np.uint64)
    sizes = 64 * (1 + (addresses % 4).astype(np.int64))
    assert stack_distances(addresses, sizes).tolist() == slow_distances(addresses, sizes)


def test_curve_is_that_of_caches_that_were_simulated() -> None:
    rng = np.random.default_rng(3)
    addresses = (rng.zipf(1.3, 400) % 100).astype(np.uint64)
    sizes = np.full(400, 256)
    curve = reuse_curve(addresses, sizes)
    distances = slow_distances(addresses, sizes)
    for cache, hits in zip(curve.cache_bytes, curve.hit_bytes, strict=True):
        assert hits == 256 * sum(0 <= distance <= cache for distance in distances)
    assert curve.hit_bytes[-1] + curve.distinct_bytes == curve.read_bytes == 400 * 256
    assert curve.hit_shares[-1] == curve.hit_bytes[-1] / curve.read_bytes


def test_trace_without_a_read_has_no_hits() -> None:
    curve = reuse_curve(np.zeros(0, np.uint64), np.zeros(0, np.int64))
    assert curve == ReuseCurve(0, 0, 0, (1024,), (0,))
    assert curve.hit_shares == (0.0,)


def test_curve_survives_json() -> None:
    curve = reuse_curve(np.array([1, 2, 1], np.uint64), np.full(3, 4096))
    assert ReuseCurve.from_dict(json.loads(json.dumps(curve.to_dict()))) == curve
