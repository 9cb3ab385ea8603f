"""Where each nest of a function goes, and what the access unit runs of it for that.

`sink-regular-loops` leaves a loop to the execute side if all that it rereads is regular, as the
queries of a block are for each key: each row then leaves once. But a sum across rows in such a loop
is no single one, and the reduce unit sees but a row of the two. So a nest with such a loop is
lowered once more with all of its loops in the access unit, where every row comes to the unit and a
number leaves; it stays so if the unit runs it then. Else nothing changes, and the reason says what
was missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TypeAlias

from ember_hw.compiler.backend.dot_match import folds_in_a_loop
from ember_hw.compiler.backend.extract_code import extract_code
from ember_hw.compiler.backend.lower import Lowered
from ember_hw.compiler.backend.reduce_split import Execute, split_nest
from ember_hw.compiler.dialects.dlc import ComputeLoopOp
from ember_hw.compiler.nest import Nest
from ember_hw.errors import AssemblyError, CompileError

__all__ = ["Lowering", "Placed", "place_nests"]

#: Lowers a function; the nests of these numbers keep all of their loops in the access unit.
Lowering: TypeAlias = Callable[[tuple[int, ...]], Lowered]


@dataclass(frozen=True)
class Placed:
    """A function whose nests have their place.

    Attributes
    ----------
    lowered : Lowered
        As it was lowered for that.
    nests : tuple of Nest
        In the order in which they run.
    """

    lowered: Lowered
    nests: tuple[Nest, ...]


def place_nests(lowering: Lowering, execute: Execute, tables: Collection[str]) -> Placed:
    """Lower a function, and place its nests.

    Parameters
    ----------
    lowering : callable of (stay)
        See `Lowering`.
    execute : "auto", "host" or "fabric"
        As `ember_hw.compile`.
    tables : collection of str
        Symbols of the tables that belong to the program.

    Raises
    ------
    UnsupportedError
        As `split_nest`.
    CompileError, AssemblyError, CheckError
        As `lowering`, of the lowering without nests that stay.
    """
    lowered = lowering(())
    stay: tuple[int, ...] = ()
    remarks: dict[int, str] = {}
    for number, nest in enumerate(_nests(lowered)):
        if execute == "host" or not nest.microcode.config.reduce_dot:
            break
        assert nest.code is not None
        if not folds_in_a_loop(nest.code):
            continue
        try:
            attempt = lowering((*stay, number))
        except (AssemblyError, CompileError) as error:
            remarks[number] = f"with that loop in the access unit it is refused: {error}"
            continue
        found = _split(attempt, "auto", tables, {})[number]
        if found.execute == "fabric":
            lowered, stay = attempt, (*stay, number)
        else:
            remarks[number] = f"with that loop in the access unit, {found.reason}"
    return Placed(lowered, _split(lowered, execute, tables, remarks))


def _nests(lowered: Lowered) -> list[Nest]:
    """Return the nests with their code."""
    block = lowered.function.body.block
    loops = [op for op in block.ops if isinstance(op, ComputeLoopOp)]
    return [
        replace(assembly.nest(), code=extract_code(loop))
        for assembly, loop in zip(lowered.assemblies, loops, strict=True)
    ]


def _split(
    lowered: Lowered, execute: Execute, tables: Collection[str], remarks: dict[int, str]
) -> tuple[Nest, ...]:
    """Return the nests with the parts of the reduce unit and of the host."""
    nests = _nests(lowered)
    readers = Counter(symbol for nest in nests for symbol in nest.symbols_read)
    own = [symbol for symbol in tables if readers[symbol] == 1]
    return tuple(
        split_nest(nest, program, execute, own, remarks.get(number, ""))
        for number, (nest, program) in enumerate(zip(nests, lowered.programs, strict=True))
    )
