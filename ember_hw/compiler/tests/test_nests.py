"""Random nests mean the same at every level, as trees of units and as chains; few are refused."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from ember_hw.bench.fuzzing.nests import run_nests
from ember_hw.bench.fuzzing.random_nests import WRITTEN, nest_arguments, random_nest
from ember_hw.compiler.interpreters import Schedule, interpret
from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.pipeline import OPT_LEVELS, run_pipeline
from ember_hw.errors import CompileError

#: Nests of one test; a test runs them at one level.
NESTS = range(24)
SCHEDULES = (Schedule.AHEAD, Schedule.LOCKSTEP)


def outputs(
    module: ModuleOp, seed: int, schedule: Schedule = Schedule.AHEAD
) -> NDArray[np.float32]:
    """Return what a nest writes."""
    arguments = nest_arguments(seed, columns=(1, 4, 6)[seed % 3])
    interpret(module, "kernel", list(arguments.values()), schedule=schedule)
    return np.concatenate([arguments[name].ravel() for name in WRITTEN])


@cache
def expected(seed: int) -> NDArray[np.float32]:
    """Return what a nest writes at scf."""
    return outputs(parse_module(random_nest(seed)), seed)


@pytest.mark.parametrize("opt_level", OPT_LEVELS)
def test_random_nests_agree_with_scf(opt_level: int) -> None:
    refused: list[str] = []
    for seed in NESTS:
        module = parse_module(random_nest(seed))
        try:
            run_pipeline(module, opt_level, 4, hardware=seed % 2 == 1)
        except CompileError as error:
            refused.append(str(error))
            continue
        for schedule in SCHEDULES:
            # NaN is NaN, whatever its bits.
            np.testing.assert_array_equal(
                outputs(module, seed, schedule), expected(seed), str(seed)
            )
    assert len(refused) <= len(NESTS) // 5
    assert all(text.startswith("top-level loop must be one whose bounds") for text in refused)


@pytest.mark.parametrize("first", range(0, 500, 100))
def test_random_nests_run_as_microcode_or_are_refused_with_a_reason(first: int) -> None:
    account = run_nests(range(first, first + 100))
    assert account.failures == []
    # Of all 500 more than four of five; a hundred may have some less.
    assert account.compiled >= 75
    assert account.compiled + account.refused.total() == 100
    assert all(reason.startswith(REASONS) for reason in account.refused)


#: Why nests are refused: nothing to offload, a quotient that addresses memory, too small a config.
REASONS = (
    "must be one whose bounds, step and at least one load the access unit can compute",
    "must be add, sub or mul",
    "limit ",
)
