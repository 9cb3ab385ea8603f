# pyright: basic
import doctest
import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ember_hw.host import request as request_module
from ember_hw.host.request import LookupRequest, normalise_request
from ember_hw.host.tests.cases import CASES, Case

INT32, INT64 = np.int32, np.int64


def _request(indices, offsets=None, **options) -> LookupRequest:
    return normalise_request(
        indices, offsets, **{"num_embeddings": 10, "table_name": "user", **options}
    )


def _ints(*values: int, dtype: type = INT64):
    return np.array(values, dtype=dtype)


def _refuses(error: type[Exception], text: str):
    return pytest.raises(error, match=f"^{re.escape(text)}$")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_row_pointers_are_those_of_torch_call(case: Case):
    request = case.request()
    assert request.offsets.dtype == INT64
    assert request.indices.dtype == case.indices.dtype
    assert request.offsets.shape == (request.num_bags + 1,)
    assert request.indices.flags.c_contiguous
    assert request.offsets.flags.c_contiguous
    assert request.indices.tolist() == case.indices.reshape(-1).tolist()
    if case.offsets is None:
        rows, columns = case.indices.shape
        assert request.offsets.tolist() == [row * columns for row in range(rows + 1)]
    else:
        given_offsets = case.offsets.tolist()
        ends = [] if case.include_last_offset else [case.indices.size]
        assert request.offsets.tolist() == given_offsets + ends


def test_contiguous_indices_are_not_copied():
    indices = _ints(1, 2, 3)
    assert np.shares_memory(_request(indices, _ints(0)).indices, indices)


def test_strided_indices_equal_their_contiguous_copy():
    backing = np.arange(10)
    request = _request(backing[::-3], backing[0:4:2])
    assert request.indices.tolist() == [9, 6, 3, 0]
    assert request.offsets.tolist() == [0, 2, 4]
    assert _request(backing.reshape(5, 2).T).indices.tolist() == [0, 2, 4, 6, 8, 1, 3, 5, 7, 9]


def test_callers_offsets_are_not_shared():
    offsets = _ints(0, 2)
    request = _request(_ints(1, 2), offsets, include_last_offset=True)
    offsets[1] = 7
    assert request.offsets.tolist() == [0, 2]


@pytest.mark.parametrize("include_last_offset", [False, True])
def test_empty_offsets_without_indices_are_no_bag(include_last_offset):
    request = _request(_ints(), _ints(), include_last_offset=include_last_offset)
    assert request.num_bags == 0
    assert request.offsets.tolist() == [0]


def test_torch_tensors_are_taken_as_numpy_arrays_are():
    import torch

    request = _request(
        torch.tensor([1, 2, 3], dtype=torch.int32), torch.tensor([0, 2], dtype=torch.int64)
    )
    assert request.indices.dtype == INT32
    assert request.indices.tolist() == [1, 2, 3]
    assert request.offsets.tolist() == [0, 2, 3]


@pytest.mark.parametrize("dtype", ["bool", "float32", "uint8", "int16", "uint64", ">i8"])
@pytest.mark.parametrize("argument", ["indices", "offsets"])
def test_other_dtypes_are_refused(argument, dtype):
    arguments = {"indices": _ints(1, 1), "offsets": _ints(0)}
    arguments[argument] = np.zeros(1, dtype=dtype)
    text = f"{argument} must be of dtype int32 or int64, not {dtype}; nothing is cast"
    with _refuses(TypeError, f"{text} (table 'user')"):
        _request(**arguments)


@pytest.mark.parametrize("dtype", ["bool", "float32", "bfloat16", "uint8", "int16"])
def test_other_torch_dtypes_are_refused(dtype):
    import torch

    text = f"indices must be of dtype int32 or int64, not {dtype}; nothing is cast (table 'user')"
    with _refuses(TypeError, text):
        _request(torch.zeros(3, dtype=getattr(torch, dtype)), _ints(0))


@pytest.mark.parametrize(
    ("value", "kind"),
    [([1, 2], "list"), (3, "int"), (np.ma.masked_array([1], mask=[True]), "MaskedArray")],
    ids=["list", "int", "masked"],
)
@pytest.mark.parametrize("argument", ["indices", "offsets"])
def test_other_kinds_are_refused(argument, value, kind):
    arguments = {"indices": _ints(1, 1), "offsets": _ints(0), argument: value}
    text = f"{argument} must be a NumPy array or a torch tensor, not {kind} (table 'user')"
    with _refuses(TypeError, text):
        _request(**arguments)


def test_torch_tensors_without_dense_data_are_refused():
    import torch

    parts = [torch.tensor([1, 2]), torch.tensor([3])]
    tensors = {
        "meta": torch.zeros(3, dtype=torch.int64, device="meta"),
        "torch.sparse_coo": torch.tensor([[0, 1]]).to_sparse(),
        "nested": torch.nested.nested_tensor(parts, layout=torch.jagged),
    }
    for kind, tensor in tensors.items():
        text = f"indices must be a dense tensor with data, not a {kind} tensor (table 'user')"
        with _refuses(TypeError, text):
            _request(tensor)


