from __future__ import annotations

import numpy as np
import pytest

from ember_hw.compiler.interpreters.tests.evaluate import run, whole
from ember_hw.errors import CheckError

SUM = """
func.func @f(%lb: index, %ub: index, %st: index) -> (index, index) {
  %z = arith.constant 0 : index
  %o = arith.constant 1 : index
  %r, %n = scf.for %i = %lb to %ub step %st iter_args(%s = %z, %k = %z) -> (index, index) {
    %t = arith.addi %s, %i : index
    %m = arith.addi %k, %o : index
    scf.yield %t, %m : index, index
  }
  func.return %r, %n : index, index
}"""


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [((0, 5, 1), (10, 5)), ((5, 12, 3), (24, 3)), ((3, 3, 1), (0, 0)), ((4, 1, 1), (0, 0))],
)
def test_loop_carries_its_values(bounds: tuple[int, int, int], expected: tuple[int, int]) -> None:
    assert run(SUM, *bounds).results == expected


def test_loop_with_a_step_of_zero_is_refused() -> None:
    with pytest.raises(CheckError, match=whole("step of scf.for must be at least 1, not 0")):
        run(SUM, 0, 5, 0)


def test_carried_values_move_all_at_once() -> None:
    text = """
    func.func @f(%n: index) -> (index, index) {
      %z = arith.constant 0 : index
      %o = arith.constant 1 : index
      %a, %b = scf.for %i = %z to %n step %o iter_args(%x = %z, %y = %o) -> (index, index) {
        scf.yield %y, %x : index, index
      }
      func.return %a, %b : index, index
    }"""
    assert run(text, 3).results == (1, 0)


@pytest.mark.parametrize(("condition", "expected"), [(1, 2.0), (0, 3.0)])
def test_if_takes_one_branch(condition: int, expected: float) -> None:
    text = """
    func.func @f(%c: i1, %m: memref<1xf32>) -> f32 {
      %z = arith.constant 0 : index
      %a = arith.constant 2.0 : f32
      %b = arith.constant 3.0 : f32
      %r = scf.if %c -> (f32) {
        scf.yield %a : f32
      } else {
        scf.yield %b : f32
      }
      scf.if %c {
        memref.store %a, %m[%z] : memref<1xf32>
      }
      func.return %r : f32
    }"""
    memory = np.zeros(1, np.float32)

    assert run(text, condition, memory).results == (expected,)
    assert memory[0] == (2.0 if condition else 0.0)
