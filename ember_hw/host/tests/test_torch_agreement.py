# pyright: basic
"""PyTorch as a second opinion; `test_torch_divergences` has where it differs."""

import numpy as np
import pytest
import torch

from ember_hw.host.reference import error_bound
from ember_hw.host.tests.cases import CASES, Case

# torch raises for a 2-D lookup of bags without a column, where the contract gives zeros.
_TORCH_CANT = {"2d_no_columns", "2d_nothing"}


def _torch_bag(case: Case) -> np.ndarray:
    bag = torch.nn.EmbeddingBag.from_pretrained(
        torch.from_numpy(case.table()), mode="sum", include_last_offset=case.include_last_offset
    )
    offsets = None if case.offsets is None else torch.from_numpy(case.offsets)
    return bag(torch.from_numpy(case.indices), offsets).numpy()


def _has_trailing(case: Case) -> bool:
    request = case.request()
    return bool(request.offsets[-1] < request.indices.size)


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.name not in _TORCH_CANT and not _has_trailing(case)],
    ids=lambda case: case.name,
)
def test_torch_agrees_within_the_rounding_of_two_orders(case: Case):
    # torch is free in its order of summation; both stay within the bound of the true sum.
    expected, answer = case.expected(), _torch_bag(case)
    assert answer.shape == expected.shape
    bound = error_bound(case.table(), case.request())
    finite = np.isfinite(bound)
    difference = np.abs(expected[finite].astype(np.float64) - answer[finite])
    assert (difference <= 2 * bound[finite]).all()
    np.testing.assert_array_equal(answer[~finite], expected[~finite])
