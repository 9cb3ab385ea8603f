# pyright: basic
"""Training through `torch.compile` with embedding operations on a device."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import ember_hw
from ember_hw.bench.fuzzing.op_models import CASES, Model
from ember_hw.config import AcceleratorConfig
from ember_hw.host.device import open_device
from ember_hw.host.tests.recommender import Recommender, batch_of
from ember_hw.host.torch_backend import Record, backend

INDICES, OFFSETS = torch.tensor([1, 2, 4, 1, 8, 2]), torch.tensor([0, 1, 1, 4])


@pytest.fixture(autouse=True)
def _forget_graphs():
    torch._dynamo.reset()


@pytest.fixture(scope="module")
def device():
    with open_device("interpreter", config=AcceleratorConfig.preset("tables")) as opened:
        yield opened


def _compiled(model, device, record, **options: Any):
    given: Any = {"device": device, "record": record}
    return torch.compile(model, backend=backend, options=given, fullgraph=True, **options)


def _gradients(model, forward, *inputs):
    """Return the result of a step, and the gradients of parameters and inputs, dense."""
    model.zero_grad()
    given = [
        value.detach().clone().requires_grad_() if value.is_floating_point() else value
        for value in inputs
    ]
    rows = forward(*given)
    scales = torch.arange(1.0, rows.numel() + 1).reshape(rows.shape)
    (rows * scales).sum().backward()
    found = [_gradient(parameter) for parameter in model.parameters()]
    return rows.detach(), found, [_gradient(value) for value in given if value.requires_grad]


def _gradient(value: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(value) if value.grad is None else value.grad


BAGS = {
    "sum": ({"mode": "sum"}, (INDICES, OFFSETS)),
    "mean": ({"mode": "mean"}, (INDICES, OFFSETS)),
    "max": ({"mode": "max"}, (INDICES, OFFSETS)),
    "sparse sum": ({"mode": "sum", "sparse": True}, (INDICES, OFFSETS)),
    "sparse mean": ({"mode": "mean", "sparse": True}, (INDICES, OFFSETS)),
    "padding, mean": ({"mode": "mean", "padding_idx": 2}, (INDICES, OFFSETS)),
    "padding, max": ({"mode": "max", "padding_idx": -1}, (INDICES, OFFSETS)),
    "last offset": (
        {"mode": "sum", "include_last_offset": True},
        (INDICES, torch.tensor([0, 1, 1, 6])),
    ),
    "matrix": ({"mode": "mean"}, (INDICES.reshape(2, 3),)),
    "int32": ({"mode": "sum"}, (INDICES.int(), OFFSETS.int())),
    "weights": ({"mode": "sum"}, (INDICES, OFFSETS, torch.linspace(-1, 1, 6))),
    "weights, padding": (
        {"mode": "sum", "padding_idx": 1},
        (INDICES, OFFSETS, torch.linspace(-1, 1, 6)),
    ),
    "weights of a matrix": (
        {"mode": "sum"},
        (INDICES.reshape(2, 3), None, torch.linspace(-1, 1, 6).reshape(2, 3)),
    ),
}


@pytest.mark.parametrize("name", BAGS)
def test_gradients_of_bags_are_torch_s(device, name):
    options, inputs = BAGS[name]
    torch.manual_seed(0)
    model, record = nn.EmbeddingBag(9, 4, **options), Record()

    def call(forward):
        if len(inputs) < 3:
            return lambda *given: forward(*given)
        return lambda weights: forward(inputs[0], inputs[1], weights)

    floats = inputs if len(inputs) < 3 else inputs[2:]
    wanted = _gradients(model, call(model), *floats)
    found = _gradients(model, call(_compiled(model, device, record)), *floats)
    for ours, theirs in zip(found[1], wanted[1], strict=True):
        assert ours.layout is theirs.layout
    torch.testing.assert_close(found[0], wanted[0], rtol=0, atol=1e-6)
    pairs = zip([*found[1], *found[2]], [*wanted[1], *wanted[2]], strict=True)
    for ours, theirs in pairs:
        torch.testing.assert_close(ours.to_dense(), theirs.to_dense(), rtol=0, atol=1e-5)
    assert record.calls == 1
    assert record.refusals == []
    assert [gradient.calls for gradient in record.gradients] == [1] * (1 + len(found[2]))


@pytest.mark.parametrize("sparse", [False, True])
def test_gradients_of_embeddings_are_torch_s(device, sparse):
    # torch itself can't trace the sparse gradient where a row is left out of it.
    padding = None if sparse else 2
    model, record = nn.Embedding(9, 4, padding_idx=padding, sparse=sparse), Record()
    wanted = _gradients(model, model, INDICES)
    found = _gradients(model, _compiled(model, device, record), INDICES)
    torch.testing.assert_close(found[0], wanted[0], rtol=0, atol=0)
    assert found[1][0].layout is wanted[1][0].layout
    torch.testing.assert_close(found[1][0].to_dense(), wanted[1][0].to_dense())
    assert (record.calls, record.gradients, record.gradient_graphs) == (1, [], 1)


@pytest.mark.parametrize(("sparse", "number"), [(False, 50), (True, 8)])
def test_recommender_that_is_trained_follows_eager(device, sparse, number):
    theirs, record = Recommender(3, sparse=sparse), Record()
    ours = deepcopy(theirs)
    fast = _compiled(ours, device, record, dynamic=True)
    steps = [(model, torch.optim.SGD(model.parameters(), lr=0.05)) for model in (theirs, ours)]
    labels = torch.Generator().manual_seed(5)
    for step in range(number):
        batch = batch_of(theirs, 6 + step % 3, step)
        wanted = torch.randint(0, 2, (6 + step % 3, 1), generator=labels).float()
        losses: list[float] = []
        for (model, optimizer), forward in zip(steps, (theirs, fast), strict=True):
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(forward(*batch), wanted)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert abs(losses[0] - losses[1]) <= 1e-4, step
    assert {operation.kind for operation in record.operations} == {"tables"}
    assert record.calls == number
    assert record.refusals == record.separate == []
    assert sum(gradient.calls for gradient in record.gradients) == 3 * number
    before = Recommender(3).bags[0].get_parameter("weight")
    assert not torch.equal(ours.bags[0].get_parameter("weight"), before)  # it has learned something


@pytest.mark.parametrize("columns", [4, 16])
def test_changed_table_is_seen_by_the_next_step(device, columns):
    model, record = nn.EmbeddingBag(9, columns, mode="sum"), Record()
    fast = _compiled(model, device, record)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    for change in (None, lambda: optimizer.step(), lambda: model.weight.data.mul_(3)):
        if change is not None:
            before = model.weight.detach().clone()
            change()
            assert not torch.equal(before, model.weight)
        optimizer.zero_grad()
        rows = fast(INDICES, OFFSETS)
        torch.testing.assert_close(rows, model(INDICES, OFFSETS))
        rows.square().sum().backward()
    model.weight.data = torch.ones(columns, 9).T
    torch.testing.assert_close(fast(INDICES, OFFSETS), model(INDICES, OFFSETS))
    assert record.calls == 4


def test_step_between_the_passes_doesn_t_matter_where_the_table_isn_t_read(device):
    model = nn.EmbeddingBag(9, 4, mode="sum")
    rows = _compiled(model, device, Record())(INDICES, OFFSETS)
    with torch.no_grad():
        model.weight.add_(1)
    rows.sum().backward()
    assert torch.equal(_gradient(model.weight)[:, 0], torch.bincount(INDICES, minlength=9).float())


def test_indices_behind_the_last_offset_get_no_gradient(device):
    model = nn.EmbeddingBag(9, 4, mode="sum", include_last_offset=True)
    offsets = torch.tensor([0, 1, 4])
    _compiled(model, device, Record())(INDICES, offsets).sum().backward()
    assert torch.equal(
        _gradient(model.weight)[:, 0], torch.bincount(INDICES[:4], minlength=9).float()
    )


def test_gradient_by_frequency_is_that_of_the_drop_in_module(device):
    model = nn.EmbeddingBag(9, 4, mode="mean", scale_grad_by_freq=True)
    drop_in = ember_hw.nn.EmbeddingBag.from_torch(deepcopy(model), device=device)
    wanted = _gradients(drop_in, drop_in, INDICES, OFFSETS)
    found = _gradients(model, _compiled(model, device, Record()), INDICES, OFFSETS)
    torch.testing.assert_close(found[1], wanted[1], rtol=0, atol=0)


def test_poisoned_table_changes_the_loss(device):
    model, record = nn.EmbeddingBag(9, 4, mode="sum"), Record()
    fast = _compiled(model, device, record)
    assert not fast(INDICES, OFFSETS).isnan().any()
    for table in record.operations[0].program.tables.values():
        table[...] = float("nan")
    assert fast(INDICES, OFFSETS).isnan().any()


def test_computed_table_keeps_torch_s_gradient_with_the_reason(device):
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.rows = nn.Parameter(torch.randn(9, 4))

        def forward(self, indices, offsets):
            return nn.functional.embedding_bag(indices, self.rows * 2, offsets, mode="mean")

    model, record = Scaled(), Record()
    wanted = _gradients(model, model, INDICES, OFFSETS)
    found = _gradients(model, _compiled(model, device, record), INDICES, OFFSETS)
    torch.testing.assert_close(found[1][0], wanted[1][0])
    (refusal,) = record.refusals
    assert re.fullmatch(
        r"weight 'mul' must be a parameter or buffer of the model to be loaded, not computed or "
        r"passed in, in node '_embedding_bag' \(aten\._embedding_bag\.default\) at .*:\d+",
        refusal.reason,
    )
    assert record.operations == record.gradients == []


def test_bag_that_does_not_fit_keeps_torch_s_gradient_with_the_reason():
    model, record = nn.EmbeddingBag(9, 4, mode="mean"), Record()
    wanted = _gradients(model, model, INDICES, OFFSETS)
    config = AcceleratorConfig.preset("tiny").with_changes(name="one unit", traversal_units=1)
    with open_device("interpreter", config=config) as small:
        found = _gradients(model, _compiled(model, small, record), INDICES, OFFSETS)
    torch.testing.assert_close(found[1][0], wanted[1][0])
    (refusal,) = record.refusals
    assert "must fit the device: " in refusal.reason
    assert record.operations == record.gradients == []


def test_index_outside_a_trained_table_is_refused_by_the_model_s_name_for_it(device):
    fast = _compiled(nn.EmbeddingBag(9, 4, mode="sum"), device, Record())
    fast(INDICES, OFFSETS).sum().backward()
    message = "indices[0] must be in [0, 9), the rows of table 'weight', not 9"
    with pytest.raises(IndexError, match=f"^{re.escape(message)}$"):
        fast(torch.where(INDICES == 1, 9, INDICES), OFFSETS)
    fast(INDICES, OFFSETS).sum().backward()


def test_record_tells_of_gradients(device):
    model, record = nn.EmbeddingBag(9, 4, mode="sum"), Record()
    fast = _compiled(model, device, record)
    for _ in range(2):
        fast(INDICES, OFFSETS).sum().backward()
    lines = str(record).splitlines()
    assert lines[0] == "graphs: 1"
    assert lines[2] == "backward passes in torch: 1"
    assert re.fullmatch(
        r"gradient of weight in torch: node '_embedding_bag_backward' "
        r"\(aten\._embedding_bag_backward\.default\)( at .*:\d+)?, 2 calls",
        lines[3],
    )


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("spmm", ["spmm"]),
        ("index_add_weighted", ["aggregation"]),
        ("scatter_mean", ["aggregation"]),
        ("fused_relu", ["fusedmm"]),
        ("transe_2", ["embedding", "embedding", "embedding", "scores"]),  # rows for the gradient
    ],
)
def test_other_op_classes_are_trained_with_torch_s_gradients(name, kinds):
    (case,) = (case for case in CASES if case.name == name)
    model, record = Model(case.function, 4), Record()
    arrays = case.inputs(np.random.default_rng(0), 4, 7)
    inputs = [torch.from_numpy(np.ascontiguousarray(array)) for array in arrays]
    wanted = _gradients(model, model, *inputs)
    with open_device("interpreter", config=AcceleratorConfig.preset("large")) as large:
        found = _gradients(model, _compiled(model, large, record), *inputs)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    assert [operation.kind for operation in record.operations] == kinds
    assert record.calls == len(kinds)
    assert record.refusals == []


def test_operator_without_a_gradient_is_refused_by_its_name(device):
    class Fused(nn.Module):
        def __init__(self):
            super().__init__()
            self.rows = nn.Parameter(torch.randn(2, 4))

        def forward(self, crow, col):
            return ember_hw.fusedmm(crow, col, self.rows, self.rows, "relu")

    fast = _compiled(Fused(), device, Record())
    with pytest.raises(Exception, match=r"ember_hw[.:]+fusedmm"):
        fast(torch.tensor([0, 1, 2]), torch.tensor([1, 0])).sum().backward()
