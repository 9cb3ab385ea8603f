"""Comparison, selection and fused multiply-add run on lanes, for the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_hw.compiler.interpreters import interpret
from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.pipeline import OPT_LEVELS, run_pipeline

TEXT = """
func.func @kernel(%idx: memref<?xindex>, %tab: memref<?x?xf32>, %k: memref<?x?xi64>,
                  %out: memref<?x?xf32>, %n: index) attributes {ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f0 = arith.constant 0.5 : f32
  %D = memref.dim %tab, %c1 : memref<?x?xf32>
  scf.for %i = %c0 to %n step %c1 {
    %r = memref.load %idx[%i] : memref<?xindex>
    scf.for %d = %c0 to %D step %c1 {
      %v = memref.load %tab[%r, %d] : memref<?x?xf32>
      %w = memref.load %k[%r, %d] : memref<?x?xi64>
      %x = memref.load %k[%i, %d] : memref<?x?xi64>
      %o = memref.load %out[%i, %d] : memref<?x?xf32>
      %c = arith.cmpf ogt, %v, %f0 : f32
      %s = arith.select %c, %v, %f0 : f32
      %u = arith.cmpi ult, %w, %x : i64
      %t = arith.select %u, %s, %o : f32
      %m = math.fma %s, %v, %t : f32
      memref.store %m, %out[%i, %d] : memref<?x?xf32>
    }
  }
  func.return
}
"""
#: Folds beside sums, from a value that is no constant, over rows with a tail.
FOLDS = ["addf", "mulf", "maximumf", "minimumf", "maxnumf", "minnumf"]
FOLD = """
func.func @kernel(%idx: memref<?xindex>, %tab: memref<?x?xf32>, %start: memref<?xf32>,
                  %out: memref<?xf32>, %n: index) attributes {ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %D = memref.dim %tab, %c1 : memref<?x?xf32>
  scf.for %i = %c0 to %n step %c1 {
    %r = memref.load %idx[%i] : memref<?xindex>
    %first = memref.load %start[%i] : memref<?xf32>
    %f = scf.for %d = %c0 to %D step %c1 iter_args(%a = %first) -> (f32) {
      %v = memref.load %tab[%r, %d] : memref<?x?xf32>
      %m = arith.FOLD %a, %v : f32
      scf.yield %m : f32
    }
    memref.store %f, %out[%i] : memref<?xf32>
  }
  func.return
}
"""


def arguments() -> list[Any]:
    random = np.random.default_rng(0)
    return [
        random.integers(0, 5, 4),
        random.standard_normal((5, 7)).astype(np.float32),
        random.integers(-3, 3, (5, 7)),
        random.standard_normal((4, 7)).astype(np.float32),
        4,
    ]


@pytest.mark.parametrize("opt_level", OPT_LEVELS)
def test_lanes_compare_select_and_multiply_like_scalars(opt_level: int) -> None:
    module, expected, found = parse_module(TEXT), arguments(), arguments()
    interpret(module, "kernel", expected)
    result = run_pipeline(module, opt_level, 4)
    assert result.remarks == ()
    assert ("slcvec.select" in str(module)) == (opt_level > 0)
    interpret(module, "kernel", found)
    assert np.array_equal(expected[3].view(np.uint32), found[3].view(np.uint32))


@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize("opt_level", OPT_LEVELS)
def test_folds_take_lanes_in_order_and_skip_the_missing(opt_level: int, fold: str) -> None:
    module = parse_module(FOLD.replace("FOLD", fold))
    table = np.full((3, 5), -0.0, np.float32)
    table[1] = [-3, -1, np.nan, -2, -5]
    table[2] = [-3, -1, -0.5, -2, -5]
    outputs: list[Any] = []
    for _ in range(2):
        out = np.zeros(3, np.float32)
        interpret(
            module, "kernel", [np.arange(3), table, np.array([-0.0, -9, -9], np.float32), out, 3]
        )
        outputs.append(out)
        if len(outputs) == 1:
            run_pipeline(module, opt_level, 4)
    assert ("slcvec.fold" in str(module)) == (opt_level > 0)
    np.testing.assert_array_equal(outputs[0], outputs[1])
    assert np.array_equal(np.signbit(outputs[0]), np.signbit(outputs[1]))
