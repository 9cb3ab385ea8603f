"""The access-unit level: addresses, slots and what a case may pop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_hw.compiler.interpreters import InterpreterResult, run_au
from ember_hw.compiler.interpreters.tests import bag_texts
from ember_hw.compiler.interpreters.tests.evaluate import whole
from ember_hw.errors import CheckError

COMPUTE = """
func.func @f(%y: memref<?x{type}>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  dlc.set_var %c0 : index
  dlc.compute_loop
  case 1 {{
    %v = dlc.pop_operand : {type}
    %k = dlc.get_var : index
    memref.store %v, %y[%k] : memref<?x{type}>
    dlc.increment_var
    dlc.yield
  }}
  func.return
}}"""
VECTORS = """
func.func @f(%y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  dlc.compute_loop
  case 1 {
    %v = dlc.pop_operand : vector<4xf32>
    vector.store %v, %y[%c0] : memref<?xf32>, vector<4xf32>
    dlc.yield
  }
  func.return
}"""


def launch(
    records: str, environment: dict[str, Any], *arguments: Any, compute: str
) -> InterpreterResult:
    program = bag_texts.parse_au(f'au.program @p target "small" {{ {records} }}')
    return run_au([program], bag_texts.parse(compute), "f", arguments, environment)


def collect(records: str, environment: dict[str, Any], type_: str = "index") -> list[float]:
    """Return the operands that the case popped."""
    dtype = {"index": np.int64, "i32": np.int32, "f32": np.float32}[type_]
    target = np.full(20, -99, dtype)
    launch(records, environment, target, compute=COMPUTE.format(type=type_))
    return target[target != -99].tolist()


@pytest.mark.parametrize(
    ("operation", "expected"),
    [("add", [3, 4]), ("sub", [-3, -2]), ("mul", [0, 3]), ("shl", [0, 8])],
)
def test_alu_works_on_slots(operation: str, expected: list[int]) -> None:
    records = f"""
      au.tu t0 = 0 to 2 step 1
      au.alu s0 on t0 = {operation} t0, 3
      au.push t0 ite id 1 (s0)
    """
    assert collect(records, {}) == expected


def test_address_is_base_plus_product_plus_sum() -> None:
    records = """
      au.arg a0 "m" : memref<?x?xi32>
      au.arg a1 "m.pitch" : index
      au.tu t0 = 0 to 3 step 1
      au.mem s0 on t0 = a0[t0 * a1 + 2] : i32
      au.push t0 ite id 1 (s0)
    """
    storage = np.arange(30, dtype=np.int32).reshape(3, 10)
    assert collect(records, {"m": storage[:, :4]}) == [2, 12, 22]


def test_pitch_may_be_given() -> None:
    records = """
      au.arg a1 "m.pitch" : index
      au.tu t0 = 0 to 1 step 1
      au.alu s0 on t0 = add a1, 0
      au.push t0 ite id 1 (s0)
    """
    assert collect(records, {"m.pitch": 7, "m": np.zeros((2, 3))}) == [7]


def test_upper_bound_may_add_to_a_slot_of_the_parent() -> None:
    records = """
      au.tu t0 = 0 to 2 step 1
      au.tu t1 under t0 = t0 to t0 + 2 step 1
      au.push t1 ite id 1 (t1)
    """
    assert collect(records, {}) == [0, 1, 1, 2]


def test_next_is_the_value_of_the_next_iteration() -> None:
    records = """
      au.arg a0 "m" : memref<?xindex>
      au.tu t0 = 0 to 4 step 2
      au.mem s0 on t0 = a0[t0] : index
      au.next s1 on t0 = s0
      au.alu s2 on t0 = sub s1, s0
      au.push t0 ite id 1 (s2)
    """
    assert collect(records, {"m": np.array([1, 0, 5, 0, 20])}) == [4, 15]


def test_next_of_a_value_that_depends_on_another_stream_is_refused() -> None:
    records = """
      au.arg a0 "m" : memref<?xindex>
      au.tu t0 = 0 to 2 step 1
      au.alu s2 on t0 = add t0, 0
      au.mem s0 on t0 = a0[s2] : index
      au.next s1 on t0 = s0
      au.push t0 ite id 1 (s1)
    """
    message = "source of au.next s1 must depend on no other stream of t0, not on s2"
    with pytest.raises(CheckError, match=whole(message)):
        collect(records, {"m": np.zeros(4, np.int64)})


def test_integer_may_be_popped_in_any_width_and_a_float_in_its_own() -> None:
    records = """
      au.arg a0 "m" : memref<?x{0}>
      au.tu t0 = 0 to 2 step 1
      au.mem s0 on t0 = a0[t0] : {0}
      au.push t0 ite id 1 (s0)
    """
    assert collect(records.format("i8"), {"m": np.array([-1, 2], np.int8)}, "i32") == [-1, 2]
    floats = {"m": np.array([0.5, 2.0], np.float32)}
    assert collect(records.format("f32"), floats, "f32") == [0.5, 2.0]
    message = "type popped in case 1 must be the type pushed f32, not index"
    with pytest.raises(CheckError, match=whole(message)):
        collect(records.format("f32"), floats)


ROW = """
  au.arg a0 "m" : memref<?x?xf32>
  au.arg a1 "m.pitch" : index
  au.arg a2 "row" : index
  au.arg a3 "first" : index
  au.arg a4 "length" : index
  au.arg a5 "D" : index
  au.tu t0 = 0 to 1 step 1
  au.row r0 on t0 = a0[a2 * a1 + a3] len a4 clip a3 to a5 : f32
  au.push t0 ite id 1 (r0)