@pytest.mark.parametrize(
    ("indices", "offsets", "text"),
    [
        (
            _ints(1, 2),
            None,
            "offsets must be given with 1-D indices, not None; 2-D indices (B, L) need none",
        ),
        (
            np.zeros((2, 2, 2), INT64),
            None,
            "indices must be 1-D with offsets or 2-D (B, L), not of shape (2, 2, 2)",
        ),
        (
            np.array(3),
            _ints(0),
            "indices must be 1-D with offsets or 2-D (B, L), not of shape ()",
        ),
        (
            np.zeros((2, 2), INT64),
            _ints(0, 2),
            "offsets must be None with 2-D indices, where each row is a bag, not ndarray",
        ),
        (_ints(1, 2), np.zeros((1, 2), INT64), "offsets must be 1-D, not of shape (1, 2)"),
        (
            _ints(1, 2),
            _ints(),
            "offsets must have an entry for each bag, not be empty with 2 indices",
        ),
        (_ints(1, 2), _ints(1, 2), "offsets[0] must be 0, not 1"),
        (_ints(1, 2), _ints(-1), "offsets[0] must be 0, not -1"),
        (_ints(1, 2), _ints(0, -1), "offsets[1] must be at least 0, not -1"),
        (_ints(1, 2), _ints(0, 2, 1), "offsets[2] must be at least offsets[1] = 2, not 1"),
        (
            _ints(1, 2),
            _ints(0, 3, 1),
            "offsets[1] must be at most 2, the number of indices, not 3",
        ),
        (
            _ints(1, 2),
            _ints(0, 2**63 - 1, -(2**63)),
            "offsets[1] must be at most 2, the number of indices, not 9223372036854775807",
        ),
    ],
)
@pytest.mark.parametrize("include_last_offset", [False, True])
def test_shapes_and_offsets_that_make_no_bags_are_refused(
    indices, offsets, text, include_last_offset
):
    with _refuses(ValueError, f"{text} (table 'user')"):
        _request(indices, offsets, include_last_offset=include_last_offset)


@pytest.mark.parametrize(
    ("indices", "offsets", "position", "value"),
    [
        (_ints(1, 10, 11), _ints(0), "1", 10),
        (_ints(1, -1), _ints(0), "1", -1),
        (_ints(-1, 1, dtype=INT32), _ints(0), "0", -1),
        (_ints(0, 2**32), _ints(0), "1", 2**32),
        (_ints(-(2**63)), _ints(0), "0", -(2**63)),
        (_ints(2**63 - 1), _ints(0), "0", 2**63 - 1),
        (_ints(1, 2, 3, 4, 5, 10).reshape(2, 3), None, "1, 2", 10),
    ],
)
def test_index_outside_the_table_is_refused(indices, offsets, position, value):
    text = f"indices[{position}] must be in [0, 10), the rows of table 'user', not {value}"
    with _refuses(IndexError, text):
        _request(indices, offsets)


def test_trailing_index_outside_the_table_is_refused():
    text = "indices[2] must be in [0, 10), the rows of table 'user', not 10"
    with _refuses(IndexError, text):
        _request(_ints(1, 2, 10), _ints(0, 2), include_last_offset=True)


def test_lookup_in_a_zero_row_table_is_refused():
    text = "indices[0] must be in [0, 0), the rows of table 'user', not 0"
    with _refuses(IndexError, text):
        _request(_ints(0), _ints(0), num_embeddings=0)


def test_rows_from_2_to_31_on_have_no_name_in_the_access_unit():
    last = _ints(2**31 - 1, dtype=INT32)
    assert _request(last, _ints(0), num_embeddings=2**33).indices.tolist() == [2**31 - 1]
    rule = f"[0, {2**31}), the rows of table 'user' that the access unit can name"
    for index, dtype in ((-5, INT32), (2**31, INT64)):
        with _refuses(IndexError, f"indices[1] must be in {rule}, not {index}"):
            _request(_ints(1, index, dtype=dtype), _ints(0), num_embeddings=2**33)


def _as_many_as(count: int) -> np.ndarray:
    """Zeros that take no memory."""
    return np.broadcast_to(INT64(0), count)


@pytest.mark.parametrize(
    ("indices", "offsets", "what"),
    [
        (_as_many_as(2**31), _ints(0), "indices"),
        (_ints(), _as_many_as(2**31), "offsets"),
        (_as_many_as(2**31).reshape(2**16, 2**15), None, "indices"),
        (np.zeros((2**31, 0), INT64), None, "rows of indices"),
    ],
)
def test_more_than_the_access_unit_counts_is_refused_at_once(indices, offsets, what):
    text = (
        f"{what} must be at most 2147483647, the largest 32-bit value of the access unit, "
        "not 2147483648; split the request (table 'user')"
    )
    with _refuses(ValueError, text):
        _request(indices, offsets)


