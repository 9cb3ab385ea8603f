from __future__ import annotations

import re

import numpy as np
import pytest

from ember_hw.errors import DeviceError, ProgramError
from ember_hw.host.kernels import Calls, Output, Update, Variables, accumulate, add_in_order
from ember_hw.host.reference import bit_equal


def one_by_one(sums: np.ndarray, cells: np.ndarray, values: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        for cell, value in zip(cells, values, strict=True):
            sums[cell] += value
    return sums


def mixed_values(random: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    values = random.standard_normal(shape, np.float32)
    values *= np.float32(2.0) ** random.integers(-20, 20, shape).astype(np.float32)
    return values


@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize("cells", [1, 3, 40])
@pytest.mark.parametrize("columns", [1, 5])
@pytest.mark.parametrize("calls", [0, 1, 200])
def test_additions_happen_in_order_within_each_cell(
    is_sorted: bool, cells: int, columns: int, calls: int
) -> None:
    random = np.random.default_rng([cells, columns, calls])
    keys = random.integers(0, cells, calls)
    keys = np.sort(keys) if is_sorted else keys
    values = mixed_values(random, (calls, columns))
    start = mixed_values(random, (cells, columns))
    sums = start.copy()
    add_in_order(sums, keys, values)
    assert bit_equal(sums, one_by_one(start, keys, values))


@pytest.mark.parametrize("is_sorted", [True, False])
def test_one_long_cell_is_summed_in_order_across_its_parts(is_sorted: bool) -> None:
    random = np.random.default_rng(0)
    keys = np.zeros(9000, np.int64)
    if not is_sorted:
        keys[0] = 1
    values = mixed_values(random, (keys.size, 2))
    sums = np.zeros((2, 2), np.float32)
    add_in_order(sums, keys, values)
    assert bit_equal(sums, one_by_one(np.zeros((2, 2), np.float32), keys, values))


def test_infinities_and_nans_of_a_cell_stay_in_it_without_a_warning() -> None:
    values = np.array([[np.inf], [1.0], [-np.inf], [np.nan], [3e38], [3e38]], np.float32)
    sums = np.zeros((4, 1), np.float32)
    add_in_order(sums, np.array([0, 1, 0, 2, 3, 3]), values)
    assert bit_equal(
        sums, np.array([[np.nan], [1.0], [np.nan], [np.inf]], np.float32)[[0, 1, 2, 3]]
    )


def test_parts_that_are_cut_short_leave_their_neighbours_alone() -> None:
    output = Output("out", rows=2, columns=6, part_columns=4)
    keys, columns = np.array([0, 0, 1]), np.array([0, 4, 4])
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    values[1:, 2:] = np.nan  # beyond the row's end
    output.add(keys, columns, values)
    assert output.result().tolist() == [[0, 1, 2, 3, 4, 5], [0, 0, 0, 0, 8, 9]]


@pytest.mark.parametrize(
    ("keys", "columns", "message"),
    [
        ([0, 2], None, "row of output 'out' must be in [0, 2), not 2"),
        ([-1, 0], None, "row of output 'out' must be in [0, 2), not -1"),
        ([0, 0], [0, 3], "column of output 'out' must be in [0, 6) and a multiple of 2, not 3"),
        ([0, 0], [0, 6], "column of output 'out' must be in [0, 6) and a multiple of 2, not 6"),
    ],
)
def test_calls_outside_the_output_are_refused(
    keys: list[int], columns: list[int] | None, message: str
) -> None:
    output = Output("out", rows=2, columns=6, part_columns=2 if columns else 6)
    values = np.zeros((2, 2 if columns else 6), np.float32)
    with pytest.raises(DeviceError, match=f"^{re.escape(message)}$"):
        output.add(np.array(keys), None if columns is None else np.array(columns), values)


def test_rows_of_another_width_are_refused() -> None:
    output = Output("out", rows=2, columns=6, part_columns=4)
    message = "rows added to output 'out' must be 6 elements long, not 4"
    with pytest.raises(ProgramError, match=f"^{re.escape(message)}$"):
        output.add(np.array([0]), None, np.zeros((1, 4), np.float32))


def test_variables_are_read_before_an_update_of_the_same_time() -> None:
    variables = Variables({0: 5})
    variables.advance([(np.array([3, 8]), Update(0, 2, is_set=False))])
    assert variables.at(0, np.array([0, 3, 4, 8, 9])).tolist() == [5, 5, 7, 7, 9]


def test_variables_last_from_chunk_to_chunk() -> None:
    variables = Variables({0: 0, 1: 7})
    for chunk in range(3):
        variables.advance([(np.array([1, 2]), Update(0, 1, is_set=False))])
        assert variables.at(0, np.array([0, 9])).tolist() == [2 * chunk, 2 * chunk + 2]
        assert variables.at(1, np.array([0, 9])).tolist() == [7, 7]
    variables.advance([])
    assert variables.at(0, np.array([0])).tolist() == [6]


def test_variables_that_are_set_count_from_there() -> None:
    variables = Variables({0: 10})
    increments = (np.array([1, 3, 5, 7]), Update(0, 1, is_set=False))
    resets = (np.array([4, 8]), Update(0, 100, is_set=True))
    variables.advance([increments, resets])
    assert variables.at(0, np.arange(1, 10)).tolist() == [10, 11, 11, 12, 100, 101, 101, 102, 100]


def test_weights_multiply_before_the_addition() -> None:
    output = Output("out", rows=1, columns=2, part_columns=2)
    rows = np.array([[1, 2], [3, 4]], np.float32)
    parameters = {
        "output": "out",
        "value": 1,
        "key": {"variable": 0, "initial": 0},
        "column": None,
        "weight": 0,
    }
    operands = (np.array([2, 10], np.float32), rows)
    accumulate(parameters, Calls(operands, {0: np.array([0, 0])}, {"out": output}))
    assert output.result().tolist() == [[32, 44]]
