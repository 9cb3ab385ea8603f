"""Draws what each unit of a cluster runs at the same time, all in one memory."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from ember_hw.bench.fuzzing.case import Case
from ember_hw.bench.fuzzing.faults import random_case
from ember_hw.config import LINE_BYTES, AcceleratorConfig

#: Programs of one unit that are drawn for a place, at most.
_TRIES = 1000
#: What all units meet at the same time: only the first that is drawn may want it.
_OF_THE_MEMORY = ("slave error", "memory stops")


def random_draw(config: AcceleratorConfig, seed: int, *, units: int = 1) -> tuple[Case, ...]:
    """Return a case for each unit, of one memory; none names what another one holds.

    Parameters
    ----------
    config : AcceleratorConfig
        Of each unit.
    seed : int
    units : int
        One runs `random_case` of the same seed. Several are never reset together, so that each
        must come to rest by itself.

    Examples
    --------
    >>> from ember_hw.bench.fuzzing.configs import CONFIGS
    >>> [case.kind for case in random_draw(CONFIGS["tiny"], 5, units=2)]
    ['stream bounds', 'more rows']
    """
    if units == 1:
        return (random_case(config, seed),)
    rng = random.Random(f"{config.name} {seed} draw")
    places = rng.sample(range(units), units)
    cases: dict[int, Case] = {}
    for place in places:
        cases[place] = _another(config, rng, list(cases.values()))
    return tuple(cases[unit] for unit in range(units))


def _another(config: AcceleratorConfig, rng: random.Random, others: Sequence[Case]) -> Case:
    for _ in range(_TRIES):
        case = random_case(config, rng.getrandbits(40))
        if case.kind == "reset" or (others and case.kind in _OF_THE_MEMORY):
            continue
        if all(_are_apart(case, other) and _are_apart(other, case) for other in others):
            if others:
                memory = others[0].environment.memory
                case = case.within(replace(case.environment, memory=memory))
            return case
    raise AssertionError(f"one of {_TRIES} programs must fit beside {len(others)} others")


def _are_apart(case: Case, other: Case) -> bool:
    """Tell whether a case names nothing of another's memory, and does not make it err."""
    named = [(error.base, error.base + error.size_bytes) for error in case.errors]
    named += [(base, base + len(content)) for base, content in case.regions]
    named += [
        (begin, begin + -(-size // LINE_BYTES) * LINE_BYTES) for begin, size in case.named_spans()
    ]
    held = [(base, base + len(content)) for base, content in other.regions]
    return all(end <= low or high <= begin for begin, end in named for low, high in held)
