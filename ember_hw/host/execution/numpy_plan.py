"""What the NumPy engine knows of execute code before any token.

A name is *free* if it depends on what its token pops, on the entry, and on free variables alone: it
can then be computed for all tokens of a batch at once, before any of them runs. A variable is free
if each token that writes it does so unconditionally, with a free value or an increment. The other
variables are *cells*: an array of values, a new one of which begins where a token sets the variable
to a value that doesn't depend on the old one.
"""

from __future__ import annotations

from dataclasses import dataclass

from ember_hw.compiler.backend.execute_code import (
    Case,
    GetVariable,
    Increment,
    SetVariable,
    Statement,
)

__all__ = ["Accumulation", "CasePlan", "CellAccess", "MemoryAccess", "Plan", "Span"]


@dataclass(frozen=True)
class Span:
    """What one index of an access covers: `origin` alone, or up to `width` elements from it on.

    An origin of None is everything; a width of None as well, from wherever.
    """

    origin: str | None
    width: int | None = 1


@dataclass(frozen=True)
class MemoryAccess:
    """Accesses of a case to a memory with the same indices."""

    symbol: str
    spans: tuple[Span, ...]
    reads: bool
    writes: bool
    accumulates: bool = False


@dataclass(frozen=True)
class CellAccess:
    """A read or write of a variable that isn't free, by the statement's position in its case.

    `begins` tells whether it begins a new cell, `is_known` whether it does so with a free value.
    """

    variable: int
    position: int
    statement: GetVariable | SetVariable | Increment
    writes: bool
    begins: bool = False
    is_known: bool = False
    accumulates: bool = False


@dataclass(frozen=True)
class Accumulation:
    """`load`, `combined = operation(load, value)`, `store`: done in order for many tokens at once.

    `target` is the symbol of a memory or the number of a variable; `read` and `combined` are the
    names that the load and the operation define.
    """

    target: str | int
    operation: str
    read: str
    combined: str
    value: str


@dataclass(frozen=True)
class CasePlan:
    """What is known of a case.

    Attributes
    ----------
    case : Case
        The case.
    free : tuple of (int, statement)
        Statements at its top whose names are free, with their positions.
    memories : tuple of MemoryAccess
        To memories that the code writes.
    cells : tuple of CellAccess
        To variables that aren't free.
    writes : tuple of (int, statement)
        Of free variables, with their positions.
    inner_gets : tuple of (int, statement)
        Of free variables in loops and conditions, with the positions of those.
    accumulations : tuple of Accumulation
        See there.
    """

    case: Case
    free: tuple[tuple[int, Statement], ...]
    memories: tuple[MemoryAccess, ...]
    cells: tuple[CellAccess, ...]
    writes: tuple[tuple[int, SetVariable | Increment], ...]
    inner_gets: tuple[tuple[int, GetVariable], ...]
    accumulations: tuple[Accumulation, ...]


@dataclass(frozen=True)
class Plan:
    """What is known of the code: its cases, and its free variables, each behind what it needs."""

    free_variables: tuple[int, ...]
    cases: dict[int, CasePlan]
