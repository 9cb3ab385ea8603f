"""Writes many embedding bags as one function: a loop over tables of loaded places and shapes."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from ember_hw.compiler.frontend.emit import (
    MATRIX,
    POINTERS,
    VECTOR,
    bag_text,
    index_type,
    parse_function,
)

__all__ = ["emit_tables"]

_TABLES = """
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  scf.for %t = %c0 to %T step %c1 {{
    %place64 = memref.load %place[%t] : memref<?xi64>
    %at = arith.index_cast %place64 : i64 to index
    %base = arith.muli %at, %c16 : index
    %rows64 = memref.load %rows[%t] : memref<?xi64>
    %R = arith.index_cast %rows64 : i64 to index
    %length64 = memref.load %length[%t] : memref<?xi64>
    %bytes = arith.index_cast %length64 : i64 to index
    %D = arith.divsi %bytes, %c4 : index
    %pitch64 = memref.load %pitch[%t] : memref<?xi64>
    %apart = arith.index_cast %pitch64 : i64 to index
    %P = arith.divsi %apart, %c4 : index
    %tab = memref.reinterpret_cast %flat to offset: [%base], sizes: [%R, %D], strides: [%P, 1]
      : memref<?xf32> to {table}
    %first = arith.muli %t, %B : index
    scf.for %b = %c0 to %B step %c1 {{
      %g = arith.addi %first, %b : index
      {bag}
    }}
  }}
"""

_TABLE = "memref<?x?xf32, strided<[?, 1], offset: ?>>"


def emit_tables(mode: str, dtype: str, *, weighted: bool) -> ModuleOp:
    """Write pooled lookups in T tables, B bags of each.

    The function takes `place`, `rows`, `length`, `pitch` (T numbers each: where a table begins in
    `flat`, in units of 64 bytes, its rows, and the length and distance of rows in bytes), `off`
    (T * B + 1 row pointers), `idx`, `psw` where the lookups have weights, `flat`, `out` (T * B
    rows), `T` and `B`. Bag ``t * B + b`` pools rows of table t. On entry `out` holds zeros, for
    mode max -inf.

    Parameters
    ----------
    mode : str
        sum, mean or max, as for `emit_pooling`.
    dtype : str
        int32 or int64, of `idx`.
    weighted : bool
        Whether rows are multiplied by `psw` first.
    """
    bag = bag_text(mode, dtype, weighted=weighted, bag="g", table=_TABLE)
    body = _TABLES.format(bag=bag, table=_TABLE)
    weights = [("psw", VECTOR)] if weighted else []
    return parse_function(
        f"tables_{mode}{'_weighted' if weighted else ''}",
        [
            *((symbol, POINTERS) for symbol in ("place", "rows", "length", "pitch", "off")),
            ("idx", f"memref<?x{index_type(dtype)}>"),
            *weights,
            ("flat", VECTOR),
            ("out", MATRIX),
            ("T", "index"),
            ("B", "index"),
        ],
        body,
    )
