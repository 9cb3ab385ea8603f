"""Writes block-sparse attention as two nests in scf: scores of gathered keys, then their values."""

from __future__ import annotations

import numpy as np
from xdsl.dialects import builtin

from ember_hw.compiler.frontend.emit import MATRIX, parse_function

_BLOCK = """
      %k0 = memref.load %first[%qb, %n] : memref<?x?xindex>
      %rows = memref.load %count[%qb, %n] : memref<?x?xindex>
      %s0 = arith.muli %n, %BS : index
      scf.for %kk = %c0 to %rows step %c1 {
        %k = arith.addi %k0, %kk : index
        %col = arith.addi %s0, %kk : index
"""

_BODY = """
  %D = memref.dim %key, %c1 : memref<?x?xf32>
  %scale = arith.constant SCALE : f32
  %low = arith.constant 0xFF800000 : f32
  scf.for %qb = %c0 to %NB step %c1 {
    %q0 = arith.muli %qb, %BS : index
    scf.for %n = %c0 to %NS step %c1 {
      BLOCK
        scf.for %qi = %c0 to %BS step %c1 {
          %qr = arith.addi %q0, %qi : index
          %dot = scf.for %d = %c0 to %D step %c1 iter_args(%acc = %f0) -> (f32) {
            %x = memref.load %key[%k, %d] : memref<?x?xf32>
            %y = memref.load %qry[%qr, %d] : memref<?x?xf32>
            %m = arith.mulf %x, %y : f32
            %a = arith.addf %acc, %m : f32
            scf.yield %a : f32
          }
          %w = arith.mulf %dot, %scale : f32
          memref.store %w, %s[%qr, %col] : memref<?x?xf32>
        }
      }
    }
  }
  scf.for %qb = %c0 to %NB step %c1 {
    %q0 = arith.muli %qb, %BS : index
    scf.for %qi = %c0 to %BS step %c1 {
      %qr = arith.addi %q0, %qi : index
      %most = scf.for %c = %c0 to %W step %c1 iter_args(%acc = %low) -> (f32) {
        %x = memref.load %s[%qr, %c] : memref<?x?xf32>
        %a = arith.maximumf %acc, %x : f32
        scf.yield %a : f32
      }
      %total = scf.for %c = %c0 to %W step %c1 iter_args(%acc = %f0) -> (f32) {
        %x = memref.load %s[%qr, %c] : memref<?x?xf32>
        %y = arith.subf %x, %most : f32
        %e = math.exp %y : f32
        memref.store %e, %s[%qr, %c] : memref<?x?xf32>
        %a = arith.addf %acc, %e : f32
        scf.yield %a : f32
      }
      scf.for %c = %c0 to %W step %c1 {
        %x = memref.load %s[%qr, %c] : memref<?x?xf32>
        %p = arith.divf %x, %total : f32
        memref.store %p, %s[%qr, %c] : memref<?x?xf32>
      }
    }
    scf.for %n = %c0 to %NS step %c1 {
      BLOCK
        scf.for %qi = %c0 to %BS step %c1 {
          %qr = arith.addi %q0, %qi : index
          %p = memref.load %s[%qr, %col] : memref<?x?xf32>
          scf.for %d = %c0 to %D step %c1 {
            %v = memref.load %val[%k, %d] : memref<?x?xf32>
            %a = memref.load %out[%qr, %d] : memref<?x?xf32>
            %m = arith.mulf %p, %v : f32
            %r = arith.addf %a, %m : f32
            memref.store %r, %out[%qr, %d] : memref<?x?xf32>
          }
        }
      }
    }
  }
"""


def emit_block_attention(scale: float) -> builtin.ModuleOp:
    """Write attention of blocks of queries to gathered blocks of keys, as `@block_attention`.

    The function takes `qry`, `key`, `val`, `first` and `count` (NB, NS) (of the blocks of keys of
    each block of queries, the first key and how many there are), `s` (a score of each query and
    gathered key; -inf on entry, so that keys which a partial block lacks weigh nothing), `out`
    (zeros on entry), and the numbers of query blocks `NB`, of gathered blocks `NS`, of rows of a
    block `BS` and of columns of `s`, `W`.

    Products are summed from 0.0 in the order of the columns and scaled; weights are
    ``exp(s - max)`` over their sum, in the order of the gathered keys, in which values are added.

    Parameters
    ----------
    scale : float
        What products are multiplied by, rounded to float32.
    """
    text = _BODY.replace("BLOCK", _BLOCK.strip()).replace("SCALE", f"{float(np.float32(scale))!r}")
    return parse_function(
        "block_attention",
        [
            ("qry", MATRIX),
            ("key", MATRIX),
            ("val", MATRIX),
            ("first", "memref<?x?xindex>"),
            ("count", "memref<?x?xindex>"),
            ("s", MATRIX),
            ("out", MATRIX),
            ("NB", "index"),
            ("NS", "index"),
            ("BS", "index"),
            ("W", "index"),
        ],
        text,
    )
