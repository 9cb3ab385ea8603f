"""Writes FusedMM, aggregation over edges that score themselves, as loops in scf."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import builtin

from ember_hw.compiler.frontend.emit import MATRIX, POINTERS, index_type, parse_function

_FUSEDMM = """
  %D = memref.dim %{tab}, %c1 : memref<?x?xf32>
  {constants}
  scf.for %b = %c0 to %B step %c1 {{
    %b1 = arith.addi %b, %c1 : index
    %s64 = memref.load %off[%b] : memref<?xi64>
    %s = arith.index_cast %s64 : i64 to index
    %e64 = memref.load %off[%b1] : memref<?xi64>
    %e = arith.index_cast %e64 : i64 to index
    scf.for %j = %s to %e step %c1 {{
      %i = memref.load %idx[%j] : memref<?x{index}>
      %r = arith.index_cast %i : {index} to index
      %dot = scf.for %d = %c0 to %D step %c1 iter_args(%acc = %f0) -> (f32) {{
        %x = memref.load %{qry}[%b, %d] : memref<?x?xf32>
        %y = memref.load %{key}[%r, %d] : memref<?x?xf32>
        %m = arith.mulf %x, %y : f32
        %n = arith.addf %acc, %m : f32
        scf.yield %n : f32
      }}
      {nonlinearity}
      scf.for %d = %c0 to %D step %c1 {{
        %y = memref.load %{tab}[%r, %d] : memref<?x?xf32>
        %a = memref.load %out[%b, %d] : memref<?x?xf32>
        %m = arith.mulf %w, %y : f32
        %n = arith.addf %a, %m : f32
        memref.store %n, %out[%b, %d] : memref<?x?xf32>
      }}
    }}
  }}
"""

_ONE = "%f1 = arith.constant 1.0 : f32"
_SIGMOID = """
      %ng = arith.negf %dot : f32
      %ex = math.exp %ng : f32
      %dn = arith.addf %ex, %f1 : f32
      %w = arith.divf %f1, %dn : f32
"""
_NONLINEAR = {
    "sigmoid": (_ONE, _SIGMOID),
    "exp": ("", "%w = math.exp %dot : f32"),
    "relu": ("", "%w = arith.maximumf %dot, %f0 : f32"),
    "identity": ("", ""),
}


def emit_fusedmm(dtype: str, nonlinearity: str, names: Mapping[str, str]) -> builtin.ModuleOp:
    """Write ``out[b] += s(<q[b], k[c]>) * x[c]`` over the edges c of each node b, as `@fusedmm`.

    The function takes `off` (B + 1 row pointers), `idx`, the matrices, `out` (zeros on entry) and
    `B`. The product is summed from 0.0 in the order of the columns.

    Parameters
    ----------
    dtype : str
        int32 or int64, of `idx`.
    nonlinearity : str
        s: "identity", "sigmoid" (``1 / (1 + exp(-x))``), "relu" or "exp".
    names : mapping of str to str
        Symbols of the matrices q, k and x by role: queries, keys, dense. One symbol may have
        several roles.
    """
    index = index_type(dtype)
    constants, text = _NONLINEAR[nonlinearity]
    body = _FUSEDMM.format(
        index=index,
        constants=constants,
        nonlinearity=text,
        qry=names["queries"],
        key=names["keys"],
        tab=names["dense"],
    )
    if nonlinearity == "identity":
        body = body.replace("mulf %w,", "mulf %dot,")
    matrices = dict.fromkeys(names[role] for role in ("queries", "keys", "dense"))
    return parse_function(
        "fusedmm",
        [
            ("off", POINTERS),
            ("idx", f"memref<?x{index}>"),
            *((symbol, MATRIX) for symbol in matrices),
            ("out", MATRIX),
            ("B", "index"),
        ],
        body,
        rising=["off"],
    )
