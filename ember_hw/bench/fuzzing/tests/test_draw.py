"""Draws for clusters: one memory for all, and nothing that another one holds."""

from __future__ import annotations

import re
from collections import Counter as Tally

import pytest

from ember_hw.bench.fuzzing import draw
from ember_hw.bench.fuzzing.configs import CLUSTERS, CONFIGS
from ember_hw.bench.fuzzing.draw import random_draw
from ember_hw.bench.fuzzing.faults import random_case
from ember_hw.config import LINE_BYTES

DRAWS = 30


@pytest.mark.parametrize("name", CLUSTERS)
def test_programs_of_a_draw_share_a_memory_and_name_nothing_of_another(name: str) -> None:
    config, units = CLUSTERS[name]
    kinds: Tally[str] = Tally()
    for seed in range(DRAWS):
        cases = random_draw(config, seed, units=units)
        assert len(cases) == units
        assert len({repr(case.environment.memory) for case in cases}) == 1
        kinds += Tally(case.kind for case in cases)
        for case in cases:
            others = [other for other in cases if other is not case]
            held = [
                (base, base + len(content)) for other in others for base, content in other.regions
            ]
            for begin, size in (
                *case.named_spans(),
                *((e.base, e.size_bytes) for e in case.errors),
            ):
                end = begin + -(-size // LINE_BYTES) * LINE_BYTES
                assert all(end <= low or high <= begin for low, high in held)
    assert kinds["legal"] > sum(kinds.values()) / 2
    assert "reset" not in kinds
    assert len(kinds) > 5


def test_a_seed_gives_one_draw_and_one_unit_its_case() -> None:
    config, units = CLUSTERS["pair"]
    texts = [[c.describe() for c in random_draw(config, 3, units=units)] for _ in range(2)]
    assert texts[0] == texts[1]
    assert texts[0] != [c.describe() for c in random_draw(config, 4, units=units)]
    (alone,) = random_draw(CONFIGS["tiny"], 7)
    assert alone.describe() == random_case(CONFIGS["tiny"], 7).describe()


def test_programs_that_never_fit_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    config, units = CLUSTERS["pair"]
    (case,) = random_draw(config, 1)
    assert case.regions
    monkeypatch.setattr(draw, "random_case", lambda *_: case)
    text = "one of 1000 programs must fit beside 1 others"
    with pytest.raises(AssertionError, match=f"^{re.escape(text)}$"):
        random_draw(config, 1, units=units)
