"""Loops whose iterations can be an axis of arrays: independent ones, but for folds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.backend.execute_code import (
    Compute,
    For,
    Load,
    ReadRow,
    Store,
    defines,
    reads,
)
from ember_hw.host.execution.checks import ConvertCheck, DivisorCheck, IndexCheck
from ember_hw.host.execution.numpy_operations import compute

__all__ = ["fold_of", "folded", "is_rectangle"]


def is_rectangle(loop: For) -> bool:
    """Whether the iterations are independent, but for folds: then they are lanes of one."""
    statements: list[Compute | Load | Store | ReadRow] = []
    for statement in loop.body:
        if isinstance(statement, Compute | Load | Store | ReadRow):
            statements.append(statement)
        elif not isinstance(statement, IndexCheck | DivisorCheck | ConvertCheck):
            return False
    inside = {loop.index, *(c.argument for c in loop.carried)}
    inside |= {name for statement in statements for name in defines(statement)}
    lanes = {loop.index}
    for s in statements:
        if isinstance(s, Compute) and s.operation == "addi":
            others = [operand for operand in s.operands if operand != loop.index]
            if len(others) == 1 and others[0] not in inside:
                lanes.add(s.name)
    for store in [s for s in statements if isinstance(s, Store)]:
        places = {
            s.indices
            for s in statements
            if isinstance(s, Load | Store) and s.symbol == store.symbol
        }
        in_lanes = [index for index in store.indices if index in lanes]
        others = [index for index in store.indices if index in inside - lanes]
        if len(places) != 1 or len(in_lanes) != 1 or others:
            return False
    return all(fold_of(loop, c.argument, c.following) for c in loop.carried)


def fold_of(loop: For, argument: str, following: str) -> tuple[str, str] | None:
    """Return operation and value of a carried value that does nothing but fold."""
    fold: tuple[str, str] | None = None
    for s in loop.body:
        if not isinstance(s, Compute | Load | Store | ReadRow):
            continue
        names = reads(s)
        if isinstance(s, Compute) and s.name == following and names[0] == argument:
            if len(names) == 2 and names[1] != argument:
                fold = s.operation, names[1]
        elif argument in names or following in names:
            return None
    return fold


def folded(operation: str, type_: str, initial: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
    """Fold each line of values into its initial value, in order."""
    ufunc = {"addf": np.add, "mulf": np.multiply}.get(operation)
    with np.errstate(all="ignore"):
        if ufunc is not None:
            # accumulate, unlike reduce, never works pairwise
            return ufunc.accumulate(np.concatenate((initial[:, None], values), axis=1), axis=1)[
                :, -1
            ]
        for lane in values.T:
            initial = compute(operation, type_, (initial, lane))
    return initial
