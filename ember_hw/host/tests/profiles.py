"""A profile and a report of a run, for tests that need none in particular."""

from __future__ import annotations

from typing import Any

from ember_hw.config import AcceleratorConfig
from ember_hw.host.profile import Occupancy, Profile
from ember_hw.host.report import NestReport, Report, config_facts
from ember_hw.host.reuse import ReuseCurve

CONFIG = AcceleratorConfig()


def a_queue(entries: int, most: int, cycles: int = 10_000) -> Occupancy:
    """A queue that was as often at one level as at another, from 0 to the most."""
    each, rest = divmod(cycles, most + 1)
    return Occupancy(entries, (each + rest, *[each] * most))


def a_profile(**changes: Any) -> Profile:
    values: dict[str, Any] = {
        "fill_cycles": 150,
        "drain_cycles": 50,
        "bound_cycles": 9_000,
        "execute_cycles": 0,
        "occupancy": {
            "bundles": a_queue(CONFIG.bundle_entries, 30),
            "row_beats": a_queue(CONFIG.reorder_buffer_beats, 256),
            "outstanding": a_queue(CONFIG.outstanding_reads, 64),
            "tokens": a_queue(CONFIG.token_entries, 40),
        },
        "reuse": ReuseCurve(2_500, 576_000, 64_000, (1024, 1448, 65_536), (0, 1_024, 512_000)),
    }
    return Profile(**(values | changes))


def a_timed_report(profile: Profile | None = None, **changes: Any) -> Report:
    """2,000 lookups in 10,000 cycles."""
    profile = a_profile() if profile is None else profile
    values: dict[str, Any] = {
        "program": "bag",
        "backend": "verilator",
        "memory": "ideal (latency 100 cycles)",
        "sink": "ideal",
        "engine": "c",
        "lookups": 2_000,
        "bundles": 2_001,
        "row_beats": 8_000,
        "rows": 2_000,
        "useful_bytes": 512_000,
        "cycles": 10_000,
        "index_beats": 1_000,
        "stalls": {
            "execute": 0,
            "outstanding": 600,
            "reorder": 0,
            "request": 0,
            "memory": 200,
            "front": 200,
        },
        "high_water": {name: queue.most for name, queue in profile.occupancy.items()},
        "nests": (NestReport("bag", 10_000, 8_000, 1_000, 2_001, 2_000, 512_000),),
        "seed": 7,
        "versions": {"torch": "2.13"},
        "wall_seconds": 0.25,
        "profiler": lambda: profile,
        **config_facts(CONFIG),
    }
    return Report(**(values | changes))
