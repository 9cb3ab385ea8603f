"""Every kernel and random nests, at every level, on both engines, wherever the queues are cut."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from ember_hw.bench.fuzzing.random_nests import nest_arguments, random_nest
from ember_hw.compiler.interpreters import interpret
from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.pipeline import OPT_LEVELS
from ember_hw.compiler.tests.kernels import KERNELS, Kernel
from ember_hw.errors import AssemblyError, CompileError
from ember_hw.host.execution.tests.runs import ENGINES, Compiled, compiled, run
from ember_hw.host.reference import bit_equal

#: Random nests that a test runs.
NESTS = range(12)


@cache
def program_of(text: str, opt_level: int) -> Compiled:
    return compiled(text, opt_level)


def written(arguments: dict[str, Any]) -> list[Any]:
    return [arguments[name] for name in ("out", "sc") if name in arguments]


@cache
def expected(text: str, kernel: Kernel | None, seed: int, columns: int) -> list[Any]:
    arguments = kernel.arguments(columns, seed) if kernel else nest_arguments(seed, columns)
    interpret(parse_module(text), "kernel", list(arguments.values()))
    return written(arguments)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("opt_level", OPT_LEVELS)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_kernels_are_those_of_scf_bit_for_bit(kernel: Kernel, opt_level: int, engine: str) -> None:
    program = program_of(kernel.text, opt_level)
    for seed, columns in enumerate((1, 7, 8)):
        arguments = kernel.arguments(columns, seed)
        run(program, arguments, engine, seed, pieces=1 + 3 * seed)
        for found, wanted in zip(
            written(arguments), expected(kernel.text, kernel, seed, columns), strict=True
        ):
            assert bit_equal(found, wanted)


@pytest.mark.parametrize("opt_level", OPT_LEVELS)
def test_random_nests_are_those_of_scf_bit_for_bit(opt_level: int) -> None:
    refused = 0
    for seed in NESTS:
        text = random_nest(seed)
        try:
            program = program_of(text, opt_level)
        except (CompileError, AssemblyError):
            refused += 1
            continue
        for engine in ENGINES:
            arguments = nest_arguments(seed, 6)
            run(program, arguments, engine, seed)
            for found, wanted in zip(
                written(arguments), expected(text, None, seed, 6), strict=True
            ):
                assert bit_equal(found, wanted), (seed, engine)
    assert refused <= len(NESTS) // 3


@pytest.mark.parametrize("kernel", KERNELS[:2] + KERNELS[5:6], ids=str)
def test_engines_count_the_same(kernel: Kernel) -> None:
    program = program_of(kernel.text, 3)
    counts: list[list[Any]] = []
    for engine in ENGINES:
        sides = run(program, kernel.arguments(7, 0), engine, 0)
        counts.append([(s.bundles, s.rows, s.row_beats, s.calls) for s in sides])
        assert [side.engine for side in sides] == [engine] * len(sides)
    assert counts[0] == counts[1]
    assert all(bundles and rows and sum(calls.values()) for bundles, rows, _, calls in counts[0])


@pytest.mark.parametrize("engine", ENGINES)
def test_long_bags_are_summed_in_order(engine: str) -> None:
    """Thousands of lookups in a bag, of magnitudes at which order shows."""
    kernel = next(kernel for kernel in KERNELS if kernel.name == "eb_sum")
    random = np.random.default_rng(0)
    arguments: dict[str, Any] = {
        "off": np.array([0, 9000, 9001, 10000]),
        "idx": random.integers(0, 50, 10000),
        "psw": np.zeros(10000, np.float32),
        "tab": (random.standard_normal((50, 5)) * 10.0 ** random.integers(-6, 6, (50, 1))).astype(
            np.float32
        ),
        "out": np.zeros((3, 5), np.float32),
        "B": 3,
    }
    wanted = arguments["out"].copy()
    for bag in range(3):
        for lookup in range(arguments["off"][bag], arguments["off"][bag + 1]):
            wanted[bag] += arguments["tab"][arguments["idx"][lookup]]
    run(program_of(kernel.text, 3), arguments, engine, 0, pieces=3)
    assert bit_equal(arguments["out"], wanted)
