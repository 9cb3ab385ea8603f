# pyright: basic
"""Products of queries with the keys of the blocks that each block of queries attends to.

A function of scf, as no class of models has products alone, and those of attention are of float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ember_hw.bench.fuzzing.classes import special

__all__ = ["DTYPES", "draw", "products", "text_of"]

#: Types of rows, and what the function calls them.
DTYPES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}
#: Most blocks of queries, blocks of keys, blocks that one attends to, and rows of a block.
_BLOCKS, _ATTENDED, _ROWS = 4, 4, 4

_TEXT = """
!R = memref<?x?xTYPE>
func.func @query_key(%ptr: memref<?xi64>, %blk: memref<?xi64>, %q: !R, %k: !R,
                     %out: memref<?x?xf32>, %NB: index, %QS: index, %KS: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f0 = arith.constant 0.0 : f32
  %D = memref.dim %k, %c1 : !R
  scf.for %b = %c0 to %NB step %c1 {
    %b1 = arith.addi %b, %c1 : index
    %s64 = memref.load %ptr[%b] : memref<?xi64>
    %e64 = memref.load %ptr[%b1] : memref<?xi64>
    %s = arith.index_cast %s64 : i64 to index
    %e = arith.index_cast %e64 : i64 to index
    %q0 = arith.muli %b, %QS : index
    scf.for %p = %s to %e step %c1 {
      %kb64 = memref.load %blk[%p] : memref<?xi64>
      %kb = arith.index_cast %kb64 : i64 to index
      %k0 = arith.muli %kb, %KS : index
      %p0 = arith.muli %p, %KS : index
      scf.for %j = %c0 to %KS step %c1 {
        %kr = arith.addi %k0, %j : index
        %row = arith.addi %p0, %j : index
        scf.for %i = %c0 to %QS step %c1 {
          %qr = arith.addi %q0, %i : index
          %dot = scf.for %d = %c0 to %D step %c1 iter_args(%acc = %f0) -> (f32) {
            READ
            %m = arith.mulf %x, %y : f32
            %n = arith.addf %acc, %m : f32
            scf.yield %n : f32
          }
          memref.store %dot, %out[%row, %i] : memref<?x?xf32>
        }
      }
    }
  }
  func.return
}
"""
_WIDE = """%x = memref.load %k[%kr, %d] : !R
            %y = memref.load %q[%qr, %d] : !R"""
_NARROW = """%xn = memref.load %k[%kr, %d] : !R
            %yn = memref.load %q[%qr, %d] : !R
            %x = arith.extf %xn : TYPE to f32
            %y = arith.extf %yn : TYPE to f32"""


def text_of(dtype: str) -> str:
    """Return the function of rows of a dtype, one of `DTYPES`."""
    name = DTYPES[dtype]
    return _TEXT.replace("READ", _WIDE if name == "f32" else _NARROW).replace("TYPE", name)


def draw(
    random: np.random.Generator, columns: int, dtype: str, *, is_special: bool = False
) -> dict[str, Any]:
    """Return arguments of the function: lists of blocks, some of them empty, and rows.

    Parameters
    ----------
    random : Generator
        Of all that is drawn.
    columns : int
        Of queries and keys.
    dtype : str
        Of them, one of `DTYPES`.
    is_special : bool
        Whether some of their numbers are such as are easily lost.
    """
    blocks, key_blocks = random.integers(0, _BLOCKS + 1), random.integers(1, _BLOCKS + 1)
    query_rows, key_rows = random.integers(1, _ROWS + 1, 2)
    pointers = np.concatenate(([0], np.cumsum(random.integers(0, _ATTENDED, blocks))))
    attended = random.integers(0, key_blocks, pointers[-1])
    rows = [random.standard_normal((count, columns), np.float32) for count in (
        blocks * query_rows, key_blocks * key_rows
    )]  # fmt: skip
    if is_special:
        rows = [special(random, matrix) for matrix in rows]
    queries, keys = (torch.from_numpy(matrix).to(getattr(torch, dtype)) for matrix in rows)
    return {
        **{"ptr": pointers, "blk": attended, "q": queries, "k": keys},
        "out": np.zeros((len(attended) * key_rows, query_rows), np.float32),
        **{"NB": int(blocks), "QS": int(query_rows), "KS": int(key_rows)},
    }


def products(given: dict[str, Any]) -> np.ndarray:
    """Return what the function must give: each sum in float32, from +0 and column 0 on."""
    queries, keys = (given[name].float().numpy() for name in ("q", "k"))
    query_rows, key_rows = given["QS"], given["KS"]
    out = np.zeros_like(given["out"])
    owner = np.repeat(np.arange(given["NB"]), np.diff(given["ptr"]))
    with np.errstate(all="ignore"):
        for place, (block, other) in enumerate(zip(owner, given["blk"], strict=True)):
            theirs = keys[other * key_rows :][:key_rows, None]
            terms = theirs * queries[block * query_rows :][:query_rows]
            begun = np.concatenate((np.zeros_like(terms[..., :1]), terms), axis=-1)
            # Unlike add.reduce, accumulate never sums pairwise.
            out[place * key_rows :][:key_rows] = np.add.accumulate(begun, axis=-1)[..., -1]
    return out
