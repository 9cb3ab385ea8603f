"""Writes operations as CSR-shaped loops in scf.

Each function lists its arguments in `ember.args` and states by `ember.noalias` that no two overlap,
as the host allocates what is written for each call.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from xdsl.context import Context
from xdsl.dialects import arith, builtin, func, math, memref, scf
from xdsl.parser import Parser

from ember_hw.compiler.dialects.quantized import EMBER
from ember_hw.compiler.frontend.row_types import RowTypes
from ember_hw.compiler.quantized_rows import FORMATS
from ember_hw.compiler.transforms.ir_facts import NOALIAS, RISING

__all__ = [
    "MATRIX",
    "POINTERS",
    "VECTOR",
    "bag_text",
    "element_type",
    "emit_embedding",
    "emit_pooling",
    "index_type",
    "matrix",
    "parse_function",
    "pooled_rows",
]

MATRIX = "memref<?x?xf32>"
VECTOR = "memref<?xf32>"
POINTERS = "memref<?xi64>"


def matrix(element: str) -> str:
    """Return the type of a matrix of some elements.

    Examples
    --------
    >>> matrix("f16"), matrix("q8f32")
    ('memref<?x?xf16>', 'memref<?x?x!ember.quantized<q8f32>>')
    """
    return f"memref<?x?x{element_type(element)}>"


def element_type(element: str) -> str:
    """Return the type of an element, which may be one of a quantised row.

    Examples
    --------
    >>> element_type("f16"), element_type("q8f32")
    ('f16', '!ember.quantized<q8f32>')
    """
    return f"!ember.quantized<{element}>" if element in FORMATS else element


def index_type(dtype: str) -> str:
    """Name the IR type of an index dtype.

    Examples
    --------
    >>> index_type("int32")
    'i32'
    """
    return f"i{dtype.removeprefix('int')}"


def parse_function(
    name: str,
    parameters: Sequence[tuple[str, str]],
    body: str,
    rising: Sequence[str] = (),
) -> builtin.ModuleOp:
    """Make a module of one function, and verify it.

    Parameters
    ----------
    name : str
        Of the function.
    parameters : sequence of (str, str)
        Symbol and type of each argument.
    body : str
        Its ops, without the return. `%c0`, `%c1` and `%f0` are there.
    rising : sequence of str, optional
        Symbols of row pointers: the binding refuses those that fall.
    """
    context = Context()
    for dialect in (
        builtin.Builtin,
        arith.Arith,
        func.Func,
        math.Math,
        memref.MemRef,
        scf.Scf,
        EMBER,
    ):
        context.load_dialect(dialect)
    formals = ", ".join(f"%{symbol}: {type_}" for symbol, type_ in parameters)
    symbols = ", ".join(f'"{symbol}"' for symbol, _ in parameters)
    constants = {
        "%c0": "%c0 = arith.constant 0 : index",
        "%c1": "%c1 = arith.constant 1 : index",
        "%f0": "%f0 = arith.constant 0.0 : f32",
    }
    used = "\n".join(text for value, text in constants.items() if value in body)
    stated = f"ember.args = [{symbols}], {NOALIAS}"
    if rising:
        stated += f", {RISING} = [{', '.join(map(json.dumps, rising))}]"
    text = (
        f"func.func @{name}({formals}) attributes {{{stated}}} {{\n"
        f"{used}\n{body}\nfunc.return\n}}\n"
    )
    module = Parser(context, text, f"<{name}>").parse_module()
    module.verify()
    return module


_F32 = RowTypes()

_POOLING = """
  %D = {columns}
  scf.for %b = %c0 to %B step %c1 {{
    {bag}
  }}
"""

_BAG = """
    %{bag}1 = arith.addi %{bag}, %c1 : index
    %s64 = memref.load %off[%{bag}] : memref<?xi64>
    %s = arith.index_cast %s64 : i64 to index
    %e64 = memref.load %off[%{bag}1] : memref<?xi64>
    %e = arith.index_cast %e64 : i64 to index
    scf.for %j = %s to %e step %c1 {{
      %i = memref.load %idx[%j] : memref<?x{index}>
      %r = arith.index_cast %i : {index} to index
      {weight}
      scf.for %d = %c0 to %D step %c1 {{
        {value}
        %a = memref.load %{acc}[%{bag}, %d] : memref<?x?xf32>
        {scale}
        %n = arith.{accumulate} %a, %v : f32
        memref.store %n, %{acc}[%{bag}, %d] : memref<?x?xf32>
      }}
    }}
"""

_DIVIDE = """
    %len = arith.subi %e, %s : index
    %l1 = arith.maxsi %len, %c1 : index
    %li = arith.index_cast %l1 : index to i64
    %lf = arith.sitofp %li : i64 to f32
    scf.for %d = %c0 to %D step %c1 {{
      %a = memref.load %{acc}[%{bag}, %d] : memref<?x?xf32>
      %q = arith.divf %a, %lf : f32
      memref.store %q, %{acc}[%{bag}, %d] : memref<?x?xf32>
    }}
"""

_FILL = """
    %len = arith.subi %e, %s : index
    %empty = arith.cmpi eq, %len, %c0 : index
    scf.if %empty {{
      scf.for %d = %c0 to %D step %c1 {{
        memref.store %f0, %{acc}[%{bag}, %d] : memref<?x?xf32>
      }}
    }}
"""

_ROUND = """
    scf.for %d = %c0 to %D step %c1 {{
      %a = memref.load %acc[%{bag}, %d] : memref<?x?xf32>
      %o = arith.truncf %a : f32 to {output}
      memref.store %o, %out[%{bag}, %d] : memref<?x?x{output}>
    }}
