"""What all bindings of lookups ask of a program's element types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.element_dtypes import ELEMENT_DTYPES, tensor_of
from ember_hw.compiler.frontend.row_types import RowTypes
from ember_hw.compiler.program import Program
from ember_hw.errors import ProgramError
from ember_hw.host.bindings.request import Output

__all__ = ["as_given", "check_table", "pooled_outputs", "types_of"]


def types_of(program: Program) -> RowTypes:
    """Return the element types of a program's rows, weights and result."""
    types: Any = program.model.get("types", ())
    return RowTypes(*types)


def check_table(program: Program, symbol: str, shape: tuple[int, ...]) -> None:
    """Refuse a table of another dtype or shape than the model describes.

    Raises
    ------
    ProgramError
        As said.
    """
    table, dtype = program.tables[symbol], ELEMENT_DTYPES[types_of(program).rows]
    if table.dtype != dtype or table.shape != shape:
        raise ProgramError(
            f"table {symbol!r} of program {program.name!r} must be {dtype} of shape "
            f"{shape}, not {table.dtype} of shape {table.shape}"
        )


def pooled_outputs(types: RowTypes, shape: tuple[int, int], start: float) -> Mapping[str, Output]:
    """Return what the matrices of pooled rows hold before a run, by symbol.

    Parameters
    ----------
    types : RowTypes
        Tell whether rows are accumulated where they come back from.
    shape : (int, int)
        Bags and columns.
    start : float
        What an accumulator begins with.
    """
    if types.accumulator == "out":
        return {"out": Output(shape, start)}
    return {types.accumulator: Output(shape, start), "out": Output(shape)}


def as_given(rows: NDArray[Any], as_torch: bool) -> Any:
    """Return rows as the caller gets them."""
    return tensor_of(rows) if as_torch else np.asarray(rows)
