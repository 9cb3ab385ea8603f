# pyright: basic
"""Gradients are torch's for the same lookups, rows of padding have none."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
import torch
import torch.nn.functional as theirs

import ember_hw.nn.functional as ours

INDICES, OFFSETS = torch.tensor([1, 2, 2, 5, 4, 2, 0, 9, 3]), torch.tensor([0, 3, 3, 7])


def grad_of(tensor):
    """Return a tensor's gradient, which it must have."""
    assert tensor.grad is not None
    return tensor.grad


def gradients(function, weight, scales=None, **options):
    weight = weight.clone().requires_grad_()
    scales = None if scales is None else scales.clone().requires_grad_()
    rows = function(INDICES, weight, OFFSETS, per_sample_weights=scales, **options)
    torch.manual_seed(3)
    rows.backward(torch.randn_like(rows))
    return rows, grad_of(weight), torch.zeros(()) if scales is None else grad_of(scales)


@pytest.mark.parametrize(
    ("mode", "padding_idx", "sparse", "is_weighted"),
    [
        case
        for case in itertools.product(
            ("sum", "mean", "max"), (None, 2, -8), (False, True), (False, True)
        )
        if not (case[0] == "max" and case[2]) and not (case[0] != "sum" and case[3])
    ],
)
def test_bag(device, counting, mode, padding_idx, sparse, is_weighted):
    weight, scales = torch.randn(10, 4), torch.rand(9) if is_weighted else None
    options = {"mode": mode, "padding_idx": padding_idx, "sparse": sparse}
    found = gradients(ours.embedding_bag, weight, scales, **options)
    wanted = gradients(theirs.embedding_bag, weight, scales, **options)
    assert counting.launches == 1
    assert found[1].is_sparse == sparse
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one.to_dense(), other.to_dense())
    if padding_idx is not None:
        assert not found[1].to_dense()[2].any()


@pytest.mark.parametrize(("mode", "is_weighted"), [("sum", False), ("sum", True), ("mean", False)])
def test_scale_by_frequency_divides_by_the_lookups_of_each_row(device, mode, is_weighted):
    weight, scales = torch.randn(10, 4), torch.rand(9) if is_weighted else None
    options: Any = {"mode": mode, "padding_idx": 4}
    _, found, _ = gradients(ours.embedding_bag, weight, scales, scale_grad_by_freq=True, **options)
    _, wanted, _ = gradients(theirs.embedding_bag, weight, scales, **options)
    counts = torch.bincount(INDICES, minlength=10).clamp(min=1)
    torch.testing.assert_close(found, wanted / counts[:, None])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_tables_have_torch_s_gradients(device, dtype):
    weight, scales = torch.randn(10, 4).to(dtype), torch.rand(9).to(dtype)
    found = gradients(ours.embedding_bag, weight, scales, mode="sum")
    wanted = gradients(theirs.embedding_bag, weight, scales, mode="sum")
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype is dtype
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("padding_idx", [None, 2])
def test_trailing_indices_get_no_gradient(device, padding_idx):
    weight = torch.randn(10, 4, requires_grad=True)
    scales = torch.rand(9, requires_grad=True)
    ends = torch.tensor([0, 3, 5])
    ours.embedding_bag(
        INDICES,
        weight,
        ends,
        mode="sum",
        per_sample_weights=scales,
        include_last_offset=True,
        padding_idx=padding_idx,
    ).sum().backward()
    assert not grad_of(scales)[5:].any()
    assert not grad_of(weight)[[0, 9, 3]].any()
    assert grad_of(weight)[[1, 5, 4]].all()


