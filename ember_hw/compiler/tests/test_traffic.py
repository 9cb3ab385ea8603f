"""Tokens and data entries of every kernel at every level, against closed formulas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import pytest

from ember_hw.compiler.interpreters import interpret
from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.pipeline import OPT_LEVELS, run_pipeline
from ember_hw.compiler.tests.kernels import (
    BB_PV,
    BB_QK,
    DISTMULT,
    EB_MAX,
    EB_MEAN,
    EB_MULTI,
    EB_SUM,
    FUSEDMM,
    SPMM,
    TRANSE,
    Kernel,
)

Cell = tuple[int | Fraction, int | Fraction]


@dataclass(frozen=True)
class Sizes:
    """Of a run: `D` elements and `n` vectors a row, `L` lookups a bag, `B` bags a table, ..

    Attributes
    ----------
    D, n : int
        Elements of a row, vectors of a row.
    L : Fraction
        Lookups of a bag or node on average.
    B, BS, NS : int
        Bags of a table, rows of a block, blocks of a query block.
    """

    D: int
    n: int
    L: Fraction = Fraction(1)
    B: int = 1
    BS: int = 1
    NS: int = 1


def triples(s: Sizes) -> list[Cell]:
    return [(s.D + 1, 3 * s.D + 1), (s.n + 1, 3 * s.n + 1), (1, 1 + 3 * s.n), (1, 3 * s.n)]


def blocks(s: Sizes, first: list[Cell]) -> list[Cell]:
    counters = 1 + Fraction(1, s.BS) + Fraction(1, s.NS * s.BS)
    return [*first, (1, 2 + s.n), (counters, s.n)]


#: (tokens, data entries) for each lookup, edge, triple or gathered row at levels 0 to 3.
FORMULAS: dict[Kernel, Callable[[Sizes], list[Cell]]] = {
    EB_SUM: lambda s: [
        (s.D, 3 * s.D),
        (s.n, 3 * s.n),
        (1, 1 + s.n),
        (1 + 1 / s.L, s.n),
    ],
    EB_MEAN: lambda s: [
        (s.D + 1 / s.L, 3 * s.D + 2 / s.L),
        (s.n + 1 / s.L, 3 * s.n + 2 / s.L),
        (1 + 1 / s.L, 1 + s.n + 2 / s.L),
        (1 + 1 / s.L, s.n + 1 / s.L),
    ],
    EB_MAX: lambda s: [
        (s.D + 1 / s.L, 3 * s.D + 3 / s.L),
        (s.n + 1 / s.L, 3 * s.n + 3 / s.L),
        (1 + 1 / s.L, 1 + s.n + 3 / s.L),
        (1 + 1 / s.L, s.n + 2 / s.L),
    ],
    SPMM: lambda s: [
        (s.D, 4 * s.D),
        (s.n, 4 * s.n),
        (1, 2 + s.n),
        (1 + 1 / s.L, 1 + s.n),
    ],
    EB_MULTI: lambda s: [
        (s.D, 4 * s.D),
        (s.n, 4 * s.n),
        (1, 2 + s.n),
        (1 + 1 / s.L + 1 / (s.L * s.B), 1 + s.n),
    ],
    FUSEDMM: lambda s: [
        (2 * s.D + 1, 5 * s.D),
        (2 * s.n + 1, 5 * s.n),
        (1 + 1 / s.L, 1 + s.n + s.n / s.L),
        (1 + 1 / s.L, s.n + s.n / s.L),
    ],
    TRANSE: triples,
    DISTMULT: triples,
    BB_QK: lambda s: blocks(
        s,
        [
            (s.BS * (s.D + 1), s.BS * (2 * s.D + 2)),
            (s.BS * (s.n + 1), s.BS * (2 * s.n + 2)),
        ],
    ),
    BB_PV: lambda s: blocks(s, [(s.BS * s.D, 4 * s.BS * s.D), (s.BS * s.n, 4 * s.BS * s.n)]),
}


def lookups_and_sizes(kernel: Kernel, columns: int, lanes: int) -> tuple[int, Sizes]:
    arguments = kernel.arguments(columns, 0)
    vectors = -(-columns // lanes)
    if "BS" in arguments:
        sizes = Sizes(columns, vectors, BS=arguments["BS"], NS=arguments["NS"])
        return arguments["NB"] * arguments["NS"] * arguments["BS"], sizes
    if "hd" in arguments:
        return len(arguments["hd"]), Sizes(columns, vectors)
    lookups, bags = len(arguments["idx"]), len(arguments["off"]) - 1
    return lookups, Sizes(columns, vectors, Fraction(lookups, bags), arguments.get("B", 1))


@pytest.mark.parametrize("opt_level", [0, 1])
def test_traffic_of_a_nest_split_in_two(opt_level: int) -> None:
    module = parse_module(FUSEDMM.text)
    run_pipeline(module, opt_level, 4, hardware=True)
    assert str(module).count("dlc.compute_loop") == 2
    arguments = FUSEDMM.arguments(7, 0)
    lanes = 4 if opt_level else 1
    counts = interpret(module, "kernel", list(arguments.values()), vector_length=lanes).counts
    lookups, sizes = lookups_and_sizes(FUSEDMM, 7, 4)
    vectors = sizes.n if opt_level else sizes.D
    # A token more than in one nest: it reads the scratch vector.
    tokens, entries = 2 * vectors + 2, 5 * vectors
    assert (counts.tokens, counts.data_entries) == (lookups * tokens, lookups * entries)


@pytest.mark.parametrize("opt_level", OPT_LEVELS)
@pytest.mark.parametrize("kernel", FORMULAS, ids=str)
def test_traffic_is_that_of_the_formula(kernel: Kernel, opt_level: int) -> None:
    module = parse_module(kernel.text)
    run_pipeline(module, opt_level, 4)
    for columns in (1, 4, 7):
        arguments = list(kernel.arguments(columns, 0).values())
        lanes = 4 if opt_level else 1
        counts = interpret(module, "kernel", arguments, vector_length=lanes).counts
        lookups, sizes = lookups_and_sizes(kernel, columns, 4)
        tokens, entries = FORMULAS[kernel](sizes)[opt_level]
        assert (counts.tokens, counts.data_entries) == (lookups * tokens, lookups * entries)
