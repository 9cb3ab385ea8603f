from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_hw.compiler.interpreters.tests.evaluate import run, whole
from ember_hw.errors import CheckError, UnsupportedError

COPY = """
func.func @f(%lb: index, %ub: index, %st: index, %im: vector<4xi1>, %x: memref<?xf32>,
             %y: memref<?xf32>, %n: memref<1xindex>) {
  %z = arith.constant 0 : index
  %o = arith.constant 1 : index
  %buf = slcvec.buf_stream : !slc.stream<memref<?xf32>>
  slcvec.for<4>(%i xx %m) = %lb to %ub step %st mask %im : (index xx vector<4xi1>)
      -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
    %v = slcvec.mem_stream %x[%i] : memref<?xf32>[!slc.stream<vector<4xindex>>]
      into !slc.stream<vector<4xf32>>
    slcvec.to_buffer %v, %buf[%i] : !slc.stream<vector<4xf32>>
      -> !slc.stream<memref<?xf32>>[!slc.stream<vector<4xindex>>]
    slcvec.yield
  } {loopConfig = #slcvec<loop_config bcast>}
  slc.callback {
    %b = slc.from_stream %buf : !slc.stream<memref<?xf32>> to memref<?xf32>
    %l = memref.dim %b, %z : memref<?xf32>
    memref.store %l, %n[%z] : memref<1xindex>
    scf.for %k = %z to %l step %o {
      %w = slcvec.from_buffer %b[%k] : memref<?xf32>[index] -> f32
      memref.store %w, %y[%k] : memref<?xf32>
    }
    slc.yield
  }
  func.return
}"""


def copy(
    lower: int, upper: int, step: int, mask: list[bool], source: Any, size: int = 12
) -> list[float]:
    target, length = np.full(size, -1, np.float32), np.zeros(1, np.int64)
    text = COPY.replace("%im: vector<4xi1>, ", "").replace(
        "%z = arith", f"%im = arith.constant dense<{str(mask).lower()}> : vector<4xi1>\n%z = arith"
    )
    run(text, lower, upper, step, source, target, length)
    return target[: length[0]].tolist()


ALL = [True] * 4


def test_last_vector_is_clipped_at_the_upper_bound() -> None:
    # Elements 6 and 7 don't exist: an access by an inactive lane would be refused.
    assert copy(0, 6, 4, ALL, np.arange(6, dtype=np.float32)) == [0, 1, 2, 3, 4, 5]


def test_element_step_is_the_step_over_the_lanes() -> None:
    source = np.arange(10, dtype=np.float32)
    assert copy(1, 10, 8, ALL, source) == [0, 1, 0, 3, 0, 5, 0, 7, 0, 9]


def test_masked_lanes_make_no_access_and_write_nothing() -> None:
    source = np.arange(6, dtype=np.float32)
    assert copy(0, 6, 4, [True, False, True, True], source) == [0, 0, 2, 3, 4]


def test_zero_iterations_leave_an_empty_row() -> None:
    assert copy(0, 0, 4, ALL, np.zeros(0, np.float32)) == []


def test_active_lane_outside_is_refused() -> None:
    message = "position of slcvec.mem_stream must be inside the memref's shape (6,), not (6,)"
    with pytest.raises(IndexError, match=whole(message)):
        copy(0, 7, 4, ALL, np.zeros(6, np.float32))


def test_step_that_is_no_multiple_of_the_lanes_is_refused() -> None:
    message = "step of slcvec.for must be a multiple of its 4 lanes, not 6"
    with pytest.raises(CheckError, match=whole(message)):
        copy(0, 6, 6, ALL, np.zeros(6, np.float32))


def test_step_of_zero_is_refused() -> None:
    with pytest.raises(CheckError, match=whole("step of slcvec.for must be at least 1, not 0")):
        copy(0, 6, 0, ALL, np.zeros(6, np.float32))


def test_buffer_position_below_zero_is_refused() -> None:
    text = """
    func.func @f(%m: memref<1xf32>, %i: index, %j: index) {
      %v = slc.mem_stream %m[%i] : memref<1xf32>[index] into !slc.stream<f32>
      %k = slc.to_stream %j : index to !slc.stream<index>
      %buf = slcvec.buf_stream : !slc.stream<memref<?xf32>>
      slcvec.to_buffer %v, %buf[%k] : !slc.stream<f32>
        -> !slc.stream<memref<?xf32>>[!slc.stream<index>]
      func.return
    }"""
    run(text, np.zeros(1, np.float32), 0, 2)
    message = "position of slcvec.to_buffer must be inside the memref's shape (0,), not (-1,)"
    with pytest.raises(IndexError, match=whole(message)):
        run(text, np.zeros(1, np.float32), 0, -1)


FROM_BUFFER = """
func.func @f(%m: memref<?xf32>, %i: index) -> vector<4xf32> {
  %v = slcvec.from_buffer %m[%i] : memref<?xf32>[index] -> vector<4xf32>
  func.return %v : vector<4xf32>
}"""


@pytest.mark.parametrize(
    ("first", "expected"), [(0, [1, 2, 3, 4]), (3, [4, 5, 0, 0]), (8, [0, 0, 0, 0])]
)
def test_lanes_beyond_the_row_read_zero(first: int, expected: list[float]) -> None:
    row = np.arange(1, 6, dtype=np.float32)
    assert run(FROM_BUFFER, row, first).results[0].tolist() == expected


def test_lanes_before_the_row_are_refused() -> None:
    message = "position of slcvec.from_buffer must be inside the memref's shape (5,), not (-1,)"
    with pytest.raises(IndexError, match=whole(message)):
        run(FROM_BUFFER, np.zeros(5, np.float32), -1)


