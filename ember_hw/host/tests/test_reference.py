# pyright: basic
import doctest
import re
import time

import numpy as np
import pytest

from ember_hw.host import reference
from ember_hw.host.reference import bit_equal, count_mismatches, error_bound, exact, true
from ember_hw.host.request import LookupRequest, normalise_request
from ember_hw.host.tests.cases import CASES, Case

ONE = np.float32(1.0)


def _request(lengths, indices, num_embeddings) -> LookupRequest:
    offsets = np.cumsum([0, *lengths])
    return normalise_request(
        np.array(indices, np.int64),
        offsets,
        num_embeddings=num_embeddings,
        include_last_offset=True,
    )


def _scalar_loop(table, request: LookupRequest) -> np.ndarray:
    """The definition: one accumulator per bag and column, one addition per lookup."""
    out = np.zeros((request.num_bags, table.shape[1]), np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for bag in range(request.num_bags):
            for j in range(request.offsets[bag], request.offsets[bag + 1]):
                out[bag] = out[bag] + table[request.indices[j]]
    return out


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_exact_is_the_scalar_loop_bit_for_bit(case: Case):
    assert bit_equal(
        exact(case.table(), case.request()), _scalar_loop(case.table(), case.request())
    )


def _scalar_pool(table, request: LookupRequest, mode: str) -> np.ndarray:
    """The definition of every mode, one Python float at a time."""
    out = np.zeros((request.num_bags, table.shape[1]), np.float32)
    with np.errstate(all="ignore"):
        for bag, column in np.ndindex(out.shape):
            value = np.float32(-np.inf if mode == "max" else 0.0)
            places = range(request.offsets[bag], request.offsets[bag + 1])
            for j in places:
                row = table[request.indices[j], column]
                if request.weights is not None:
                    row = request.weights[j] * row
                if mode != "max":
                    value = value + row
                elif np.isnan(value) or np.isnan(row):
                    value = np.float32(np.nan)
                elif row > value or (row == value and not np.signbit(row)):
                    value = row
            if mode == "mean" and places:
                value = value / np.float32(len(places))
            out[bag, column] = value if places else 0.0
    return out


@pytest.mark.parametrize("mode", ["mean", "max"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_mode_is_its_scalar_loop_bit_for_bit(case: Case, mode: str):
    if case.large:
        pytest.skip("a Python step for each element")
    table, request = case.table(), case.request()
    assert bit_equal(exact(table, request, mode), _scalar_pool(table, request, mode))
    bound = error_bound(table, request, mode)
    finite = np.isfinite(bound)
    found = exact(table, request, mode)[finite].astype(np.float64)
    assert (np.abs(found - true(table, request, mode)[finite]) <= bound[finite]).all()


def test_weights_multiply_rows_before_they_are_added():
    random = np.random.default_rng(3)
    table = random.standard_normal((5, 3)).astype(np.float32)
    request = normalise_request(
        random.integers(0, 5, 9),
        np.array([0, 0, 2]),
        num_embeddings=5,
        per_sample_weights=random.standard_normal(9).astype(np.float32),
    )
    assert bit_equal(exact(table, request), _scalar_pool(table, request, "sum"))
    difference = np.abs(exact(table, request).astype(np.float64) - true(table, request))
    assert (difference <= error_bound(table, request)).all()


def test_weight_zero_of_a_row_that_is_not_finite_gives_nan():
    table = np.array([[np.inf], [1.0]], np.float32)
    request = normalise_request(
        np.array([0, 1]),
        np.array([0]),
        num_embeddings=2,
        per_sample_weights=np.array([0.0, 1.0], np.float32),
    )
    assert np.isnan(exact(table, request)).all()


def test_maximum_of_zeros_of_both_signs_is_positive():
    table = np.array([[0.0], [-0.0]], np.float32)
    for order in ([0, 1], [1, 0]):
        pooled = exact(table, _request([2], order, 2), "max")
        assert bit_equal(pooled, np.zeros((1, 1), np.float32))


@pytest.mark.parametrize("chunk", [1, 3])
def test_exact_does_not_depend_on_its_chunk(monkeypatch, chunk):
    case = next(case for case in CASES if case.name == "lengths_mixed")
    monkeypatch.setattr(reference, "_CHUNK_LOOKUPS", chunk)
    assert bit_equal(case.expected(), _scalar_loop(case.table(), case.request()))


def test_exact_is_sequential_in_a_long_bag_of_one_column():
    # Pairwise summation would not lose the small addends.
    table = np.array([[2.0**24], [1.0]], np.float32)
    request = _request([10_001], [0] + [1] * 10_000, 2)
    assert exact(table, request).tolist() == [[2.0**24]]
    assert true(table, request).tolist() == [[2.0**24 + 10_000]]


def test_exact_takes_the_order_of_the_indices():
    table = np.array([[1.0], [2.0**24]], np.float32)
    request = _request([3, 3], [0, 0, 1, 1, 0, 0], 2)
    assert exact(table, request).tolist() == [[2.0**24 + 2], [2.0**24]]


def test_accumulator_starts_at_plus_zero():
    table = np.array([[-0.0, -0.0]], np.float32)
    for lengths in ([0], [1], [5], [1] * 9):
        result = exact(table, _request(lengths, [0] * sum(lengths), 1))
        assert not np.signbit(result).any()


def test_denormals_are_kept():
    table = np.array([[2.0**-149]], np.float32)
    assert exact(table, _request([3], [0, 0, 0], 1)).tolist() == [[3 * 2.0**-149]]


def test_nan_and_infinity_stay_in_their_bag():
    table = np.array([[1.0], [np.nan], [np.inf], [-np.inf]], np.float32)
    result = exact(table, _request([1, 2, 2, 2, 1], [0, 1, 0, 2, 0, 2, 3, 0], 4))
    np.testing.assert_array_equal(result[:, 0], [1.0, np.nan, np.inf, np.nan, 1.0])


def test_strided_table_equals_its_contiguous_copy():
    case = CASES[0]
    wide = np.full((50, 20), np.nan, np.float32)
    wide[:, 1:17:2] = case.table()
    assert bit_equal(exact(wide[:, 1:17:2], case.request()), case.expected())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_exact_is_within_the_bound_of_true(case: Case):
    table, request = case.table(), case.request()
    expected, rounded = exact(table, request), true(table, request)
    bound = error_bound(table, request)
    assert bound.shape == rounded.shape == expected.shape
    finite = np.isfinite(bound)
    difference = np.abs(expected[finite].astype(np.float64) - rounded[finite])
    assert (difference <= bound[finite]).all()
    assert np.isfinite(expected[finite]).all()


def test_error_bound_is_lookups_times_magnitude():
    table = np.array([[1.0, -2.0], [-4.0, 8.0]], np.float32)
    bound = error_bound(table, _request([2, 0, 1], [0, 1, 1], 2))
    assert (bound * 2.0**23).tolist() == [[10.0, 20.0], [0.0, 0.0], [4.0, 8.0]]


def test_true_is_rounded_once():
    table = np.array([[1.0], [2.0**-24], [2.0**-40]], np.float32)
    request = _request([3], [0, 1, 2], 3)
    assert true(table, request)[0, 0] == np.nextafter(ONE, np.float32(2.0))
    assert exact(table, request)[0, 0] == ONE


@pytest.mark.parametrize("function", [exact, true, error_bound])
def test_table_of_other_shape_or_dtype_is_refused(function):
    request = _request([1], [0], 1)
    text = "table must be 2-D (num_embeddings, D), not of shape (3,)"
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        function(np.zeros(3, np.float32), request)
    text = "table must be of dtype float32, float16, bfloat16, not float64"
    with pytest.raises(TypeError, match=f"^{re.escape(text)}$"):
        function(np.zeros((3, 1), np.float64), request)


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ([1.0], [1.0], True),
        ([0.0], [-0.0], False),
        ([np.nan], [-np.nan], True),
        ([np.nan], [1.0], False),
        ([1.0], [1.0, 1.0], False),
        ([], [], True),
    ],
)
def test_bit_equal(left, right, same):
    assert bit_equal(np.array(left, np.float32), np.array(right, np.float32)) is same


def test_bit_equal_tells_dtypes_apart():
    assert not bit_equal(np.zeros(1, np.float32), np.zeros(1, np.float64))


def test_mismatches_are_bags_not_elements():
    expected = CASES[0].expected()
    assert count_mismatches(expected, expected) == 0
    pooled = expected.copy()
    pooled[1] += 1
    pooled[3, 2] = np.nan
    assert count_mismatches(pooled, expected) == 2
    assert count_mismatches(expected[:0], expected[:0]) == 0


def test_mismatches_of_another_shape_are_refused():
    text = "pooled rows must be of shape (3, 2), not (3, 1)"
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        count_mismatches(np.zeros((3, 1), np.float32), np.zeros((3, 2), np.float32))


@pytest.mark.parametrize("num_bags", [1, 943, 50_000], ids=["one", "943", "50000"])
def test_hundred_thousand_lookups_take_under_a_second(num_bags):
    random = np.random.default_rng(0)
    cuts = np.sort(random.integers(0, 100_001, num_bags - 1))
    request = normalise_request(
        random.integers(0, 1683, 100_000), np.concatenate(([0], cuts)), num_embeddings=1683
    )
    table = random.standard_normal((1683, 64), dtype=np.float32)
    start = time.process_time()
    exact(table, request)
    assert time.process_time() - start < 1.0


def test_examples_of_the_docstrings_hold():
    assert doctest.testmod(reference).attempted > 0
    assert doctest.testmod(reference).failed == 0
