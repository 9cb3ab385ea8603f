"""The host code of the operator classes, at scf against NumPy loops of the same order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ember_hw.compiler.interpreters.tests.evaluate import run

Floats = NDArray[np.float32]

_TYPES = """
!I = memref<?xindex>
!L = memref<?xi64>
!V = memref<?xf32>
!T = memref<?x?xf32>
"""
_CONSTANTS = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
"""

POOL = (
    _TYPES
    + "func.func @f(%off: !I, %idx: !I, %tab: !T, %out: !T, %B: index) {"
    + _CONSTANTS
    + """
  %D = memref.dim %tab, %c1 : !T
  scf.for %b = %c0 to %B step %c1 {
    %b1 = arith.addi %b, %c1 : index
    %s = memref.load %off[%b] : !I
    %e = memref.load %off[%b1] : !I
    scf.for %j = %s to %e step %c1 {
      %r = memref.load %idx[%j] : !I
      scf.for %d = %c0 to %D step %c1 {
        %v = memref.load %tab[%r, %d] : !T
        %a = memref.load %out[%b, %d] : !T
        %n = {combine} %a, %v : f32
        memref.store %n, %out[%b, %d] : !T
      }
    }
    {tail}
  }
  func.return
}
"""
)
MEAN = """
    %len = arith.subi %e, %s : index
    %l1 = arith.maxsi %len, %c1 : index
    %li = arith.index_cast %l1 : index to i64
    %lf = arith.sitofp %li : i64 to f32
    scf.for %d = %c0 to %D step %c1 {
      %a = memref.load %out[%b, %d] : !T
      %q = arith.divf %a, %lf : f32
      memref.store %q, %out[%b, %d] : !T
    }
"""
MAX = """
    %empty = arith.cmpi eq, %s, %e : index
    scf.if %empty {
      scf.for %d = %c0 to %D step %c1 { memref.store %f0, %out[%b, %d] : !T }
    }
"""

FUSED = (
    _TYPES
    + "func.func @f(%rp: !I, %ci: !L, %H: !T, %Y: !T, %N: index) {"
    + _CONSTANTS
    + """
  %D = memref.dim %H, %c1 : !T
  scf.for %i = %c0 to %N step %c1 {
    %i1 = arith.addi %i, %c1 : index
    %s = memref.load %rp[%i] : !I
    %e = memref.load %rp[%i1] : !I
    scf.for %p = %s to %e step %c1 {
      %cl = memref.load %ci[%p] : !L
      %c = arith.index_cast %cl : i64 to index
      %dot = scf.for %d = %c0 to %D step %c1 iter_args(%acc = %f0) -> (f32) {
        %x = memref.load %H[%i, %d] : !T
        %y = memref.load %H[%c, %d] : !T
        %m = arith.mulf %x, %y : f32
        %n = arith.addf %acc, %m : f32
        scf.yield %n : f32
      }
      %ng = arith.negf %dot : f32
      %ex = math.exp %ng : f32
      %dn = arith.addf %ex, %f1 : f32
      %w = arith.divf %f1, %dn : f32
      scf.for %d = %c0 to %D step %c1 {
        %y = memref.load %H[%c, %d] : !T
        %a = memref.load %Y[%i, %d] : !T
        %m = arith.mulf %w, %y : f32
        %n = arith.addf %a, %m : f32
        memref.store %n, %Y[%i, %d] : !T
      }
    }
  }
  func.return
}
"""
)

TRANSLATION = (
    _TYPES
    + "func.func @f(%hd: !I, %rl: !I, %tl: !I, %E: !T, %R: !T, %sc: !V, %N: index) {"
    + _CONSTANTS
    + """
  %D = memref.dim %E, %c1 : !T
  scf.for %k = %c0 to %N step %c1 {
    %h = memref.load %hd[%k] : !I
    %r = memref.load %rl[%k] : !I
    %t = memref.load %tl[%k] : !I
    %q = scf.for %d = %c0 to %D step %c1 iter_args(%acc = %f0) -> (f32) {
      %a = memref.load %E[%h, %d] : !T
      %b = memref.load %R[%r, %d] : !T
      %c = memref.load %E[%t, %d] : !T
      %x = arith.addf %a, %b : f32
      %y = arith.subf %x, %c : f32
      %z = math.absf %y : f32
      %n = arith.addf %acc, %z : f32
      scf.yield %n : f32
    }
    %g = arith.negf %q : f32
    memref.store %g, %sc[%k] : !V
  }
  func.return
}
"""
)


def table(rows: int, dim: int, seed: int) -> Floats:
    return np.random.default_rng(seed).standard_normal((rows, dim), np.float32)


OFFSETS = np.array([0, 0, 3, 4, 4, 6, 6])
INDICES = np.array([2, 0, 2, 4, 1, 3])


@pytest.mark.parametrize("mode", ["mean", "max"])
def test_pooling(mode: str) -> None:
    is_mean = mode == "mean"
    rows, initial = table(5, 3, seed=1), 0.0 if is_mean else -np.inf
    out = np.full((6, 3), initial, np.float32)
    text = POOL.replace("{combine}", "arith.addf" if is_mean else "arith.maximumf")

    run(text.replace("{tail}", MEAN if is_mean else MAX), OFFSETS, INDICES, rows, out, 6)

    expected = np.zeros((6, 3), np.float32)
    for bag in range(6):
        picked = rows[INDICES[OFFSETS[bag] : OFFSETS[bag + 1]]]
        if is_mean:
            for row in picked:
                expected[bag] += row
            expected[bag] /= np.float32(max(len(picked), 1))
        elif len(picked):
            expected[bag] = picked.max(axis=0)
    np.testing.assert_array_equal(out, expected)


def test_fused_graph_layer() -> None:
    features = table(6, 4, seed=2)
    out = np.zeros((6, 4), np.float32)

    run(FUSED, OFFSETS, INDICES, features, out, 6)

    expected = np.zeros((6, 4), np.float32)
    for node in range(6):
        for other in INDICES[OFFSETS[node] : OFFSETS[node + 1]]:
            dot = np.float32(0)
            for a, b in zip(features[node], features[other], strict=True):
                dot += a * b
            weight = np.float32(1) / (np.exp(-dot) + np.float32(1))
            expected[node] += weight * features[other]
    np.testing.assert_array_equal(out, expected)


def test_translation_score() -> None:
    entities, relations = table(5, 4, seed=3), table(2, 4, seed=4)
    heads, kinds, tails = np.array([0, 3, 4]), np.array([1, 0, 1]), np.array([2, 3, 0])
    scores: Any = np.zeros(3, np.float32)

    run(TRANSLATION, heads, kinds, tails, entities, relations, scores, 3)

    for score, head, kind, tail in zip(scores, heads, kinds, tails, strict=True):
        total = np.float32(0)
        for a, b, c in zip(entities[head], relations[kind], entities[tail], strict=True):
            total += np.abs((a + b) - c)
        assert score == -total
