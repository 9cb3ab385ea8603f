from __future__ import annotations

from typing import Any

import pytest

from ember_hw.config import AcceleratorConfig
from ember_hw.host.queue_depths import Depth, suggest_depths
from ember_hw.host.tests.profiles import a_profile, a_queue

CONFIG = AcceleratorConfig()
STALLS = dict.fromkeys(("execute", "outstanding", "reorder", "request", "memory", "front"), 0)
CYCLES = 10_000


def depth_of(queue: str, most: int, config: AcceleratorConfig = CONFIG, **changes: Any) -> Depth:
    """The suggestion for one queue that held so many entries at most; the others were empty."""
    parameters = config.to_dict()
    stalls = STALLS | changes.pop("stalls", {})
    rooms = {
        "bundles": config.bundle_entries,
        "row_beats": config.reorder_buffer_beats,
        "outstanding": config.outstanding_reads,
        "tokens": config.token_entries,
    }
    occupancy = {name: a_queue(room, most if name == queue else 0) for name, room in rooms.items()}
    profile = a_profile(occupancy=occupancy, **{"bound_cycles": 5_000, **changes})
    depths = {depth.queue: depth for depth in suggest_depths(parameters, profile, CYCLES, stalls)}
    return depths[queue]


@pytest.mark.parametrize(
    ("queue", "most", "suggested"),
    [
        ("bundles", 0, 16),
        ("bundles", 15, 16),
        ("bundles", 16, 32),
        ("bundles", 255, 256),
        ("row_beats", 40, 128),  # two of the longest bursts at least
        ("outstanding", 0, 2),
        ("outstanding", 20, 21),
        ("tokens", 3, 16),
        ("tokens", 100, 101),
    ],
)
def test_queue_that_never_filled_up_gets_the_least_legal_depth(
    queue: str, most: int, suggested: int
) -> None:
    depth = depth_of(queue, most)
    assert (depth.suggested, depth.reason) == (suggested, f"never held more than {most}")


def test_full_queue_that_cost_cycles_is_doubled() -> None:
    depth = depth_of("outstanding", 64, stalls={"outstanding": 600})
    reason = "full at times, which cost 6.0% of the cycles"
    assert depth == Depth("outstanding", "outstanding_reads", 64, 128, reason)


def test_full_queue_that_cost_little_is_kept() -> None:
    depth = depth_of("outstanding", 64, stalls={"outstanding": 99})
    assert (depth.suggested, depth.reason) == (64, "full at times, which cost 1.0% of the cycles")


@pytest.mark.parametrize(
    ("changes", "limit"),
    [({"bound_cycles": 9_500}, "memory"), ({"execute_cycles": 9_900}, "execute side")],
)
def test_full_queue_is_kept_where_something_else_is_the_limit(
    changes: dict[str, Any], limit: str
) -> None:
    depth = depth_of("outstanding", 64, stalls={"outstanding": 600}, **changes)
    assert (depth.suggested, depth.reason) == (64, f"full at times, but the {limit} is the limit")


def test_depth_that_no_config_has_is_not_suggested() -> None:
    config = CONFIG.with_changes(outstanding_reads=512)
    depth = depth_of("outstanding", 512, config, stalls={"outstanding": 600})
    assert (depth.entries, depth.suggested) == (512, 512)


def test_trace_without_a_bound_still_gets_depths() -> None:
    assert depth_of("tokens", 3, bound_cycles=None).suggested == 16
