"""The kernel of many tables of different shapes in one memory, and its inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_hw.compiler.tests.kernels import make_kernel

_TABLES = """
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  scf.for %t = %c0 to %NT step %c1 {
    %at = memref.load %place[%t] : !X
    %base = arith.muli %at, %c16 : index
    %rows = memref.load %rows_of[%t] : !X
    %bytes = memref.load %len[%t] : !X
    %D = arith.divsi %bytes, %c4 : index
    %pitch_bytes = memref.load %dist[%t] : !X
    %pitch = arith.divsi %pitch_bytes, %c4 : index
    %first = memref.load %outs[%t] : !X
    %tab = memref.reinterpret_cast %flat to offset: [%base], sizes: [%rows, %D],
      strides: [%pitch, 1] : !V to memref<?x?xf32, strided<[?, 1], offset: ?>>
    %o = memref.reinterpret_cast %out to offset: [%first], sizes: [%B, %D],
      strides: [%D, 1] : !V to memref<?x?xf32, strided<[?, 1], offset: ?>>
    %tB = arith.muli %t, %B : index
    scf.for %b = %c0 to %B step %c1 {
      %g = arith.addi %tB, %b : index
      %g1 = arith.addi %g, %c1 : index
      %s = memref.load %off[%g] : !X
      %e = memref.load %off[%g1] : !X
      scf.for %j = %s to %e step %c1 {
        %r = memref.load %idx[%j] : !X
        scf.for %d = %c0 to %D step %c1 {
          %v = memref.load %tab[%r, %d] : memref<?x?xf32, strided<[?, 1], offset: ?>>
          %a = memref.load %o[%b, %d] : memref<?x?xf32, strided<[?, 1], offset: ?>>
          %n = arith.addf %a, %v : f32
          memref.store %n, %o[%b, %d] : memref<?x?xf32, strided<[?, 1], offset: ?>>
        }
      }
    }
  }
"""

#: Rows of each table of `EB_TABLES`, and bags of each.
TABLE_ROWS, TABLE_BAGS = (5, 3, 7), 3


def _tables_arguments(columns: int, seed: int) -> dict[str, Any]:
    """Return tables of different shapes in one memory, not in their order, with gaps of NaN."""
    random = np.random.default_rng(seed)
    dims = (columns, 2 * columns + 1, 1)
    pitches = [-(-dim // 16) * 16 + 16 * (dim % 2) for dim in dims]
    places = np.zeros(len(dims), np.int64)
    flat: list[np.ndarray] = []
    for table in (2, 0, 1):
        places[table] = sum(map(len, flat)) // 16
        content = np.full((TABLE_ROWS[table], pitches[table]), np.nan, np.float32)
        content[:, : dims[table]] = random.standard_normal((TABLE_ROWS[table], dims[table]))
        flat.append(content.reshape(-1))
    lengths = np.array([2, 0, 1, 0, 3, 0, 0, 0, 4])
    offsets = np.cumsum([0, *lengths]).astype(np.int64)
    bags = np.repeat(np.arange(len(lengths)), lengths) // TABLE_BAGS
    outs = np.cumsum([0, *(TABLE_BAGS * dim for dim in dims)]).astype(np.int64)
    return {
        "place": places,
        "rows_of": np.array(TABLE_ROWS, np.int64),
        "len": 4 * np.array(dims, np.int64),
        "dist": 4 * np.array(pitches, np.int64),
        "outs": outs[:-1],
        "off": offsets,
        "idx": np.array([random.integers(0, TABLE_ROWS[t]) for t in bags], np.int64),
        "flat": np.concatenate(flat),
        "out": np.zeros(int(outs[-1]), np.float32),
        "NT": len(dims),
        "B": TABLE_BAGS,
    }


EB_TABLES = make_kernel(
    "eb_tables",
    "%place: !X, %rows_of: !X, %len: !X, %dist: !X, %outs: !X, %off: !X, %idx: !X, %flat: !V, "
    "%out: !V, %NT: index, %B: index",
    _TABLES,
    _tables_arguments,
)