"""

#: By mode: the operation that accumulates, and what follows the lookups of a bag.
_MODES: Mapping[str, tuple[str, str]] = {
    "sum": ("addf", ""),
    "mean": ("addf", _DIVIDE),
    "max": ("maximumf", _FILL),
}


def bag_text(
    mode: str,
    dtype: str,
    *,
    weighted: bool,
    types: RowTypes = _F32,
    bag: str = "b",
    table: str | None = None,
) -> str:
    """Return the ops that pool one bag, between loops that give its number, `%tab` and `%D`.

    Parameters
    ----------
    mode, dtype, weighted, types
        As for `emit_pooling`.
    bag : str
        Name of the bag's number, without the %.
    table : str, optional
        Type of `%tab`; by default a matrix.
    """
    accumulate, tail = _MODES[mode]
    if types.output != "f32":
        tail += _ROUND
    weight = f"memref.load %psw[%j] : memref<?x{types.weights}>"
    row = f"memref.load %tab[%r, %d] : {table or matrix(types.rows)}"
    return (_BAG + tail).format(
        bag=bag,
        acc=types.accumulator,
        output=types.output,
        index=index_type(dtype),
        accumulate=accumulate,
        weight=_as_f32("w", weight, types.weights) if weighted else "",
        value=_as_f32("x" if weighted else "v", row, types.rows),
        scale="%v = arith.mulf %w, %x : f32" if weighted else "",
    )


def _as_f32(name: str, load: str, element: str) -> str:
    """Return the ops that load an element, and widen it to f32."""
    if element == "f32":
        return f"%{name} = {load}"
    widen = "ember.dequantize" if element in FORMATS else "arith.extf"
    stored = f"%{name}_{element}"
    return f"{stored} = {load}\n%{name} = {widen} {stored} : {element_type(element)} to f32"


def emit_pooling(
    name: str,
    mode: str,
    dtype: str,
    *,
    weighted: bool,
    types: RowTypes = _F32,
    columns: int | None = None,
) -> builtin.ModuleOp:
    """Write a pooled lookup: an embedding bag, SpMM, the aggregation of a graph's neighbours.

    The function takes `off` (B + 1 row pointers), `idx`, `psw` where the lookups have weights,
    `tab`, `acc` where pooled rows are no f32, `out` and `B`. On entry `acc`, or else `out`, holds
    zeros, for mode max -inf.

    Parameters
    ----------
    name : str
        Of the function.
    mode : str
        sum: ``out[b] += tab[idx[j]]`` in the order of j. mean: that, divided by the number of
        lookups. max: ``out[b] = max(out[b], tab[idx[j]])``, NaN if one is NaN. Empty bags are zeros
        in each.
    dtype : str
        int32 or int64, of `idx`.
    weighted : bool
        Whether ``psw[j] * tab[idx[j]]`` stands for ``tab[idx[j]]``, rounded once more.
    types : RowTypes
        Of rows, weights and result. Rows and weights are widened to f32, which is exact; what is in
        `acc` when a bag ends is rounded once.
    columns : int, optional
        Elements of a row; needed where rows are quantised, and taken from `tab` without it.
    """
    bag = bag_text(mode, dtype, weighted=weighted, types=types)
    body = _POOLING.format(bag=bag, columns=_length_of_rows(types, columns))
    weights = [("psw", f"memref<?x{types.weights}>")] if weighted else []
    return parse_function(
        name,
        [
            ("off", POINTERS),
            ("idx", f"memref<?x{index_type(dtype)}>"),
            *weights,
            ("tab", matrix(types.rows)),
            *pooled_rows(types),
            ("B", "index"),
        ],
        body,
    )


def _length_of_rows(types: RowTypes, columns: int | None) -> str:
    """Return the op that gives the elements of a row, which a table of bytes doesn't tell."""
    if columns is None:
        return f"memref.dim %tab, %c1 : {matrix(types.rows)}"
    return f"arith.constant {columns} : index"


def pooled_rows(types: RowTypes) -> list[tuple[str, str]]:
    """Return the arguments that hold pooled rows: where they are accumulated, and rounded."""
    out = ("out", matrix(types.output))
    return [out] if types.accumulator == "out" else [("acc", MATRIX), out]


_EMBEDDING = """
  %D = {columns}
  scf.for %j = %c0 to %N step %c1 {{
    %i = memref.load %idx[%j] : memref<?x{index}>
    %r = arith.index_cast %i : {index} to index
    scf.for %d = %c0 to %D step %c1 {{
      {copy}
      memref.store %v, %out[%j, %d] : {output}
    }}
  }}
"""


def emit_embedding(
    dtype: str, types: RowTypes = _F32, *, columns: int | None = None
) -> builtin.ModuleOp:
    """Write a plain lookup, ``out[j] = tab[idx[j]]``, as `@embedding`.

    The function takes `idx`, `tab`, `out` and `N`, the number of lookups.

    Parameters
    ----------
    dtype : str
        int32 or int64, of `idx`.
    types : RowTypes
        Of rows and result: bits are copied where both are of one type, others rounded once.
    columns : int, optional
        As for `emit_pooling`.
    """
    index, table, output = index_type(dtype), matrix(types.rows), matrix(types.output)
    load = f"memref.load %tab[%r, %d] : {table}"
    if types.rows == types.output:
        copy = f"%v = {load}"
    elif types.output == "f32":
        copy = _as_f32("v", load, types.rows)
    else:
        copy = _as_f32("x", load, types.rows) + f"\n%v = arith.truncf %x : f32 to {types.output}"
    parameters = [
        ("idx", f"memref<?x{index}>"),
        ("tab", table),
        ("out", output),
        ("N", "index"),
    ]
    length = _length_of_rows(types, columns)
    body = _EMBEDDING.format(columns=length, index=index, table=table, output=output, copy=copy)
    return parse_function("embedding", parameters, body)
