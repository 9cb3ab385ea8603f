"""What all bindings of lookups ask of a program's element types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.element_dtypes import tensor_of
from ember_hw.compiler.frontend.row_types import RowTypes
from ember_hw.compiler.program import Program
from ember_hw.compiler.quantized_rows import FORMATS, QuantizedTable, dequantize
from ember_hw.errors import ProgramError
from ember_hw.host.bindings.request import Output

__all__ = ["as_given", "check_table", "numbers_of", "pooled_outputs", "types_of"]


def types_of(program: Program) -> RowTypes:
    """Return the element types of a program's rows, weights and result."""
    types: Any = program.model.get("types", ())
    return RowTypes(*types)


def check_table(program: Program, symbol: str, rows: int, columns: int) -> None:
    """Refuse a table of another dtype or shape than the model describes.

    Parameters
    ----------
    program : Program
        Has the table.
    symbol : str
        What it calls it.
    rows, columns : int
        Shape of the model's table.

    Raises
    ------
    ProgramError
        As said.
    """
    table, types = program.tables[symbol], types_of(program)
    dtype, shape = types.table_dtype(), types.table_shape(rows, columns)
    if table.dtype != dtype or table.shape != shape:
        raise ProgramError(
            f"table {symbol!r} of program {program.name!r} must be {dtype} of shape "
            f"{shape}, not {table.dtype} of shape {table.shape}"
        )


def numbers_of(program: Program, symbol: str, columns: int) -> NDArray[Any]:
    """Return a table as numbers: of a quantised one, of so many columns, what it stands for."""
    table, types = program.tables[symbol], types_of(program)
    if not types.is_quantized:
        return table
    form = FORMATS[types.rows]
    codes, scale = f"int{form.bits}", str(form.scale.name)
    return dequantize(QuantizedTable(table, columns, codes, scale))


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
