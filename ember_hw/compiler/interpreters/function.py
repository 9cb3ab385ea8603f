"""The entry point: run one function of a module at whatever level its ops are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.traits import SymbolTable

from ember_hw.compiler.dialects.dlc import ComputeLoopOp
from ember_hw.compiler.interpreters.arithmetic import ARITHMETIC
from ember_hw.compiler.interpreters.dlc import DlcMachine
from ember_hw.compiler.interpreters.frame import Lowering
from ember_hw.compiler.interpreters.memory import MEMORY
from ember_hw.compiler.interpreters.queues import Counts, Schedule
from ember_hw.compiler.interpreters.scf import SCF
from ember_hw.compiler.interpreters.slc import SLC
from ember_hw.compiler.interpreters.slcvec import SLCVEC
from ember_hw.compiler.interpreters.values import argument
from ember_hw.compiler.interpreters.vectors import VECTORS
from ember_hw.errors import CheckError

__all__ = ["InterpreterResult", "find_function", "interpret", "run_function"]


@dataclass(frozen=True)
class InterpreterResult:
    """
    What a function gave.

    Parameters
    ----------
    results : tuple
        The returned values; memrefs are written in place besides.
    counts : Counts
        Queue traffic; nothing above the dlc level.
    """

    results: tuple[Any, ...]
    counts: Counts


def interpret(
    module: ModuleOp,
    function: str,
    arguments: Sequence[Any],
    *,
    schedule: Schedule = Schedule.AHEAD,
    vector_length: int | None = None,
) -> InterpreterResult:
    """
    Run a function of scf, slc, slcvec or dlc ops, or of a mixture of them.

    Parameters
    ----------
    module : ModuleOp
        Holds the function.
    function : str
        Its name.
    arguments : sequence
        One per argument: an array for a memref (written in place; `index` elements are int64), an
        integer or a float otherwise.
    schedule : Schedule
        How the two sides of a dlc program take turns.
    vector_length : int, optional
        Elements of one data-queue entry of a row; None takes the widest vector of the execute
        program, or 1 without vectors.

    Returns
    -------
    InterpreterResult
        Returned values and counts of queue entries.

    Raises
    ------
    TypeError, ValueError
        If the arguments don't fit the function's types, or the function doesn't exist.
    IndexError
        If an access leaves its memref.
    CheckError
        If the program breaks a rule of its level.
    UnsupportedError
        If it holds an op without a meaning here.
    """
    op = find_function(module, function)
    return run_function(op, arguments, DlcMachine(schedule, vector_length))


def find_function(module: ModuleOp, name: str) -> func.FuncOp:
    """Return the function of this name that the module defines; ValueError otherwise."""
    op = SymbolTable.lookup_symbol(module, name)
    if isinstance(op, func.FuncOp) and not op.is_declaration:
        return op
    known = [
        defined.sym_name.data
        for defined in module.ops
        if isinstance(defined, func.FuncOp) and not defined.is_declaration
    ]
    raise ValueError(
        f"function must be one that the module defines ({', '.join(known) or 'none'}), not {name!r}"
    )


def find_function_of(module: ModuleOp, name: str, programs: int) -> func.FuncOp:
    """Return the function of this name, for so many access programs, one a compute loop.

    Raises
    ------
    ValueError
        The module doesn't define it.
    CheckError
        It has another number of compute loops.
    """
    op = find_function(module, name)
    loops = sum(isinstance(inner, ComputeLoopOp) for inner in op.walk())
    if loops != programs:
        raise CheckError(
            f"number of access programs must be {loops}, that of compute loops, not {programs}"
        )
    return op


def run_function(
    function: func.FuncOp, arguments: Sequence[Any], machine: DlcMachine
) -> InterpreterResult:
    """Run a function on a machine; `interpret` and `run_au` explain the parameters."""
    block, name = function.body.block, function.sym_name.data
    if len(arguments) != len(block.args):
        raise ValueError(
            f"number of arguments of {name!r} must be {len(block.args)}, not {len(arguments)}"
        )
    handlers = {**ARITHMETIC, **MEMORY, **VECTORS, **SCF, **SLC, **SLCVEC, **machine.handlers}
    lowering = Lowering(handlers)
    body = lowering.body(block)
    machine.check_ended()
    frame = lowering.frame()
    for position, (formal, actual) in enumerate(zip(block.args, arguments, strict=True)):
        frame[lowering.slot(formal)] = argument(position, formal.type, actual)
    # IEEE results such as inf and NaN are values here, not warnings.
    with np.errstate(all="ignore"):
        body.run(frame)
    return InterpreterResult(body.results(frame), machine.counts)