"""


def row(row: int, first: int, length: int, extent: int = 5) -> list[float]:
    storage = np.full((3, 7), np.nan, np.float32)
    storage[:, :5] = np.arange(15).reshape(3, 5)
    values = {"row": row, "first": first, "length": length, "D": extent}
    target = np.full(4, -1, np.float32)
    launch(ROW, {"m": storage[:, :5], **values}, target, compute=VECTORS)
    return target.tolist()


def test_row_is_clipped_and_missing_lanes_are_zero() -> None:
    assert row(1, 0, 4) == [5, 6, 7, 8]
    assert row(1, 3, 4) == [8, 9, 0, 0]


def test_row_longer_than_the_vector_popped_is_refused() -> None:
    message = "row popped as a vector in case 1 must have at most 4 elements, not 5"
    with pytest.raises(CheckError, match=whole(message)):
        row(1, 0, 5)


@pytest.mark.parametrize(
    ("where", "length", "found"),
    [
        ((3, 0, 4), 4, (3, 0)),
        ((0, 6, 1, 9), 1, (0, 6)),
        ((0, 3, 4, 9), 4, (0, 3)),
        ((0, 3, 4, 2), -1, (0, 3)),
    ],
    ids=["past_the_last_row", "in_the_padding", "into_the_padding", "negative_length"],
)
def test_row_outside_is_refused(
    where: tuple[int, ...], length: int, found: tuple[int, int]
) -> None:
    message = (
        f"position of au.row r0 of length {length} must be inside the memref's shape (3, 5), "
        f"not {found}"
    )
    with pytest.raises(IndexError, match=whole(message)):
        row(*where)


TABLE = """
  au.arg a0 "m" : memref<?xf32>
  au.arg a1 "at" : index {request}
  au.arg a2 "rows" : index {request}
  au.arg a3 "pitch" : index {request}
  au.arg a4 "length" : index {request}
  au.arg a5 "row" : index {request}
  au.tu t0 = 0 to 1 step 1
  au.row r0 on t0 = a0[a5 * a3] at a1 rows a2 len a4 : f32 {bytes, keep}
  au.push t0 ite id 1 (r0)
"""


def table_row(row: int, at: int = 1, pitch: int = 12, length: int = 8) -> list[float]:
    values = {"at": at, "rows": 2, "pitch": pitch, "length": length, "row": row}
    target = np.full(4, -1, np.float32)
    memory = np.arange(40, dtype=np.float32)
    launch(TABLE, {"m": memory, **values}, target, compute=VECTORS)
    return target.tolist()


def test_table_lies_64_bytes_times_its_distance_from_the_base() -> None:
    assert table_row(1) == [16 + 3, 16 + 4, 0, 0]
    assert table_row(0, at=2, length=4) == [32, 0, 0, 0]


@pytest.mark.parametrize("row", [2, -1])
def test_index_is_a_row_of_its_table(row: int) -> None:
    message = f"au.row r0: index must be from 0 to 1, not {row}"
    with pytest.raises(IndexError, match=whole(message)):
        table_row(row)


@pytest.mark.parametrize("shape", [{"pitch": 14}, {"length": 14}])
def test_bytes_are_whole_elements(shape: dict[str, int]) -> None:
    message = "au.row r0: bytes must be a multiple of 4, an element, not 14"
    with pytest.raises(CheckError, match=whole(message)):
        table_row(0, **shape)


ELEMENT = """
  au.arg a0 "m" : memref<?xindex>
  au.arg a1 "k" : index
  au.tu t0 = 0 to 1 step 1
  au.mem s0 on t0 = a0[a1] : index
  au.push t0 ite id 1 (s0)
"""


@pytest.mark.parametrize("index", [3, -1])
def test_load_outside_is_refused(index: int) -> None:
    message = f"position of au.mem s0 must be inside the memref's shape (3,), not ({index},)"
    with pytest.raises(IndexError, match=whole(message)):
        collect(ELEMENT, {"m": np.zeros(3, np.int64), "k": index})


def test_symbol_without_a_value_is_refused() -> None:
    with pytest.raises(KeyError) as caught:
        collect(ELEMENT, {"m": np.zeros(3, np.int64)})
    assert caught.value.args == ("symbol must be one of the environment (m), not 'k'",)


def test_pitch_of_a_symbol_without_a_value_is_refused() -> None:
    with pytest.raises(KeyError) as caught:
        collect('au.arg a0 "m.pitch" : index au.tu t0 = 0 to 1 step 1', {})
    assert caught.value.args == ("symbol must be one of the environment (none), not 'm.pitch'",)


def test_symbol_of_another_kind_is_refused() -> None:
    with pytest.raises(TypeError, match=whole("symbol 'k' must be an integer, not 1.5")):
        collect(ELEMENT, {"m": np.zeros(3, np.int64), "k": 1.5})
    message = "symbol 'm' must be an array of int64 for memref<?xindex>, not float64"
    with pytest.raises(TypeError, match=whole(message)):
        collect(ELEMENT, {"m": np.zeros(3), "k": 1})


def test_memory_whose_elements_do_not_touch_is_refused() -> None:
    message = "row elements of symbol 'm' must be 8 bytes apart, not 16"
    with pytest.raises(ValueError, match=whole(message)):
        collect(ELEMENT, {"m": np.zeros(6, np.int64)[::2], "k": 1})


@pytest.mark.parametrize("count", [0, 2])
def test_number_of_programs_is_that_of_compute_loops(count: int) -> None:
    program = bag_texts.parse_au('au.program @p target "small" { au.tu t0 = 0 to 0 step 1 }')
    compute = bag_texts.parse(COMPUTE.format(type="index"))
    message = f"number of access programs must be 1, that of compute loops, not {count}"
    with pytest.raises(CheckError, match=whole(message)):
        run_au([program] * count, compute, "f", [np.zeros(1, np.int64)], {})
