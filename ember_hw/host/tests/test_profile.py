from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from ember_hw.config import AcceleratorConfig
from ember_hw.host.profile import QUEUES, LaunchSample, Occupancy, Profile, profile_of
from ember_hw.host.tests.profiles import a_profile

PARAMETERS = AcceleratorConfig().to_dict()
SAMPLE = LaunchSample(
    fill_cycles=10,
    drain_cycles=2,
    execute_cycles=7,
    levels={name: np.array([3, 2, 0, 1, 0], np.uint64) for name in QUEUES},
    trace=lambda: (np.array([0, 64, 0], np.uint64), np.full(3, 64)),
    bound=lambda: 20,
)


def test_queue_tells_how_full_it_was() -> None:
    queue = Occupancy(entries=4, cycles=(50, 0, 30, 10, 10))
    assert (queue.most, queue.mean, queue.full_share) == (4, 1.3, 0.1)
    assert [queue.level_at(share) for share in (0.5, 0.8, 0.81, 0.9, 1.0)] == [0, 2, 3, 3, 4]
    assert Occupancy(entries=8, cycles=(1, 2)).full_share == 0


def test_profile_of_several_launches_sums_them() -> None:
    other = replace(SAMPLE, levels={name: np.array([1], np.uint64) for name in QUEUES})
    profile = profile_of([SAMPLE, other], PARAMETERS)
    assert (profile.fill_cycles, profile.drain_cycles, profile.execute_cycles) == (20, 4, 14)
    assert profile.bound_cycles == 40
    assert profile.occupancy["tokens"] == Occupancy(128, (4, 2, 0, 1))
    assert profile.reuse is not None
    assert (profile.reuse.read_bytes, profile.reuse.distinct_bytes) == (384, 128)


def test_trace_that_was_not_kept_has_no_bound_and_no_reuse() -> None:
    lost = replace(SAMPLE, trace=None, bound=lambda: 1 // 0)
    profile = profile_of([SAMPLE, lost], PARAMETERS)
    assert profile.bound_cycles is profile.reuse is None
    assert profile.fill_cycles == 20


def test_queue_that_was_never_sampled_is_empty() -> None:
    idle = replace(SAMPLE, levels={name: np.zeros(0, np.uint64) for name in QUEUES})
    assert profile_of([idle], PARAMETERS).occupancy["bundles"] == Occupancy(256, ())


def test_profile_survives_json() -> None:
    for profile in (a_profile(), a_profile(bound_cycles=None, reuse=None)):
        assert Profile.from_dict(json.loads(json.dumps(profile.to_dict()))) == profile
