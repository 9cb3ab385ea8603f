from __future__ import annotations

import numpy as np
import pytest

from ember_hw.config import AcceleratorConfig
from ember_hw.host.execution import unpack_bundles


@pytest.mark.parametrize("preset", ["default", "tiny"])
@pytest.mark.parametrize("traversal_units", [1, 2, 3, 4])
def test_bundles_are_unpacked_as_they_were_packed(preset: str, traversal_units: int) -> None:
    config = AcceleratorConfig.preset(preset).with_changes(
        traversal_units=traversal_units, bundle_scalars=5, exports=5
    )
    random = np.random.default_rng(traversal_units)
    events = random.integers(0, 1 << config.events, 50, np.uint32)
    scalars = random.integers(0, 1 << 32, (50, 5), np.uint32)
    packed = np.zeros((50, config.bundle_bytes), np.uint8)
    for i in range(50):
        word = int(events[i])
        for s in range(5):
            word |= int(scalars[i, s]) << (config.events + 32 * s)
        packed[i] = np.frombuffer(word.to_bytes(config.bundle_bytes, "little"), np.uint8)
    found_events, found_scalars = unpack_bundles(packed, config)
    assert np.array_equal(found_events, events)
    assert np.array_equal(found_scalars, scalars)


def test_no_bundle_is_unpacked_to_none() -> None:
    config = AcceleratorConfig.preset("tiny")
    events, scalars = unpack_bundles(np.zeros((0, config.bundle_bytes), np.uint8), config)
    assert events.shape == (0,)
    assert scalars.shape == (0, config.bundle_scalars)