def test_matrix_of_weights_has_a_gradient_of_its_shape(device):
    weight, matrix = torch.randn(10, 4), torch.tensor([[1, 2], [2, 9]])
    found, wanted = [], []
    for module, grads in ((ours, found), (theirs, wanted)):
        scales = torch.rand(2, 2, generator=torch.Generator().manual_seed(0)).requires_grad_()
        module.embedding_bag(
            matrix, weight, mode="sum", per_sample_weights=scales
        ).square().sum().backward()
        grads.append(scales.grad)
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize(
    ("sparse", "padding_idx", "by_frequency"),
    [
        (False, None, False),
        (True, None, False),
        (False, -8, False),
        (True, -8, False),
        (False, 2, True),
    ],
)
def test_embedding(device, counting, dtype, sparse, padding_idx, by_frequency):
    grads = []
    table = torch.randn(10, 4)
    for module in (ours, theirs):
        weight = table.clone().requires_grad_()
        rows = module.embedding(
            INDICES.to(dtype).reshape(3, 3),
            weight,
            padding_idx,
            sparse=sparse,
            scale_grad_by_freq=by_frequency,
        )
        rows.square().sum().backward()
        grads.append(grad_of(weight).to_dense())
    torch.testing.assert_close(*grads)
    assert counting.launches == 1
    if padding_idx is not None:
        assert not grads[0][2].any()


def test_bags_without_lookups_have_a_gradient_of_zeros(device):
    weight = torch.randn(10, 4, requires_grad=True)
    none = torch.empty(0, dtype=torch.int64)
    for offsets in (none, torch.tensor([0, 0])):
        ours.embedding_bag(none, weight, offsets, mode="sum").sum().backward()
        assert not grad_of(weight).any()


def test_no_gradient_is_kept_without_need(device):
    weight = torch.randn(10, 4, requires_grad=True)
    with torch.no_grad():
        assert not ours.embedding_bag(INDICES, weight, OFFSETS).requires_grad
    assert not ours.embedding_bag(INDICES, weight.detach(), OFFSETS).requires_grad


def test_what_a_gradient_depends_on_must_not_be_written_before(device):
    weight, indices = torch.randn(10, 4, requires_grad=True), INDICES.clone()
    rows = ours.embedding_bag(indices, weight, OFFSETS, mode="max")
    with torch.no_grad():
        weight[1] = 0
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        rows.sum().backward()
    rows = ours.embedding_bag(indices, weight, OFFSETS, mode="sum")
    with torch.no_grad():
        weight[1] = 0
    rows.sum().backward()
    rows = ours.embedding_bag(indices, weight, OFFSETS, mode="sum")
    indices[0] = 7
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        rows.sum().backward()


def test_second_derivatives_are_refused(device):
    weight = torch.randn(10, 4, requires_grad=True)
    rows = ours.embedding_bag(INDICES, weight, OFFSETS, mode="sum")
    (grad,) = torch.autograd.grad(rows.square().sum(), weight, create_graph=True)
    with pytest.raises(RuntimeError, match=re.escape("@once_differentiable")):
        grad.sum().backward()


@pytest.mark.parametrize("option", ["sparse", "scale_grad_by_freq"])
def test_max_has_no_sparse_or_scaled_gradient(device, counting, option):
    message = f"{option} must be False with mode 'max', not True"
    options: Any = {option: True}
    with pytest.raises(ValueError, match=f"^{message}$"):
        ours.embedding_bag(INDICES, torch.randn(10, 4), OFFSETS, mode="max", **options)
    assert counting.launches == 0


@pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")
@pytest.mark.parametrize(
    "make",
    [
        lambda parameters: torch.optim.SGD(parameters, 0.1),
        lambda parameters: torch.optim.SparseAdam(list(parameters), 0.1),
        lambda parameters: torch.optim.Adagrad(parameters, 0.1),
    ],
)
def test_steps_of_an_optimizer_are_seen(device, make):
    from ember_hw import nn

    losses = []
    for module in (nn, torch.nn):
        torch.manual_seed(0)
        bag = module.EmbeddingBag(10, 4, mode="sum", sparse=True)
        optimizer = make(bag.parameters())
        for _ in range(4):
            optimizer.zero_grad()
            loss = bag(INDICES, OFFSETS).square().sum()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert losses[0] > losses[3]
    torch.testing.assert_close(losses[:4], losses[4:])
