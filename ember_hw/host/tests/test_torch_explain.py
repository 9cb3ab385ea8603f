# pyright: basic
"""`ember_hw.explain`: what of a model a device would compute."""

from __future__ import annotations

import doctest

import torch
from torch import nn

from ember_hw.host import torch_explain
from ember_hw.host.torch_explain import explain


def test_explanation_lists_what_would_run_and_what_not():
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.user = nn.EmbeddingBag(9, 4, mode="mean")
            self.item = nn.EmbeddingBag(9, 4, mode="mean", max_norm=1.0)

        def forward(self, indices):
            return self.user(indices) + self.item(indices)

    explanation = explain(Both(), torch.tensor([[1, 2]]))
    assert [kind for kind, _ in explanation.operations] == ["embedding_bag"]
    assert "max_norm must be None, not 1.0" in explanation.refusals[0]
    assert str(explanation).splitlines()[0] == "graphs: 1"


def test_explanation_of_a_training_step_tells_of_gradients():
    class Scorer(nn.Module):
        def __init__(self):
            super().__init__()
            self.user = nn.EmbeddingBag(9, 4, mode="sum")
            self.item = nn.Embedding(9, 4)

        def forward(self, indices, weights):
            return (self.user(indices, None, weights) * self.item(indices[:, 0])).sum()

    inputs = torch.tensor([[1, 2]]), torch.ones(1, 2, requires_grad=True)
    explanation = explain(Scorer(), *inputs, training=True)
    assert [kind for kind, _ in explanation.operations] == ["embedding_bag", "embedding"]
    assert (explanation.graphs, explanation.gradient_graphs, explanation.refusals) == (1, 1, ())
    assert sorted(what for what, _ in explanation.gradients) == ["per_sample_weights", "weight"]
    lines = str(explanation).splitlines()
    assert lines[3] == "backward passes in torch: 1"
    assert lines[4].startswith("gradient of ")
    assert "in torch: node '_embedding_bag_" in lines[4]
    forward = explain(Scorer(), *inputs)
    assert (forward.gradient_graphs, forward.gradients) == (0, ())


def test_examples_of_the_docstrings_hold():
    results = doctest.testmod(torch_explain)
    assert results.attempted > 0
    assert results.failed == 0
