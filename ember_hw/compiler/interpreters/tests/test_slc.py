from __future__ import annotations

import numpy as np
import pytest

from ember_hw.compiler.interpreters.tests.evaluate import run, whole
from ember_hw.errors import CheckError

SHIFTED_SUM = """
func.func @f(%n: index, %x: memref<?xf32>, %acc: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = slc.to_stream %c0 : index to !slc.stream<index>
  %u = slc.to_stream %c1 : index to !slc.stream<index>
  %ns = slc.to_stream %n : index to !slc.stream<index>
  slc.for %i = %z to %ns step %u : !slc.stream<index> -> !slc.stream<index> {
    %k = slc.alu_stream<add> %i, %u : !slc.stream<index>, !slc.stream<index> -> !slc.stream<index>
    %v = slc.mem_stream %x[%k] : memref<?xf32>[!slc.stream<index>] into !slc.stream<f32>
    slc.callback {
      %iv = slc.from_stream %i : !slc.stream<index> to index
      %vv = slc.from_stream %v : !slc.stream<f32> to f32
      %a = memref.load %acc[%iv] : memref<?xf32>
      %s = arith.addf %a, %vv : f32
      memref.store %s, %acc[%iv] : memref<?xf32>
      slc.yield
    }
    slc.yield
  }
  func.return
}"""


def test_callback_reads_the_heads_of_its_place() -> None:
    accumulator = np.ones(4, np.float32)

    run(SHIFTED_SUM, 3, np.arange(5, dtype=np.float32), accumulator)

    assert accumulator.tolist() == [2, 3, 4, 1]


def test_memory_stream_outside_is_refused() -> None:
    message = "position of slc.mem_stream must be inside the memref's shape (3,), not (3,)"
    with pytest.raises(IndexError, match=whole(message)):
        run(SHIFTED_SUM, 3, np.zeros(3, np.float32), np.zeros(4, np.float32))


def test_execute_values_go_through_loops_and_callbacks() -> None:
    text = """
    func.func @f(%x: memref<?xi32>, %n: index) -> i32 {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %zero = arith.constant 0 : i32
      %r = slc.for %i = %c0 to %n step %c1 init_args(%s = %zero) -> (i32)
          : index -> !slc.stream<index> {
        %v = slc.mem_stream %x[%i] : memref<?xi32>[!slc.stream<index>] into !slc.stream<i32>
        %t = slc.callback {
          %w = slc.from_stream %v : !slc.stream<i32> to i32
          %u = arith.addi %s, %w : i32
          slc.yield %u : i32
        } : i32
        slc.yield %t : i32
      }
      func.return %r : i32
    }"""
    assert run(text, np.array([3, 4, -9], np.int32), 3).results == (-2,)
    assert run(text, np.array([], np.int32), 0).results == (0,)


@pytest.mark.parametrize(("op", "expected"), [("add", -4), ("sub", -10), ("mul", -21), ("div", -2)])
def test_alu_stream_computes_on_heads(op: str, expected: int) -> None:
    text = f"""
    func.func @f(%a: index, %b: index) -> index {{
      %s = slc.alu_stream<{op}> %a, %b : index, index -> !slc.stream<index>
      %r = slc.callback {{
        %v = slc.from_stream %s : !slc.stream<index> to index
        slc.yield %v : index
      }} : index
      func.return %r : index
    }}"""
    assert run(text, -7, 3).results == (expected,)


def test_cast_stream_keeps_the_number() -> None:
    text = """
    func.func @f(%m: memref<1xi8>, %i: index) -> index {
      %s = slc.mem_stream %m[%i] {nontemporal = true} : memref<1xi8>[index] into !slc.stream<i8>
      %c = slc.cast_stream %s : !slc.stream<i8> to !slc.stream<index>
      %r = slc.callback {
        %v = slc.from_stream %c : !slc.stream<index> to index
        slc.yield %v : index
      } : index
      func.return %r : index
    }"""
    assert run(text, np.array([-3], np.int8), 0).results == (-3,)


def test_loop_with_a_step_of_zero_is_refused() -> None:
    text = """
    func.func @f(%n: index, %st: index) {
      slc.for %i = %n to %n step %st : index -> !slc.stream<index> {
        slc.accelerate_for
        slc.yield
      }
      func.return
    }"""
    run(text, 1, 1)
    with pytest.raises(CheckError, match=whole("step of slc.for must be at least 1, not 0")):
        run(text, 1, 0)
