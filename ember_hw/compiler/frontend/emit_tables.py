"""Writes many embedding bags as one function: a loop over tables of loaded places and shapes."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from ember_hw.compiler.element_dtypes import ELEMENT_DTYPES
from ember_hw.compiler.frontend.emit import (
    POINTERS,
    bag_text,
    index_type,
    parse_function,
    pooled_rows,
)
from ember_hw.compiler.frontend.row_types import RowTypes
from ember_hw.config import LINE_BYTES

__all__ = ["emit_tables"]

_TABLES = """
  %size = arith.constant {size} : index
  %unit = arith.constant {unit} : index
  scf.for %t = %c0 to %T step %c1 {{
    %place64 = memref.load %place[%t] : memref<?xi64>
    %at = arith.index_cast %place64 : i64 to index
    %base = arith.muli %at, %unit : index
    %rows64 = memref.load %rows[%t] : memref<?xi64>
    %R = arith.index_cast %rows64 : i64 to index
    %length64 = memref.load %length[%t] : memref<?xi64>
    %bytes = arith.index_cast %length64 : i64 to index
    %D = arith.divsi %bytes, %size : index
    %pitch64 = memref.load %pitch[%t] : memref<?xi64>
    %apart = arith.index_cast %pitch64 : i64 to index
    %P = arith.divsi %apart, %size : index
    %tab = memref.reinterpret_cast %flat to offset: [%base], sizes: [%R, %D], strides: [%P, 1]
      : memref<?x{element}> to {table}
    %first = arith.muli %t, %B : index
    scf.for %b = %c0 to %B step %c1 {{
      %g = arith.addi %first, %b : index
      {bag}
    }}
  }}
"""

_TABLE = "memref<?x?x{element}, strided<[?, 1], offset: ?>>"


def emit_tables(
    mode: str, dtype: str, *, weighted: bool, types: RowTypes | None = None
) -> ModuleOp:
    """Write pooled lookups in T tables, B bags of each.

    The function takes `place`, `rows`, `length`, `pitch` (T numbers each: where a table begins in
    `flat`, in units of 64 bytes, its rows, and the length and distance of rows in bytes), `off`
    (T * B + 1 row pointers), `idx`, `psw` where the lookups have weights, `flat`, `acc` where
    pooled rows are no f32, `out` (T * B rows), `T` and `B`. Bag ``t * B + b`` pools rows of table
    t. On entry `acc`, or else `out`, holds zeros, for mode max -inf.

    Parameters
    ----------
    mode : str
        sum, mean or max, as for `emit_pooling`.
    dtype : str
        int32 or int64, of `idx`.
    weighted : bool
        Whether rows are multiplied by `psw` first.
    types : RowTypes, optional
        As for `emit_pooling`; of all tables.
    """
    types = types or RowTypes()
    table = _TABLE.format(element=types.rows)
    bag = bag_text(mode, dtype, weighted=weighted, types=types, bag="g", table=table)
    size = ELEMENT_DTYPES[types.rows].itemsize
    unit = LINE_BYTES // size
    body = _TABLES.format(bag=bag, table=table, element=types.rows, size=size, unit=unit)
    weights = [("psw", f"memref<?x{types.weights}>")] if weighted else []
    return parse_function(
        f"tables_{mode}{'_weighted' if weighted else ''}",
        [
            *((symbol, POINTERS) for symbol in ("place", "rows", "length", "pitch", "off")),
            ("idx", f"memref<?x{index_type(dtype)}>"),
            *weights,
            ("flat", f"memref<?x{types.rows}>"),
            *pooled_rows(types),
            ("T", "index"),
            ("B", "index"),
        ],
        body,
    )
