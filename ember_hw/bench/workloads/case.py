"""A case: one operation, its inputs, and what its rows must be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.bench.programs.task import Task
from ember_hw.compiler.program import OPT_LEVELS


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """What the formulas of a case's traffic need.

    Attributes
    ----------
    lookups : int
        Gathered rows: those of a bag, an edge, a triple (of three rows), a block (of two).
    groups : int
        Bags, nodes or blocks of queries, empty ones counted.
    dim : int
        Elements of a row.
    tables : int
        Tables, of as many bags each.
    """

    lookups: int
    groups: int
    dim: int
    tables: int = 1

    @property
    def lookups_a_group(self) -> Fraction:
        """Mean lookups of a bag, node or block of queries."""
        return Fraction(self.lookups, self.groups)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One operation with its inputs.

    Attributes
    ----------
    name : str
        What results call it.
    family : str
        Its op class, as the paper groups them.
    kernel : str
        Its scf text, by the name of the file.
    rows : uint8 (N,)
        Bytes of all rows in order, where they come whole.
    arrays : mapping of str to array
        What the function reads, by its arguments' names and in the order in which they lie in
        memory, which is the task's order.
    outputs : mapping of str to shape
        float32 arrays that it writes, 0 before.
    values : mapping of str to int
        Its index arguments.
    sizes : Sizes
        What formulas need.
    task : Task, optional
        The hand-written program on the same inputs.
    opt_levels : tuple of int
        Those whose loops the access unit has units for.
    constants : mapping of str to int
        What stands for words of the scf text.
    params : mapping of str to JSON values
        What a row of results says of it.
    """

    name: str
    family: str
    kernel: str
    rows: NDArray[np.uint8]
    arrays: Mapping[str, NDArray[Any]]
    outputs: Mapping[str, tuple[int, ...]]
    values: Mapping[str, int]
    sizes: Sizes
    task: Task | None = None
    opt_levels: tuple[int, ...] = OPT_LEVELS
    constants: Mapping[str, int] = field(default_factory=dict[str, int])
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def text(self) -> str:
        """The scf text of the operation."""
        text = (files("ember_hw.bench.workloads") / f"{self.kernel}.mlir").read_text()
        for word, value in self.constants.items():
            text = text.replace(word, str(value))
        return text
