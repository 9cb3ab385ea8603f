# pyright: basic
"""What looks like block-sparse attention and is another function must be left to torch."""

from __future__ import annotations

import pytest
import torch

from ember_hw.bench.fuzzing.op_models import Model
from ember_hw.compiler.frontend.tests.operations import captured

Q = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
K, V = torch.randn(2, 8, 4, generator=torch.Generator().manual_seed(1))
BLOCKS = torch.tensor([[0, 3], [1, 1], [2, 0]])


def _attention(scores=lambda s: s, weights=lambda s: s.softmax(-1), values=None, result=None):
    def function(model, q, k, v, blocks):
        keys = k.view(4, 2, 4)[blocks].flatten(1, 2)
        gathered = v.view(4, 2, 4)[values(blocks) if values else blocks].flatten(1, 2)
        products = scores(q.view(3, 2, 4) @ keys.transpose(1, 2))
        rows = (weights(products) @ gathered).reshape(6, 4)
        return result(rows, q) if result else rows

    return function


def _found(function):
    _, findings = captured(Model(function, 4), (Q, K, V, BLOCKS))
    return [(operation.kind, operation.facts) for operation in findings.operations]


@pytest.mark.parametrize("scale", [1.0, 0.5, 0.125])
def test_scale_is_read(scale):
    ((kind, facts),) = _found(_attention(lambda s: s * scale))
    assert kind == "block_attention"
    assert facts["scale"] == scale
    assert facts["block_size"] == 2


@pytest.mark.parametrize(
    "function",
    [
        _attention(lambda s: s + torch.tril(torch.ones(2, 4))),
        _attention(torch.relu),
        _attention(weights=lambda s: s.softmax(1)),
        _attention(weights=lambda s: s.softmax(-1) * 2.0),
        _attention(weights=lambda s: s.transpose(1, 2).softmax(-1).transpose(1, 2)),
        _attention(values=lambda blocks: blocks.flip(1)),
        _attention(lambda s: s * s),
        lambda m, q, k, v, b: (q @ k.T).softmax(-1) @ v + b.sum(),
        lambda m, q, k, v, b: q.softmax(-1) + k.sum() + v.sum() + b.sum(),
    ],
    ids=["mask", "relu", "rows", "factor", "transposed", "others", "square", "dense", "none"],
)
def test_other_functions_are_left_to_torch(function):
    assert _found(function) == []


def test_what_is_added_afterwards_is_left_to_torch():
    ((kind, _),) = _found(_attention(result=lambda rows, q: rows + q))
    assert kind == "block_attention"
