# pyright: basic
"""Nested tensors are values and offsets, at bags and at embeddings."""

from __future__ import annotations

import re

import pytest
import torch

from ember_hw import nn

PARTS = [torch.tensor([1, 2]), torch.tensor([], dtype=torch.int64), torch.tensor([9, 4, 4])]
VALUES, OFFSETS = torch.cat(PARTS), torch.tensor([0, 2, 2, 5])

pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")


def nested(parts, layout=torch.jagged, **options):
    return torch.nested.nested_tensor(parts, layout=layout, **options)


@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
def test_each_part_is_a_bag(device, layout):
    bag = nn.EmbeddingBag(10, 4, mode="sum", include_last_offset=True)
    scales = [torch.rand(len(part)) for part in PARTS]
    assert torch.equal(bag(nested(PARTS, layout)), bag(VALUES, OFFSETS))
    found = bag(nested(PARTS, layout), per_sample_weights=nested(scales, layout))
    assert torch.equal(found, bag(VALUES, OFFSETS, torch.cat(scales)))
    assert torch.equal(found, bag(nested(PARTS, layout), per_sample_weights=torch.cat(scales)))


def test_parts_of_a_longer_buffer_are_read_without_what_lies_between(device):
    bag = nn.EmbeddingBag(10, 4, mode="sum")
    buffer = torch.tensor([[1, 2, 7], [9, 4, 5]])
    holes = torch.nested.narrow(
        buffer, 1, torch.tensor([0, 1]), torch.tensor([2, 1]), layout=torch.jagged
    )
    assert torch.equal(bag(holes), bag(torch.tensor([1, 2, 4]), torch.tensor([0, 2])))


def test_no_part_is_no_bag(device):
    bag = nn.EmbeddingBag(10, 4, mode="sum")
    assert bag(nested([], torch.strided, dtype=torch.int64)).shape == (0, 4)


@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
def test_embedding_gives_a_nested_tensor(device, layout):
    rows = nn.Embedding(10, 4)
    found = rows(nested(PARTS, layout))
    assert found.layout is layout
    for part, wanted in zip(found.unbind(), PARTS, strict=True):
        assert torch.equal(part, rows.weight[wanted])


def test_gradient_goes_through_nested_weights(device):
    bag = nn.EmbeddingBag(10, 4, mode="sum")
    scales = nested([torch.rand(len(part)) for part in PARTS]).requires_grad_()
    bag(nested(PARTS), per_sample_weights=scales).sum().backward()
    assert scales.grad is not None
    torch.testing.assert_close(scales.grad.values(), bag.weight.detach().sum(1)[VALUES])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (nested(PARTS), torch.tensor([0])),
            "offsets must be None with a nested tensor, where each part is a bag, not Tensor "
            "(table 'weight')",
        ),
        (
            (nested([torch.tensor([[1, 2]])]),),
            "indices must be a nested tensor of vectors, not of parts with 2 dimensions (table "
            "'weight')",
        ),
        (
            (nested(PARTS), None, nested([torch.rand(2), torch.rand(1), torch.rand(2)])),
            "per_sample_weights must have parts of the lengths of indices, [2, 0, 3], "
            "not [2, 1, 2] (table 'weight')",
        ),
    ],
)
def test_what_does_not_fit_is_refused(device, counting, arguments, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        nn.EmbeddingBag(10, 4, mode="sum")(*arguments)
    assert counting.launches == 0
