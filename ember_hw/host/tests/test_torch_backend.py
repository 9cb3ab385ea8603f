# pyright: basic
"""`torch.compile` with embedding operations on a device."""

from __future__ import annotations

import doctest
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from ember_hw.bench.fuzzing.op_models import CASES, Model
from ember_hw.config import AcceleratorConfig
from ember_hw.host import torch_backend
from ember_hw.host.device import open_device
from ember_hw.host.program_cache import programs_built
from ember_hw.host.tests.recommender import Recommender, batch_of
from ember_hw.host.torch_backend import Record, backend

#: Rows of three tables beside each other, and of what a part of them needs.
WIDE = replace(
    AcceleratorConfig.preset("tiny"),
    name="wide",
    traversal_units=4,
    streams_per_unit=8,
    row_entries=8,
    exports=8,
    bundle_scalars=8,
)


@pytest.fixture(autouse=True)
def _forget_graphs():
    torch._dynamo.reset()


@pytest.fixture(scope="module")
def device():
    with open_device("interpreter", config=WIDE) as opened:
        yield opened


def _compiled(model, device, record, **options):
    options = {"device": device, "record": record, **options}
    return torch.compile(model, backend=backend, options=options)


def test_recommender_gives_the_logits_of_eager(device):
    model, record = Recommender(4), Record()
    fast = _compiled(model, device, record)
    with torch.no_grad():
        for seed in (0, 1):
            batch = batch_of(model, 6, seed)
            torch.testing.assert_close(fast(*batch), model(*batch), rtol=0, atol=1e-5)
    assert {operation.kind for operation in record.operations} == {"tables"}
    assert record.calls == 2
    assert record.refusals == record.separate == []


def test_poisoned_table_changes_the_logits(device):
    model, record = Recommender(2), Record()
    fast = _compiled(model, device, record)
    batch = batch_of(model, 6)
    with torch.no_grad():
        before = fast(*batch)
        for operation in record.operations:
            for table in operation.program.tables.values():
                table[...] = np.nan
        assert fast(*batch).isnan().any()
        assert not before.isnan().any()


@pytest.mark.parametrize(
    "name",
    ["bag_weighted", "embedding", "spmm", "scatter_mean", "own_features", "fused_relu", "complex"],
)
def test_each_op_class_runs_on_the_device(device, name):
    (case,) = (case for case in CASES if case.name == name)
    model, record = Model(case.function, 4), Record()
    arrays = case.inputs(np.random.default_rng(0), 4, 7)
    inputs = tuple(torch.from_numpy(np.ascontiguousarray(array)) for array in arrays)
    with torch.no_grad():
        found = _compiled(model, device, record)(*inputs)
        torch.testing.assert_close(found, model(*inputs), rtol=1e-4, atol=1e-5)
    assert [operation.kind for operation in record.operations] == [case.kind]
    assert record.calls == 1


def test_changed_and_exchanged_tables_are_seen(device):
    bag, record = nn.EmbeddingBag(9, 4, mode="sum"), Record()
    fast = _compiled(bag, device, record)
    indices = torch.tensor([[1, 2], [8, 8]])
    with torch.no_grad():
        torch.testing.assert_close(fast(indices), bag(indices))
        bag.weight[8] = 7.0
        torch.testing.assert_close(fast(indices), bag(indices))
        bag.weight.data = torch.randn(9, 4)
        torch.testing.assert_close(fast(indices), bag(indices))
        bag.weight.data = torch.randn(4, 9).T
        torch.testing.assert_close(fast(indices), bag(indices))
        bag.weight[1] = 3.0
        torch.testing.assert_close(fast(indices), bag(indices))
    assert record.calls >= 5


def test_other_batch_sizes_are_right(device):
    model, record = Recommender(2), Record()
    fast = _compiled(model, device, record)
    with torch.no_grad():
        for size in (5, 3, 1, 8):
            batch = batch_of(model, size, size)
            torch.testing.assert_close(fast(*batch), model(*batch), rtol=0, atol=1e-5)
    assert record.calls == 4


def test_gradients_are_those_of_eager(device):
    class Scorer(nn.Module):
        def __init__(self):
            super().__init__()
            self.items = nn.Embedding(9, 4)
            self.top = nn.Linear(4, 1)

        def forward(self, indices):
            return self.top(self.items(indices)).sum()

    model, record = Scorer(), Record()
    indices = torch.tensor([1, 2, 1])
    _compiled(model, device, record)(indices).backward()
    gradient = model.items.weight.grad
    assert gradient is not None
    found = gradient.clone()
    model.zero_grad()
    model(indices).backward()
    torch.testing.assert_close(found, model.items.weight.grad)
    assert record.calls == 1


def test_computed_table_is_left_to_torch(device):
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.rows = nn.Parameter(torch.randn(9, 4))

        def forward(self, indices):
            return nn.functional.embedding(indices, self.rows * 2)

    model, record = Scaled(), Record()
    indices = torch.tensor([1, 2])
    with torch.no_grad():
        torch.testing.assert_close(_compiled(model, device, record)(indices), model(indices))
    (refusal,) = record.refusals
    assert re.fullmatch(
        r"weight 'mul' must be a parameter or buffer of the model to be loaded, not computed or "
        r"passed in, in node 'embedding' \(aten\.embedding\.default\) at .*:\d+",
        refusal.reason,
    )
    assert f"left to torch: {refusal.reason}" in str(record)


