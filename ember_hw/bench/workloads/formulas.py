r"""Control tokens and data entries a lookup, in closed form, of every kernel and opt level.

With D elements and :math:`n = \lceil D / V \rceil` vectors a row, L lookups a group (bag, node,
block of queries) in the mean, B groups a table. A scalar or a vector is one entry, a row n.

Levels 0 and 1 of message passing and attention are two programs, one behind the other, and both
count. At level 3 a loop's counter replaces an operand only where it saves entries that the execute
side takes alone; the row's number of SpMM travels beside its weight and stays.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from ember_hw.bench.workloads.case import Case, Sizes


class Traffic(NamedTuple):
    """Control tokens and data entries a lookup."""

    tokens: Fraction
    entries: Fraction


def _tables(s: Sizes, opt_level: int, n: int) -> tuple[Fraction | int, Fraction | int]:
    groups = 1 / s.lookups_a_group
    ends = groups * (1 + Fraction(s.tables, s.groups))
    return ((n, 3 * n), (n, 3 * n), (1, 1 + n), (1 + ends, n))[opt_level]


def _spmm(s: Sizes, opt_level: int, n: int) -> tuple[Fraction | int, Fraction | int]:
    return ((n, 4 * n), (n, 4 * n), (1, 2 + n), (1, 2 + n))[opt_level]


def _fusedmm(s: Sizes, opt_level: int, n: int) -> tuple[Fraction | int, Fraction | int]:
    begins = 1 / s.lookups_a_group
    split = 2 * n + 2, 5 * n
    return (split, split, (1 + begins, 1 + n + n * begins), (1 + begins, n + n * begins))[opt_level]


def _transe(s: Sizes, opt_level: int, n: int) -> tuple[Fraction | int, Fraction | int]:
    return ((n + 1, 3 * n + 1), (n + 1, 3 * n + 1), (1, 1 + 3 * n), (1, 3 * n))[opt_level]


def _attention(s: Sizes, opt_level: int, n: int) -> tuple[Fraction | int, Fraction | int]:
    begins = 1 / s.lookups_a_group
    split = n * (1 + begins), 4 * n + 3 * n * begins
    rows = 1 + 2 * n + n * begins
    return (split, split, (1 + begins, rows + begins), (1 + begins, rows))[opt_level]


_FORMULAS: dict[str, Callable[[Sizes, int, int], tuple[Fraction | int, Fraction | int]]] = {
    "tables": _tables,
    "spmm": _spmm,
    "fusedmm": _fusedmm,
    "transe": _transe,
    "attention": _attention,
}


def traffic(case: Case, opt_level: int, lanes: int) -> Traffic:
    """Return what a lookup of a case costs.

    Parameters
    ----------
    case : Case
        Gives the kernel and its sizes.
    opt_level : int
        0 to 3.
    lanes : int
        Elements of a vector.
    """
    vectors = -(-case.sizes.dim // lanes) if opt_level else case.sizes.dim
    tokens, entries = _FORMULAS[case.kernel](case.sizes, opt_level, vectors)
    return Traffic(Fraction(tokens), Fraction(entries))