CONTIGUOUS = """
func.func @f(%m: memref<?x?xf32>, %r: index, %i: index) -> vector<4xf32> {
  %s = slcvec.mem_stream %m[%r, %i] : memref<?x?xf32>[index, index]
    into !slc.stream<vector<4xf32>>
  %v = slc.callback {
    %w = slc.from_stream %s : !slc.stream<vector<4xf32>> to vector<4xf32>
    slc.yield %w : vector<4xf32>
  } : vector<4xf32>
  func.return %v : vector<4xf32>
}"""


@pytest.mark.parametrize(("first", "expected"), [(0, [5, 6, 7, 8]), (3, [8, 9, 0, 0])])
def test_vector_without_a_vector_index_is_clipped_at_the_rows_end(
    first: int, expected: list[float]
) -> None:
    table = np.arange(15, dtype=np.float32).reshape(3, 5)
    assert run(CONTIGUOUS, table, 1, first).results[0].tolist() == expected


@pytest.mark.parametrize(("row", "first", "found"), [(3, 1, "(3, 0)"), (0, -1, "(0, -1)")])
def test_vector_without_a_vector_index_stays_in_its_row(row: int, first: int, found: str) -> None:
    message = (
        f"position of slcvec.mem_stream must be inside the memref's shape (3, {{}}), not {found}"
    )
    extent = 1 if row == 3 else 5
    with pytest.raises(IndexError, match=whole(message.format(extent))):
        run(CONTIGUOUS, np.zeros((3, 5), np.float32), row, first)


def test_broadcast_and_extract() -> None:
    text = """
    func.func @f(%x: index) -> (vector<3xindex>, index) {
      %s = slc.to_stream %x : index to !slc.stream<index>
      %b = slcvec.broadcast %s : !slc.stream<index> to !slc.stream<vector<3xindex>>
      %e = slcvec.extract %b[2 : i64] : !slc.stream<vector<3xindex>> -> !slc.stream<index>
      %v, %l = slc.callback {
        %bv = slc.from_stream %b : !slc.stream<vector<3xindex>> to vector<3xindex>
        %ev = slc.from_stream %e : !slc.stream<index> to index
        slc.yield %bv, %ev : vector<3xindex>, index
      } : vector<3xindex>, index
      func.return %v, %l : vector<3xindex>, index
    }"""
    lanes, lane = run(text, 7).results
    assert lanes.tolist() == [7, 7, 7]
    assert type(lane) is int
    assert lane == 7


def test_lane_values_and_their_mask() -> None:
    text = """
    func.func @f(%i: index, %lb: index, %ub: index, %e: index) -> (vector<4xindex>, vector<4xi1>) {
      %v = slcvec.vec_indvar %i %lb %ub %e : vector<4xindex>
      %m = slcvec.mask %i %lb %ub %e : vector<4xi1>
      func.return %v, %m : vector<4xindex>, vector<4xi1>
    }"""
    values, mask = run(text, 2, 3, 7, 2).results
    assert values.tolist() == [2, 4, 6, 8]
    assert mask.tolist() == [False, True, True, False]


def test_vector_loop_carries_its_values() -> None:
    text = """
    func.func @f(%n: index) -> index {
      %z = arith.constant 0 : index
      %o = arith.constant 1 : index
      %st = arith.constant 4 : index
      %all = arith.constant dense<true> : vector<4xi1>
      %r = slcvec.for<4>(%i xx %m) = %z to %n step %st mask %all init_args(%c = %z) -> (index)
          : (index xx vector<4xi1>)
          -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
        %d = slc.callback {
          %s = arith.addi %c, %o : index
          slc.yield %s : index
        } : index
        slcvec.vectorize_for
        slcvec.yield %d : index
      } {loopConfig = #slcvec<loop_config bcast>}
      func.return %r : index
    }"""
    assert [run(text, n).results[0] for n in (0, 1, 4, 5, 9)] == [0, 1, 1, 2, 3]


def test_bounds_per_lane_are_refused() -> None:
    text = """
    func.func @f(%v: memref<1xindex>, %i: index) {
      %all = arith.constant dense<true> : vector<2xi1>
      %s = slc.mem_stream %v[%i] : memref<1xindex>[index] into !slc.stream<index>
      %b = slcvec.broadcast %s : !slc.stream<index> to !slc.stream<vector<2xindex>>
      slcvec.for<2>(%j xx %m) = %b to %b step %b mask %all
          : (!slc.stream<vector<2xindex>> xx vector<2xi1>)
          -> (!slc.stream<vector<2xindex>> xx !slc.stream<vector<2xi1>>) {
        slcvec.yield
      } {loopConfig = #slcvec<loop_config vec>}
      func.return
    }"""
    message = (
        "bounds of slcvec.for must be scalars to be interpreted, not "
        "!slc.stream<vector<2xindex>> (loop form 'vec')"
    )
    with pytest.raises(UnsupportedError, match=whole(message)):
        run(text, np.zeros(1, np.int64), 0)


def test_temporary_cast_is_refused() -> None:
    text = """
    func.func @f() {
      %v = arith.constant dense<1.0> : vector<4xf32>
      %s = slcvec.tmp_vec_cast %v : vector<4xf32> to f32
      func.return
    }"""
    message = (
        "op to execute must be none of the vectorizer's temporary casts, not 'slcvec.tmp_vec_cast'"
    )
    with pytest.raises(CheckError, match=whole(message)):
        run(text)
