# pyright: basic
"""PyTorch as a second opinion, and the one place where it differs from the contract for sums."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from ember_hw.host.reference import bit_equal, error_bound, exact
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


@dataclass(frozen=True)
class Divergence:
    """A lookup for which one release of torch gives another answer than the contract.

    Attributes
    ----------
    name : str
        What differs.
    torch_release : str
        The release it was seen in, "major.minor".
    case : Case
        The lookup.
    contract, torch : list
        The pooled rows of the contract, and those of that release.
    """

    name: str
    torch_release: str
    case: Case
    contract: list[list[float]]
    torch: list[list[float]]


DIVERGENCES = [
    Divergence(
        name="trailing indices of include_last_offset are added to the last bag",
        torch_release="2.13",
        case=Case(
            "trailing",
            num_embeddings=4,
            embedding_dim=1,
            indices=np.array([0, 1, 2, 0]),
            offsets=np.array([0, 1, 2]),
            include_last_offset=True,
        ),
        contract=[[0], [1]],
        torch=[[0], [3]],
    ),
]


@pytest.mark.parametrize("divergence", DIVERGENCES, ids=lambda divergence: divergence.name)
def test_contract_holds_where_torch_differs(divergence: Divergence):
    table = np.arange(divergence.case.num_embeddings, dtype=np.float32)[:, None]
    answer = exact(table, divergence.case.request())
    assert bit_equal(answer, np.array(divergence.contract, np.float32))


@pytest.mark.parametrize("divergence", DIVERGENCES, ids=lambda divergence: divergence.name)
def test_torch_still_differs(divergence: Divergence):
    release = ".".join(torch.__version__.split(".")[:2])
    if release != divergence.torch_release:
        pytest.skip(f"seen in torch {divergence.torch_release}, this is {release}")
    table = np.arange(divergence.case.num_embeddings, dtype=np.float32)[:, None]
    answer = torch.nn.functional.embedding_bag(
        torch.from_numpy(divergence.case.indices),
        torch.from_numpy(table),
        torch.from_numpy(divergence.case.offsets),
        mode="sum",
        include_last_offset=divergence.case.include_last_offset,
    )
    assert answer.tolist() == divergence.torch
