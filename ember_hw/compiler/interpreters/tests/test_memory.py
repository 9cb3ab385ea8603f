from __future__ import annotations

import numpy as np
import pytest

from ember_hw.compiler.interpreters.tests.evaluate import evaluate, run, whole
from ember_hw.errors import CheckError, UnsupportedError

STORE = """
func.func @f(%m: memref<?x?xf32>, %i: index, %j: index, %v: f32) {
  memref.store %v, %m[%i, %j] : memref<?x?xf32>
  func.return
}"""
LOAD = "memref.load %a[%b] : memref<?xf32>"


def test_load_and_store_follow_the_strides_of_the_array() -> None:
    storage = np.arange(24, dtype=np.float32).reshape(4, 6)
    view = storage[::2, 1::3]

    run(STORE, view, 1, 1, 9.5)

    assert storage[2, 4] == 9.5
    assert evaluate(LOAD, "memref<?xf32> index", "f32", storage[:, 2], 3) == 20


@pytest.mark.parametrize("index", [-1, 3])
def test_access_outside_is_refused(index: int) -> None:
    message = f"position of memref.load must be inside the memref's shape (3,), not ({index},)"
    with pytest.raises(IndexError, match=whole(message)):
        evaluate(LOAD, "memref<?xf32> index", "f32", np.zeros(3, np.float32), index)


def test_store_outside_is_refused() -> None:
    message = "position of memref.store must be inside the memref's shape (2, 3), not (1, -1)"
    with pytest.raises(IndexError, match=whole(message)):
        run(STORE, np.zeros((2, 3), np.float32), 1, -1, 1.0)


def test_loaded_integers_are_python_integers() -> None:
    value = evaluate(
        "memref.load %a[%b] : memref<?xi32>", "memref<?xi32> index", "i32", np.ones(1, np.int32), 0
    )
    assert type(value) is int


def test_dim_is_the_extent_at_run_time() -> None:
    op = "memref.dim %a, %b : memref<?x?xf32>"
    assert evaluate(op, "memref<?x?xf32> index", "index", np.zeros((2, 5), np.float32), 1) == 5


def test_dim_of_a_dimension_that_is_not_there_is_refused() -> None:
    message = "dimension of memref.dim must be at least 0 and below 1, not 1"
    with pytest.raises(CheckError, match=whole(message)):
        evaluate(
            "memref.dim %a, %b : memref<?xf32>", "memref<?xf32> index", "index", np.zeros(1, "f"), 1
        )


def test_new_memory_is_poisoned() -> None:
    text = """
    func.func @f(%n: index) -> (memref<?x2xf32>, memref<1xi32>, memref<1xi1>) {
      %a = memref.alloc(%n) : memref<?x2xf32>
      %b = memref.alloca() : memref<1xi32>
      %c = memref.alloc() : memref<1xi1>
      memref.dealloc %c : memref<1xi1>
      func.return %a, %b, %c : memref<?x2xf32>, memref<1xi32>, memref<1xi1>
    }"""
    floats, integers, booleans = run(text, 3).results
    assert floats.shape == (3, 2)
    assert np.isnan(floats).all()
    assert integers.tolist() == [-(2**31)]
    assert booleans.dtype == np.bool_


def test_copy_writes_the_destination() -> None:
    text = """
    func.func @f(%a: memref<?xf32>, %b: memref<?xf32>) {
      "memref.copy"(%a, %b) : (memref<?xf32>, memref<?xf32>) -> ()
      func.return
    }"""
    target = np.zeros(2, np.float32)

    run(text, np.array([1, 2], np.float32), target)

    assert target.tolist() == [1, 2]
    message = "shape copied must be that of the destination (2,), not (1,)"
    with pytest.raises(CheckError, match=whole(message)):
        run(text, np.zeros(1, np.float32), target)


SUBVIEW = """
func.func @f(%m: memref<?x?xf32>, %i: index, %n: index, %st: index) -> memref<?x2xf32> {
  %v = memref.subview %m[%i, 1] [%n, 2] [%st, 1]
    : memref<?x?xf32> to memref<?x2xf32, strided<[?, 1], offset: ?>>
  %w = "memref.cast"(%v) : (memref<?x2xf32, strided<[?, 1], offset: ?>>) -> memref<?x2xf32>
  func.return %w : memref<?x2xf32>
}"""


def test_subview_shares_the_memory() -> None:
    memory = np.zeros((5, 4), np.float32)

    (view,) = run(SUBVIEW, memory, 1, 2, 2).results
    view[...] = 1

    assert memory.nonzero()[0].tolist() == [1, 1, 3, 3]
    assert memory.nonzero()[1].tolist() == [1, 2, 1, 2]


def test_empty_subview_may_lie_anywhere() -> None:
    (view,) = run(SUBVIEW, np.zeros((5, 4), np.float32), 5, 0, 1).results
    assert view.shape == (0, 2)


def test_subview_outside_is_refused() -> None:
    message = "position of memref.subview must be inside the memref's shape (5, 4), not (4, 5)"
    with pytest.raises(IndexError, match=whole(message)):
        run(SUBVIEW, np.zeros((5, 4), np.float32), 4, 2, 1)


def test_subview_with_a_step_of_zero_is_refused() -> None:
    message = "stride of memref.subview must be at least 1, not 0"
    with pytest.raises(CheckError, match=whole(message)):
        run(SUBVIEW, np.zeros((5, 4), np.float32), 0, 2, 0)


def test_subview_of_lower_rank_is_refused() -> None:
    text = """
    func.func @f(%m: memref<4x4xf32>) {
      %v = memref.subview %m[1, 0] [1, 4] [1, 1]
        : memref<4x4xf32> to memref<4xf32, strided<[1], offset: 4>>
      func.return
    }"""
    message = (
        "result of memref.subview must have the source's rank to be interpreted, "
        "not memref<4xf32, strided<[1], offset: 4>>"
    )
    with pytest.raises(UnsupportedError, match=whole(message)):
        run(text, np.zeros((4, 4), np.float32))
