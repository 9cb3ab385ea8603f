"""Shrinking: what is left is what the failure needs."""

from __future__ import annotations

from ember_hw.bench.fuzzing.case import Case
from ember_hw.bench.fuzzing.configs import CONFIGS
from ember_hw.bench.fuzzing.generate import legal_case
from ember_hw.bench.fuzzing.shrink import shrink
from ember_hw.sim.options import IdealMemory

CONFIG = CONFIGS["tiny"]


def has_pair(case: Case) -> bool:
    return any(case.microcode.get(f"unit{k}", "pair") for k in range(CONFIG.traversal_units))


def test_only_what_fails_is_left() -> None:
    case = next(c for seed in range(50) if has_pair(c := legal_case(CONFIG, seed)))
    small = shrink(case, has_pair)
    assert has_pair(small)
    _ = small.whole  # a value that is not defined would raise
    assert len(small.requests) == 1
    assert small.regions == ()
    assert isinstance(small.environment.memory, IdealMemory)
    used = [path for path, fields in small.microcode.records.items() if any(fields.values())]
    assert len(used) <= 4  # the header, the units down to that in pair mode, its stream


def test_tries_are_limited() -> None:
    tried: list[Case] = []

    def fails(case: Case) -> bool:
        tried.append(case)
        return False

    case = legal_case(CONFIG, 3)
    assert shrink(case, fails, most_tries=5) == case
    assert len(tried) == 5
