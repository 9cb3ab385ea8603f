# pyright: basic
"""Functions with torch's arguments: rows, tables without a module, and what is refused."""

from __future__ import annotations

import doctest
import gc
import inspect
import re

import pytest
import torch
import torch.nn.functional as theirs

import ember_hw
import ember_hw.nn.functional as ours
from ember_hw.errors import UnsupportedError
from ember_hw.host.nn import functional

INDICES, OFFSETS = torch.tensor([1, 2, 4, 5, 4, 3, 2, 9]), torch.tensor([0, 4])


@pytest.mark.parametrize("name", ["embedding", "embedding_bag"])
def test_arguments_are_torch_s_a_device_and_a_dtype(name):
    found = inspect.signature(getattr(ours, name)).parameters
    wanted = inspect.signature(getattr(theirs, name)).parameters
    more = ["device", "output_dtype"]
    assert [*found] == [*wanted, *more]
    assert {n: p.default for n, p in found.items() if n not in more} == {
        n: p.default for n, p in wanted.items()
    }


def test_rows_are_torch_s(device, counting):
    weight = torch.randn(10, 4)
    torch.testing.assert_close(
        ours.embedding_bag(INDICES, weight, OFFSETS),
        theirs.embedding_bag(INDICES, weight, OFFSETS),
    )
    assert torch.equal(ours.embedding(INDICES, weight), theirs.embedding(INDICES, weight))
    assert counting.launches == 2


def test_device_of_the_call_is_used(device, counting):
    weight = torch.randn(10, 4)
    with ember_hw.open_device("interpreter") as other:
        rows = ours.embedding_bag(INDICES, weight, OFFSETS, device=other)
        assert other.report.lookups == 8
    assert counting.launches == 0
    assert torch.equal(rows, ours.embedding_bag(INDICES, weight, OFFSETS))


def test_tables_are_forgotten_with_their_tensors(device):
    kept = torch.randn(10, 4)
    ours.embedding(INDICES, kept)
    before = len(functional._of_weights), len(device._loaded)
    weight = torch.randn(10, 4)
    ours.embedding(INDICES, weight)
    ours.embedding_bag(INDICES, weight, OFFSETS)
    assert len(functional._of_weights) == before[0] + 1
    assert len(device._loaded) == before[1] + 2
    del weight
    gc.collect()
    assert (len(functional._of_weights), len(device._loaded)) == before


def test_written_table_is_seen(device):
    weight = torch.zeros(10, 4)
    assert not ours.embedding(INDICES, weight).any()
    weight[4] = 1
    assert ours.embedding(INDICES, weight).sum() == 8


@pytest.mark.parametrize("name", ["embedding", "embedding_bag"])
@pytest.mark.parametrize(
    ("weight", "error", "message"),
    [
        ([[1.0]], TypeError, "weight must be a torch tensor, not list"),
        (torch.ones(3), ValueError, "weight must have 2 dimensions, not 1"),
        (
            torch.ones(3, 2, dtype=torch.float64),
            UnsupportedError,
            "weight must be of dtype float32, float16, bfloat16, not float64; convert the module "
            "with .float()",
        ),
        (
            torch.ones(3, 2).to_sparse(),
            TypeError,
            "weight must be a dense tensor with data, not a torch.sparse_coo tensor",
        ),
    ],
)
def test_tables_of_other_kinds_are_refused(device, counting, name, weight, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        getattr(ours, name)(torch.tensor([[0]]), weight)
    assert counting.launches == 0


@pytest.mark.parametrize("name", ["embedding", "embedding_bag"])
def test_max_norm_is_refused_with_the_remedy(device, name):
    message = (
        "max_norm must be None, not 1.5; renormalise the table once before it is loaded: "
        "weight.data.renorm_(2.0, 0, 1.5)"
    )
    with pytest.raises(UnsupportedError, match=f"^{re.escape(message)}$"):
        getattr(ours, name)(torch.tensor([[0]]), torch.ones(3, 2), max_norm=1.5)


def test_examples_of_the_docstrings_hold(device):
    results = doctest.testmod(functional)
    assert (results.attempted > 0, results.failed) == (True, 0)
