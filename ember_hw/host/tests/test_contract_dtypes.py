# pyright: basic
"""Every dtype of tables and of rows that come back, at every entry point, bit for bit."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from ember_hw.compiler import compile
from ember_hw.compiler.element_dtypes import tensor_array, tensor_of
from ember_hw.config import AcceleratorConfig
from ember_hw.host.backends.interpreter import Backend
from ember_hw.host.device import Device
from ember_hw.host.nn.devices import set_default_device
from ember_hw.host.reference import bit_equal
from ember_hw.host.tests.contract.dtypes import (
    CALLS,
    INDICES,
    OFFSETS,
    OUTPUTS,
    STORED,
    Graph,
    Stored,
    graph_answer,
    pooled,
)
from ember_hw.host.tests.counting import CountingBackend
from ember_hw.host.torch_backend import Record
from ember_hw.nn import QuantizedEmbeddingBag

PACKED = [stored for stored in STORED if stored.scale_dtype is not None]


@pytest.fixture(scope="module")
def counting() -> CountingBackend:
    return CountingBackend(Backend(AcceleratorConfig.preset("tables")))


@pytest.fixture(scope="module")
def device(counting: CountingBackend) -> Device:
    return Device("counting", counting)


@pytest.mark.parametrize("stored", STORED, ids=str)
@pytest.mark.parametrize("entry_point", CALLS)
def test_rows_are_those_of_exact(
    entry_point: str, stored: Stored, device: Device, counting: CountingBackend
) -> None:
    for output in OUTPUTS:
        counting.launches = 0
        for found, expected in CALLS[entry_point](stored, output, device):
            assert bit_equal(tensor_array(found), expected), output
        assert counting.launches == 1


@pytest.mark.parametrize("stored", [PACKED[0], PACKED[3]], ids=str)
def test_a_graph_of_torch_holds_quantised_tables(
    stored: Stored, device: Device, counting: CountingBackend
) -> None:
    model, record = Graph(stored, device), Record()
    options: Any = {"device": device, "record": record}
    torch._dynamo.reset()
    compiled: Any = torch.compile(model, backend="ember_hw", fullgraph=True, options=options)
    counting.launches = 0
    for found, expected in zip(compiled(INDICES, OFFSETS), graph_answer(stored), strict=True):
        assert bit_equal(tensor_array(found), expected)
    # Bags that come back in float32 run together; the narrow one and the rows are others.
    assert [operation.kind for operation in record.operations] == [
        "tables",
        "embedding_bag",
        "embedding",
    ]
    assert all("contract/dtypes.py:" in operation.where for operation in record.operations)
    assert counting.launches == 3
    assert record.refusals == []
    first: Any = model.bags[0]
    first.rows[:, 0] ^= 1  # a code of each row
    changed = compiled(INDICES, OFFSETS)
    assert not bit_equal(tensor_array(changed[0]), graph_answer(stored)[0])
    assert bit_equal(tensor_array(changed[1]), graph_answer(stored)[1])


class TorchsOwn(torch.nn.Module):
    """A bag of torch's operator for rows of bytes."""

    def __init__(self, rows: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("rows", rows)

    def forward(self, indices: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        return torch.ops.quantized.embedding_bag_byte_rowwise_offsets(self.rows, indices, offsets)


def test_torch_s_operator_of_bytes_runs_on_the_device(device: Device) -> None:
    table = PACKED[0].table()
    model, record = TorchsOwn(tensor_of(table.rows)), Record()
    options: Any = {"device": device, "record": record}
    torch._dynamo.reset()
    compiled: Any = torch.compile(model, backend="ember_hw", fullgraph=True, options=options)
    found = compiled(INDICES, OFFSETS)
    assert [operation.kind for operation in record.operations] == ["embedding_bag"]
    assert bit_equal(tensor_array(found), pooled(table, None))
    torch.testing.assert_close(found, model(INDICES, OFFSETS))  # torch fuses
    program = compile(model, (INDICES, OFFSETS), config=device.config)
    assert torch.equal(device.run(program, (INDICES, OFFSETS)), found)


def test_other_backends_of_torch_ask_the_default_device(
    device: Device, counting: CountingBackend
) -> None:
    stored = PACKED[0]
    torch._dynamo.reset()
    compiled: Any = torch.compile(Graph(stored, device), backend="eager", fullgraph=True)
    set_default_device(device)
    counting.launches = 0
    try:
        found = compiled(INDICES, OFFSETS)
    finally:
        set_default_device(None)
    assert counting.launches == 4
    assert all(map(bit_equal, map(tensor_array, found), graph_answer(stored)))


def test_a_quantised_module_compiles_as_it_is(device: Device) -> None:
    stored = PACKED[3]
    module = QuantizedEmbeddingBag(stored.table(), "sum", device=device)
    program = compile(module, (INDICES, OFFSETS), config=device.config)
    found = device.run(program, (INDICES, OFFSETS))
    assert bit_equal(tensor_array(found), pooled(stored.table(), None))


def test_an_exported_graph_runs_and_compiles(device: Device) -> None:
    stored = PACKED[0]
    module = QuantizedEmbeddingBag(stored.table(), "sum", device=device)
    exported = torch.export.export(module, (INDICES, OFFSETS))
    expected = pooled(stored.table(), None)
    assert bit_equal(tensor_array(exported.module()(INDICES, OFFSETS)), expected)
    program = compile(exported, config=device.config)
    assert bit_equal(tensor_array(device.run(program, (INDICES, OFFSETS))), expected)
