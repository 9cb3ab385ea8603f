# pyright: basic
"""Bags of a compiled graph that a device looks up with one call."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import nn

from ember_hw.config import AcceleratorConfig
from ember_hw.host.device import open_device
from ember_hw.host.torch_backend import Record, backend

CONFIG = AcceleratorConfig.preset("tables")
INDICES = torch.tensor([[1, 2], [0, 8], [3, 3]])


@pytest.fixture(autouse=True)
def _forget_graphs():
    torch._dynamo.reset()


@pytest.fixture(scope="module")
def device():
    with open_device("interpreter", config=CONFIG) as opened:
        yield opened


def run(model, device, *inputs, **options):
    """Run a model on a device, compare it with torch, and return the record."""
    record = Record()
    options = {"device": device, "record": record, **options}
    fast = torch.compile(model, backend=backend, options=options)
    with torch.no_grad():
        torch.testing.assert_close(fast(*inputs), model(*inputs), rtol=0, atol=1e-5)
    return record


def kinds(record):
    return [operation.kind for operation in record.operations]


def bag(rows=9, columns=4, mode="sum", **options):
    return nn.EmbeddingBag(rows, columns, mode=mode, **options)


class Modes(nn.Module):
    """Two bags of each mode, two with weights, one alone, and an embedding."""

    def __init__(self):
        super().__init__()
        self.bags = nn.ModuleList(
            bag(9 + number, 3 + number, mode)
            for number, mode in enumerate(("sum", "mean", "max", "sum", "max", "mean"))
        )
        self.weighted = nn.ModuleList([bag(), bag(10, 20, padding_idx=2)])
        self.alone = bag(columns=5)
        self.rows = nn.Embedding(9, 4)

    def forward(self, indices, weights):
        rows = [bag(indices) for bag in self.bags]
        rows += [bag(indices, per_sample_weights=weights) for bag in self.weighted]
        rows += [self.alone(indices.int()), self.rows(indices[:, 0])]
        return torch.cat(rows, 1)


def test_bags_of_one_kind_are_one_program(device):
    record = run(Modes(), device, INDICES, torch.rand(3, 2))
    assert sorted(kinds(record)) == ["embedding", "embedding_bag", *["tables"] * 4]
    assert record.separate == []
    assert {operation.calls for operation in record.operations} == {1}


class Chain(nn.Module):
    """What the second bag looks up depends on the first; the third depends on neither."""

    def __init__(self):
        super().__init__()
        self.bags = nn.ModuleList([bag(), bag(20), bag(30, 7)])

    def forward(self, indices):
        first = self.bags[0](indices)
        second = self.bags[1]((first > 0).long())
        return torch.cat([first, second, self.bags[2](indices + 1)], 1)


def test_bag_that_waits_for_another_one_is_not_with_it(device):
    record = run(Chain(), device, INDICES)
    assert sorted(kinds(record)) == ["embedding_bag", "tables"]


class Late(nn.Module):
    """The inputs of a bag are computed behind the first one's result."""

    def __init__(self):
        super().__init__()
        self.bags = nn.ModuleList([bag(), bag(20, 4)])

    def forward(self, indices):
        first = self.bags[0](indices).relu() + 1
        other = (indices * 2 + 1).flip(0)
        return first * self.bags[1](other)


def test_inputs_are_computed_before_the_call(device):
    assert kinds(run(Late(), device, INDICES)) == ["tables"]


class Shared(nn.Module):
    """Two lookups in one table, one in another."""

    def __init__(self):
        super().__init__()
        self.user, self.item = bag(), bag(20, 16)

    def forward(self, indices, others):
        rows = self.user(indices) + self.user(others)
        return torch.cat([rows, self.item(others)], 1)


def test_shared_table_is_placed_once_and_its_changes_are_seen(device):
    model, record = Shared(), Record()
    options: Any = {"device": device, "record": record}
    fast = torch.compile(model, backend=backend, options=options)
    others = INDICES.flip(1)
    with torch.no_grad():
        for table in (None, model.user.weight, model.item.weight):
            if table is not None:
                table[8] = 5.0
            torch.testing.assert_close(fast(INDICES, others), model(INDICES, others))
        model.item.weight.data = torch.randn(16, 20).T
        torch.testing.assert_close(fast(INDICES, others), model(INDICES, others))
    assert set(kinds(record)) == {"tables"}
    assert len(record.operations[0].program.tables) == 2


@pytest.mark.parametrize(
    ("preset", "opt_level", "reason"),
    [
        ("default", 3, "au: .* (limit traversal_units; a config with 4 would do)"),
        ("tables", 1, "opt_level must be 2 or 3 to compute 3 bags from .* on at once, not 1"),
    ],
)
def test_where_they_do_not_fit_bags_run_one_by_one_and_the_record_says_why(
    preset, opt_level, reason
):
    with open_device("interpreter", config=AcceleratorConfig.preset(preset)) as opened:
        record = run(Shared(), opened, INDICES, INDICES, opt_level=opt_level)
    assert kinds(record) == ["embedding_bag"] * 3
    assert (record.calls, record.refusals) == (3, [])
    (separate,) = record.separate
    pattern = re.escape(reason).replace(r"\.\*", ".*")
    assert re.fullmatch(
        rf"3 bags from node .* on must fit one program to run at once: {pattern}; "
        r'AcceleratorConfig\.preset\("tables"\) at opt_level 2 or 3 is made for them',
        separate.reason,
    )
    assert f"one by one: {separate.reason}" in str(record)


def test_long_rows_are_left_out_with_the_name_of_the_table(device):
    class Long(nn.Module):
        def __init__(self):
            super().__init__()
            self.bags = nn.ModuleList([bag(), bag(9, 1 << 18)])

        def forward(self, indices):
            return self.bags[0](indices).sum() + self.bags[1](indices).sum()

    record = Record()
    options = {"device": device, "record": record}
    with torch.no_grad():
        torch.compile(Long(), backend=backend, options=options)(INDICES)
    (separate,) = record.separate
    assert re.search(
        r"embedding_dim of table '\w+' must be in \[1, \d+\] at opt_level 3 on config 'tables', "
        r"not 262144, in node ",
        separate.reason,
    )


def _gradient(parameter: nn.Parameter) -> torch.Tensor:
    assert parameter.grad is not None
    return parameter.grad.clone()


def test_bags_in_training_are_one_program_with_the_gradients_of_eager(device):
    model, record = Shared(), Record()
    options: Any = {"device": device, "record": record}
    fast = torch.compile(model, backend=backend, options=options)
    fast(INDICES, INDICES).sum().backward()
    found = [_gradient(parameter) for parameter in model.parameters()]
    model.zero_grad()
    model(INDICES, INDICES).sum().backward()
    for one, parameter in zip(found, model.parameters(), strict=True):
        torch.testing.assert_close(one, parameter.grad)
    assert [operation.kind for operation in record.operations] == ["tables"]
    assert record.refusals == record.separate == []
    assert [gradient.calls for gradient in record.gradients] == [1, 1, 1]


def test_compile_time_is_recorded_without_that_of_torch(device):
    assert 0 < run(Shared(), device, INDICES, INDICES).seconds < 60