def test_negative_num_embeddings_is_refused():
    with _refuses(ValueError, "num_embeddings must be at least 0, not -1"):
        _request(_ints(), _ints(), num_embeddings=-1)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"mode": "avg"}, ValueError, "mode must be 'sum', 'mean' or 'max', not 'avg'"),
        (
            {"mode": "max", "per_sample_weights": np.ones(2, np.float32)},
            NotImplementedError,
            "mode must be 'sum' with per_sample_weights, not 'max'",
        ),
        (
            {"per_sample_weights": np.ones(2)},
            TypeError,
            "per_sample_weights must be of dtype float32, not float64; nothing is cast",
        ),
        (
            {"per_sample_weights": np.ones(3, np.float32)},
            ValueError,
            "per_sample_weights must be of shape (2,), not (3,)",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(options, error, text):
    with _refuses(error, f"{text} (table 'user')"):
        _request(_ints(1, 2), _ints(0), **options)


@pytest.mark.parametrize("padding_idx", [-11, 10])
def test_padding_outside_the_table_is_refused(padding_idx):
    text = (
        "padding_idx must be in [-10, 10), the rows of table 'user' counted from either end, "
        f"not {padding_idx}"
    )
    with _refuses(ValueError, text):
        _request(_ints(1, 2), _ints(0), padding_idx=padding_idx)


@pytest.mark.parametrize("padding_idx", [3, -7])
def test_padding_is_taken_out_of_bags(padding_idx):
    weights = np.arange(6, dtype=np.float32)
    request = _request(
        _ints(3, 1, 3, 3, 2, 3),
        _ints(0, 2, 4, 4),
        padding_idx=padding_idx,
        per_sample_weights=weights,
    )
    assert request.indices.tolist() == [1, 2]
    assert request.offsets.tolist() == [0, 1, 1, 1, 2]
    assert request.weights is not None
    assert request.weights.tolist() == [1.0, 4.0]


def test_padding_of_trailing_indices_changes_no_bag():
    request = _request(_ints(1, 3, 2, 3), _ints(0, 2), include_last_offset=True, padding_idx=3)
    assert request.offsets.tolist() == [0, 1]


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_all_modes_are_taken(mode):
    assert _request(_ints(1, 2), _ints(0), mode=mode).weights is None


def test_weights_of_two_dimensional_indices_have_their_shape():
    weights = np.arange(4, dtype=np.float32).reshape(2, 2).T
    request = _request(_ints(1, 2, 3, 4).reshape(2, 2), per_sample_weights=weights)
    assert request.weights is not None
    assert request.weights.tolist() == [0.0, 2.0, 1.0, 3.0]


def test_the_call_after_a_refused_one_is_right():
    with pytest.raises(IndexError):
        _request(_ints(10), _ints(0))
    assert _request(_ints(9), _ints(0)).indices.tolist() == [9]


_INT_DTYPES = st.sampled_from([INT32, INT64])


@given(
    lengths=st.lists(st.integers(0, 6), max_size=12),
    index_dtype=_INT_DTYPES,
    offset_dtype=_INT_DTYPES,
    trailing=st.integers(0, 3),
    include_last_offset=st.booleans(),
    data=st.data(),
)
def test_legal_bags_come_back_as_given(
    lengths, index_dtype, offset_dtype, trailing, include_last_offset, data
):
    total = sum(lengths) + (trailing if include_last_offset else 0)
    indices = data.draw(hnp.arrays(index_dtype, total, elements=st.integers(0, 9)))
    ends = np.cumsum([0, *lengths], dtype=offset_dtype)
    offsets = ends if include_last_offset else ends[:-1]
    request = _request(indices, offsets, include_last_offset=include_last_offset)
    assert np.diff(request.offsets).tolist() == lengths
    assert request.indices.tolist() == indices.tolist()


@given(
    indices=hnp.arrays(_INT_DTYPES, st.integers(0, 8), elements=st.integers(-2, 11)),
    offsets=hnp.arrays(_INT_DTYPES, st.integers(0, 5), elements=st.integers(-1, 9)),
    include_last_offset=st.booleans(),
)
def test_every_input_is_either_legal_or_refused_as_documented(
    indices, offsets, include_last_offset
):
    n = indices.size
    steps = [*offsets.tolist(), n]
    legal_offsets = (
        steps[0] == 0 and all(a <= b for a, b in itertools.pairwise(steps))
        if offsets.size
        else n == 0
    )
    legal_indices = all(0 <= index < 10 for index in indices.tolist())
    try:
        _request(indices, offsets, include_last_offset=include_last_offset)
    except ValueError:
        assert not legal_offsets
    except IndexError:
        assert legal_offsets
        assert not legal_indices
    else:
        assert legal_offsets
        assert legal_indices


def test_examples_of_the_docstrings_hold():
    assert doctest.testmod(request_module).attempted > 0
    assert doctest.testmod(request_module).failed == 0
