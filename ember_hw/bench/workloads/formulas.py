r"""Control tokens and data entries a lookup, in closed form, of every kernel and opt level.

With D elements and :math:`n = \lceil D / V \rceil` vectors a row, L lookups a group (bag, node,
block of queries) in the mean, B groups a table. A scalar or a vector is one entry, a row n.

Some kernels have other numbers for hardware than the passes alone give. Levels 0 and 1 of message
passing are two programs for it, one behind the other, and both count: a token more a neighbour, for
the weight that the first leaves to the second. And the row's number of SpMM travels beside its
weight, so that at level 3 it stays: counting rows would cost a token. So do the numbers of a
gathered key or value, where blocks have few rows; they are three, as the unit has no ALU for two.
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


_Counts = tuple[Fraction | int, Fraction | int]


def _tables(s: Sizes, opt_level: int, n: int, hardware: bool) -> _Counts:
    ends = 1 / s.lookups_a_group * (1 + Fraction(s.tables, s.groups))
    return ((n, 3 * n), (n, 3 * n), (1, 1 + n), (1 + ends, n))[opt_level]


def _spmm(s: Sizes, opt_level: int, n: int, hardware: bool) -> _Counts:
    ends = 1 / s.lookups_a_group
    last = (1, 2 + n) if hardware else (1 + ends, 1 + n)
    return ((n, 4 * n), (n, 4 * n), (1, 2 + n), last)[opt_level]


def _fusedmm(s: Sizes, opt_level: int, n: int, hardware: bool) -> _Counts:
    begins = 1 / s.lookups_a_group
    first = 2 * n + 1 + hardware, 5 * n
    return (first, first, (1 + begins, 1 + n + n * begins), (1 + begins, n + n * begins))[opt_level]


def _transe(s: Sizes, opt_level: int, n: int, hardware: bool) -> _Counts:
    return ((n + 1, 3 * n + 1), (n + 1, 3 * n + 1), (1, 1 + 3 * n), (1, 3 * n))[opt_level]


def _attention(s: Sizes, opt_level: int, n: int, hardware: bool) -> _Counts:
    begins = 1 / s.lookups_a_group
    first = n * (1 + begins), 4 * n + 3 * n * begins
    rows = 1 + 2 * n + n * begins
    return (first, first, (1 + begins, rows + begins), (1 + begins, rows))[opt_level]


def _blocks(s: Sizes, opt_level: int, n: int, hardware: bool) -> _Counts:
    ends = 1 / s.lookups_a_group * (1 + Fraction(s.tables, s.groups))
    sent = (1, 2 + hardware + n)
    return sent if opt_level == 2 or (hardware and s.lookups_a_group <= 4) else (1 + ends, n)


_FORMULAS: dict[str, Callable[[Sizes, int, int, bool], _Counts]] = {
    "tables": _tables,
    "spmm": _spmm,
    "fusedmm": _fusedmm,
    "transe": _transe,
    "attention": _attention,
    "scores": _blocks,
    "values": _blocks,
}


def traffic(case: Case, opt_level: int, lanes: int, *, hardware: bool) -> Traffic:
    """Return what a lookup of a case costs.

    Parameters
    ----------
    case : Case
        Gives the kernel and its sizes.
    opt_level : int
        0 to 3.
    lanes : int
        Elements of a vector.
    hardware : bool
        Whether it is compiled for the access unit, or by the passes alone.
    """
    vectors = -(-case.sizes.dim // lanes) if opt_level else case.sizes.dim
    tokens, entries = _FORMULAS[case.kernel](case.sizes, opt_level, vectors, hardware)
    return Traffic(Fraction(tokens), Fraction(entries))
