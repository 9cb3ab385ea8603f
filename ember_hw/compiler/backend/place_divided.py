"""Divides nests that the reduce unit runs in two, and not in one.

The sums across rows of a nest may be needed for more than to be stored, as in FusedMM: what comes
of one multiplies a row that is summed. The unit has no way back in. But the nest's loops side by
side can be nests one after the other (`divide-nests`): of the first numbers leave, the host makes
of them what it would, and what it makes lies in memory as weights of the second. Each result is
computed of the same numbers in the same order.

A nest stays divided if the unit then runs all of its parts. Else it stays whole, and its reason
says what was missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp

from ember_hw.compiler.backend.place_nests import Placed
from ember_hw.compiler.backend.reduce_split import Execute, not_in_fabric
from ember_hw.compiler.dialects import make_context
from ember_hw.compiler.transforms.access_slice import top_level_nests
from ember_hw.compiler.transforms.divide_nests import DivideNests, division_of
from ember_hw.compiler.transforms.ir_facts import functions
from ember_hw.errors import AssemblyError, CompileError

__all__ = ["Place", "place_divided"]

#: Lowers a module of scf, which it doesn't change, and places its nests.
Place: TypeAlias = Callable[[ModuleOp, Execute], Placed]


def place_divided(
    module: ModuleOp,
    place: Place,
    execute: Execute,
    observe: Callable[[str, ModuleOp], None] | None,
) -> Placed:
    """Place the nests of a function for a unit that sums across rows, divided where that helps.

    Parameters
    ----------
    module : ModuleOp
        Verified scf with one function; it is not changed.
    place : callable of (module, execute)
        See `Place`.
    execute : "auto" or "fabric"
        As `ember_hw.compile`.
    observe : callable, optional
        Called with the name of the pass and the module where nests were divided.

    Raises
    ------
    UnsupportedError
        `execute` is "fabric", and the unit can't run a nest, be it divided or not.
    CompileError, AssemblyError, CheckError
        As `place`, of the module as it is.
    """
    candidates = dict(_candidates(module))
    if not candidates:
        return place(module, execute)
    whole = placed = place(module, "auto")
    divided: tuple[int, ...] = ()
    remarks: dict[int, str] = {}
    for number, obstacle in candidates.items():
        if whole.nests[number].execute == "fabric":
            continue
        # Nests that were divided before lie in front of this one.
        first = number + len(placed.nests) - len(whole.nests)
        if obstacle is not None:
            remarks[first] = f"it can't be divided: {obstacle}"
            continue
        try:
            attempt = place(_divided(module, (*divided, number), observe), "auto")
        except (AssemblyError, CompileError) as error:
            remarks[first] = f"divided, it is refused: {error}"
            continue
        parts = attempt.nests[first : first + 1 + len(attempt.nests) - len(placed.nests)]
        left = [nest for nest in parts if nest.execute == "host"]
        if left:
            remarks[first] = f"divided, {left[0].reason}"
        else:
            placed, divided = attempt, (*divided, number)
    nests = (
        replace(nest, reason=f"{nest.reason}; {remarks[number]}") if number in remarks else nest
        for number, nest in enumerate(placed.nests)
    )
    placed = replace(placed, nests=tuple(nests))
    for nest in placed.nests:
        if execute == "fabric" and nest.execute == "host":
            raise not_in_fabric(nest)
    return placed


def _candidates(module: ModuleOp) -> Iterator[tuple[int, str | None]]:
    """Yield nests with loops side by side, by number, and why one can't be divided."""
    (function,) = functions(module)
    for number, nest in enumerate(top_level_nests(function)):
        division = division_of(function, nest)
        if division is not None:
            yield number, division.obstacle()


def _divided(
    module: ModuleOp,
    nests: tuple[int, ...],
    observe: Callable[[str, ModuleOp], None] | None,
) -> ModuleOp:
    divided = module.clone()
    DivideNests(nests).apply(make_context(), divided)
    divided.verify()
    if observe is not None:
        observe(DivideNests.name, divided)
    return divided
