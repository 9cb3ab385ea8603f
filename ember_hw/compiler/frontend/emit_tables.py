"""Writes many embedding bags as one function: a loop over tables of loaded places and shapes."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from ember_hw.compiler.element_dtypes import ELEMENT_DTYPES
from ember_hw.compiler.frontend.emit import (
    POINTERS,
    bag_text,
    element_type,
    index_type,
    parse_function,
    pooled_rows,
)
from ember_hw.compiler.frontend.row_types import RowTypes
from ember_hw.compiler.quantized_rows import FORMATS
from ember_hw.config import LINE_BYTES

__all__ = ["elements_of_line", "emit_tables"]

_TABLES = """
  %unit = arith.constant {unit} : index
  {constants}
  scf.for %t = %c0 to %T step %c1 {{
    %place64 = memref.load %place[%t] : memref<?xi64>
    %at = arith.index_cast %place64 : i64 to index
    %base = arith.muli %at, %unit : index
    %rows64 = memref.load %rows[%t] : memref<?xi64>
    %R = arith.index_cast %rows64 : i64 to index
    %length64 = memref.load %length[%t] : memref<?xi64>
    %bytes = arith.index_cast %length64 : i64 to index
    {columns}
    %pitch64 = memref.load %pitch[%t] : memref<?xi64>
    {distance}
    %tab = memref.reinterpret_cast %flat to offset: [%base], sizes: [%R, %D], strides: [%P, 1]
      : {memory} to {table}
    %first = arith.muli %t, %B : index
    scf.for %b = %c0 to %B step %c1 {{
      %g = arith.addi %first, %b : index
      {bag}
    }}
  }}
"""

#: Constants, elements of a row, and distance of two, from bytes: for floats, for codes of 8 and of
#: 4 bits.
_FLOATS = (
    "%size = arith.constant {size} : index",
    "%D = arith.divsi %bytes, %size : index",
    "%apart = arith.index_cast %pitch64 : i64 to index\n%P = arith.divsi %apart, %size : index",
)
_CODES = (
    "%extra = arith.constant {extra} : index",
    "%D = arith.subi %bytes, %extra : index",
    "%P = arith.index_cast %pitch64 : i64 to index",
)
_HALF_BYTES = (
    "%extra = arith.constant {extra} : index\n%two = arith.constant 2 : index",
    "%codes = arith.subi %bytes, %extra : index\n%D = arith.muli %codes, %two : index",
    "%apart = arith.index_cast %pitch64 : i64 to index\n%P = arith.muli %apart, %two : index",
)


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
    element = element_type(types.rows)
    table = f"memref<?x?x{element}, strided<[?, 1], offset: ?>>"
    bag = bag_text(mode, dtype, weighted=weighted, types=types, bag="g", table=table)
    memory = f"memref<?x{element}>"
    constants, columns, distance = _shape(types.rows)
    body = _TABLES.format(
        bag=bag,
        table=table,
        memory=memory,
        unit=elements_of_line(types.rows),
        constants=constants,
        columns=columns,
        distance=distance,
    )
    weights = [("psw", f"memref<?x{types.weights}>")] if weighted else []
    return parse_function(
        f"tables_{mode}{'_weighted' if weighted else ''}",
        [
            *((symbol, POINTERS) for symbol in ("place", "rows", "length", "pitch", "off")),
            ("idx", f"memref<?x{index_type(dtype)}>"),
            *weights,
            ("flat", memory),
            *pooled_rows(types),
            ("T", "index"),
            ("B", "index"),
        ],
        body,
    )


def elements_of_line(rows: str) -> int:
    """Return the elements in 64 bytes, which tables begin at multiples of.

    Those of quantised rows are counted as if the bytes of scale and bias were codes, too: a row's
    elements begin where its bytes do.

    Examples
    --------
    >>> elements_of_line("f16"), elements_of_line("q8f32"), elements_of_line("q4f16")
    (32, 64, 128)
    """
    if rows in FORMATS:
        return LINE_BYTES * FORMATS[rows].codes_per_byte
    return LINE_BYTES // ELEMENT_DTYPES[rows].itemsize


def _shape(rows: str) -> tuple[str, str, str]:
    """Return the ops that make elements of the bytes of rows: constants, columns, distance."""
    if rows not in FORMATS:
        constants, columns, distance = _FLOATS
        return constants.format(size=ELEMENT_DTYPES[rows].itemsize), columns, distance
    form = FORMATS[rows]
    constants, columns, distance = _CODES if form.bits == 8 else _HALF_BYTES
    return constants.format(extra=form.extra_bytes), columns, distance
