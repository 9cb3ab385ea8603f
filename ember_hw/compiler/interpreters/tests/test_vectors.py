from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_hw.compiler.interpreters.tests.evaluate import evaluate, run, whole
from ember_hw.errors import UnsupportedError


def row(count: int) -> Any:
    return np.arange(1, count + 1, dtype=np.float32)


LOAD = "vector.load %a[%b] : memref<?xf32>, vector<4xf32>"
MASKED = """
func.func @f(%m: memref<?xf32>, %i: index, %n: index) -> vector<4xf32> {
  %p = arith.constant dense<-1.0> : vector<4xf32>
  %k = vector.create_mask %n : vector<4xi1>
  %v = vector.maskedload %m[%i], %k, %p
    : memref<?xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  vector.maskedstore %m[%i], %k, %p : memref<?xf32>, vector<4xi1>, vector<4xf32>
  func.return %v : vector<4xf32>
}"""


def test_load_reads_neighbours() -> None:
    assert evaluate(LOAD, "memref<?xf32> index", "vector<4xf32>", row(6), 2).tolist() == [
        3,
        4,
        5,
        6,
    ]


def test_load_past_the_row_is_refused() -> None:
    message = "position of vector.load must be inside the memref's shape (6,), not (6,)"
    with pytest.raises(IndexError, match=whole(message)):
        evaluate(LOAD, "memref<?xf32> index", "vector<4xf32>", row(6), 3)


def test_store_writes_neighbours() -> None:
    text = """
    func.func @f(%m: memref<?xf32>, %i: index, %x: f32) {
      %v = vector.broadcast %x : f32 to vector<2xf32>
      vector.store %v, %m[%i] : memref<?xf32>, vector<2xf32>
      func.return
    }"""
    memory = row(4)

    run(text, memory, 1, 9.0)

    assert memory.tolist() == [1, 9, 9, 4]


def test_inactive_lanes_pass_through_and_may_lie_outside() -> None:
    memory = row(6)

    (value,) = run(MASKED, memory, 4, 2).results

    assert value.tolist() == [5, 6, -1, -1]
    assert memory.tolist() == [1, 2, 3, 4, -1, -1]


def test_access_without_active_lanes_may_lie_outside() -> None:
    assert run(MASKED, row(6), 60, 0).results[0].tolist() == [-1] * 4


@pytest.mark.parametrize(("first", "count", "found"), [(4, 3, 6), (-1, 1, -1)])
def test_active_lane_outside_is_refused(first: int, count: int, found: int) -> None:
    message = (
        f"position of vector.maskedload must be inside the memref's shape (6,), not ({found},)"
    )
    with pytest.raises(IndexError, match=whole(message)):
        run(MASKED, row(6), first, count)


LANES = """
func.func @f(%x: f32, %i: index) -> (f32, vector<3xf32>) {
  %v = arith.constant dense<[1.0, 2.0, 3.0]> : vector<3xf32>
  %w = vector.insert %x, %v[1] : f32 into vector<3xf32>
  %e = vector.extract %w[%i] : f32 from vector<3xf32>
  func.return %e, %v : f32, vector<3xf32>
}"""


def test_lanes_are_read_and_replaced_in_a_new_vector() -> None:
    lane, original = run(LANES, 9.0, 1).results
    assert lane == 9
    assert original.tolist() == [1, 2, 3]


def test_lane_outside_is_refused() -> None:
    message = "position of vector.extract must be inside the memref's shape (3,), not (3,)"
    with pytest.raises(IndexError, match=whole(message)):
        run(LANES, 9.0, 3)


def test_lane_that_is_a_vector_is_refused() -> None:
    text = """
    func.func @f() {
      %v = arith.constant dense<1.0> : vector<2x3xf32>
      %w = vector.extract %v[0] : vector<3xf32> from vector<2x3xf32>
      func.return
    }"""
    message = "lane of vector.extract must be a scalar to be interpreted, not vector<3xf32>"
    with pytest.raises(UnsupportedError, match=whole(message)):
        run(text)


def reduce(kind: str, values: str, acc: str | None = None) -> Any:
    initial, operand = ("", "") if acc is None else (f"%a = arith.constant {acc} : f32", ", %a")
    text = f"""
    func.func @f() -> f32 {{
      {initial}
      %v = arith.constant dense<{values}> : vector<3xf32>
      %r = vector.reduction <{kind}>, %v{operand} : vector<3xf32> into f32
      func.return %r : f32
    }}"""
    return run(text).results[0]


def test_reduction_folds_the_lanes_in_order() -> None:
    # (1 + 2^24) + 1 loses both ones, 1 + (2^24 + 1) none or one.
    assert reduce("add", "[1.0, 16777216.0, 1.0]") == 2.0**24
    assert reduce("add", "[16777216.0, 1.0, 1.0]", acc="-16777216.0") == 2
    assert reduce("maximumf", "[1.0, 7.0, 3.0]", acc="5.0") == 7
    assert reduce("mul", "[2.0, 7.0, 3.0]") == 42


def test_reduction_of_another_kind_is_refused() -> None:
    text = """
    func.func @f() {
      %v = arith.constant dense<1> : vector<2xi32>
      %r = vector.reduction <minui>, %v : vector<2xi32> into i32
      func.return
    }"""
    message = (
        "kind of vector.reduction must be one of add, mul, minsi, maxsi, minimumf, maximumf, "
        "minnumf, maxnumf, and, or, xor to be interpreted, not 'minui'"
    )
    with pytest.raises(UnsupportedError, match=whole(message)):
        run(text)