def test_program_that_does_not_fit_the_device_is_left_to_torch():
    model, record = Model(CASES[-2].function, 4), Record()
    triples = (torch.tensor([0, 1]), torch.tensor([2, 1]), torch.tensor([5, 6]))
    with open_device("interpreter", config=AcceleratorConfig.preset("tiny")) as small:
        with torch.no_grad():
            found = _compiled(model, small, record)(*triples)
            torch.testing.assert_close(found, model(*triples))
    assert record.operations == []
    assert "must fit the device: au: " in record.refusals[0].reason


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")
def test_sparse_tensors_never_reach_the_backend_and_the_record_says_so(device):
    record = Record()
    fast = _compiled(lambda a, b: torch.sparse.mm(a, b), device, record)
    fast(torch.eye(3).to_sparse_csr(), torch.ones(3, 2))
    assert record.graphs == 0
    assert "torch handed over no graph" in str(record)


def test_options_are_checked(device):
    bag = nn.EmbeddingBag(9, 4, mode="sum")
    indices = torch.tensor([[1, 2]])
    text = "option must be one of device, config, opt_level, record, not 'level'"
    with torch.no_grad(), pytest.raises(Exception, match=re.escape(text)):
        torch.compile(bag, backend=backend, options={"level": 3})(indices)
    text = "config must be left out with a device, or be its own ('wide'), not 'tiny'"
    options = {"device": device, "config": AcceleratorConfig.preset("tiny")}
    with torch.no_grad(), pytest.raises(Exception, match=re.escape(text)):
        torch.compile(bag, backend=backend, options=options)(indices)


def test_messages_name_tables_as_the_model_does(device):
    class Nested(nn.Module):
        def __init__(self):
            super().__init__()
            self.bags = nn.ModuleList([nn.EmbeddingBag(9, 4, mode="sum")])
            self.register_buffer("rows", torch.ones(5, 4))

        def forward(self, indices, others):
            return self.bags[0](indices) + nn.functional.embedding(others, self.get_buffer("rows"))

    fast = _compiled(Nested(), device, Record())
    indices, others = torch.tensor([[1, 2]]), torch.tensor([1])
    with torch.no_grad():
        fast(indices, others)
        message = "indices[0, 1] must be in [0, 9), the rows of table 'bags.0.weight', not 9"
        with pytest.raises(IndexError, match=f"^{re.escape(message)}$"):
            fast(indices + 7, others)
        message = "indices[0] must be in [0, 5), the rows of table 'rows', not 5"
        with pytest.raises(IndexError, match=f"^{re.escape(message)}$"):
            fast(indices, others + 4)


@pytest.mark.parametrize(
    ("name", "graphs"),
    # Other numbers of nodes are another graph to torch; the program is the same.
    [("bag_weighted", 1), ("embedding", 1), ("scatter_mean", 2), ("complex", 1)],
)
def test_op_classes_are_whole_graphs_and_one_program_whatever_the_sizes(device, name, graphs):
    (case,) = (case for case in CASES if case.name == name)
    model, record = Model(case.function, 4), Record()
    options: Any = {"device": device, "record": record}
    fast = torch.compile(model, backend=backend, options=options, fullgraph=True, dynamic=True)
    built: list[int] = []
    with torch.no_grad():
        for seed, size in enumerate((7, 9, 12)):
            arrays = case.inputs(np.random.default_rng(seed), 4, size)
            inputs = tuple(torch.from_numpy(np.ascontiguousarray(array)) for array in arrays)
            torch.testing.assert_close(fast(*inputs), model(*inputs), rtol=1e-4, atol=1e-5)
            built.append(programs_built())
    assert built == [built[0]] * 3
    assert (record.graphs, record.calls) == (graphs, 3)


def test_device_by_name_is_opened_once():
    bag, record = nn.EmbeddingBag(9, 4, mode="sum"), Record()
    indices = torch.tensor([[1, 2]])
    options = {"config": AcceleratorConfig.preset("tiny"), "record": record, "opt_level": 2}
    with torch.no_grad():
        for _ in range(2):
            torch._dynamo.reset()
            found = torch.compile(bag, backend=backend, options=options)(indices)
            torch.testing.assert_close(found, bag(indices))
    assert record.calls == 2
    assert record.operations[0].program.opt_level == 2
    assert record.operations[0]._device is record.operations[1]._device


def test_torch_finds_the_backend_by_its_name():
    bag = nn.EmbeddingBag(9, 4, mode="sum")
    indices, record = torch.tensor([[1, 2]]), Record()
    with torch.no_grad():
        options: Any = {"record": record}
        fast = torch.compile(bag, backend="ember_hw", options=options)
        torch.testing.assert_close(fast(indices), bag(indices))
    assert record.calls == 1


def test_examples_of_the_docstrings_hold():
    results = doctest.testmod(torch_backend)
    assert results.attempted > 0
    assert results.failed == 0
