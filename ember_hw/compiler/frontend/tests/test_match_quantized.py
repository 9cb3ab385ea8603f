"""Lookups of quantised rows in a graph: what is found, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from ember_hw.compiler.frontend.find_operations import find_operations
from ember_hw.compiler.frontend.quantized_ops import QUANTIZED_BAG, QUANTIZED_EMBEDDING

INDICES = torch.tensor([1, 2, 3])
OFFSETS = torch.tensor([0, 1])
ROWS = torch.zeros(4, 13, dtype=torch.uint8)


class Model(torch.nn.Module):
    def __init__(self, op: Any, *facts: Any, rows: torch.Tensor = ROWS) -> None:
        super().__init__()
        self.op, self.facts = op, facts
        self.register_buffer("rows", rows)

    def forward(self, indices: Any, *others: Any) -> Any:
        return self.op(self.rows, indices, *others, *self.facts)


BAG = (5, "int8", "float32", torch.float32, "sum", False, None)


def found(model: Model, *inputs: Any) -> Any:
    return find_operations(torch.export.export(model, inputs).graph)


def test_a_bag_is_found_with_its_format() -> None:
    (operation,) = found(Model(QUANTIZED_BAG, None, *BAG), INDICES, OFFSETS).operations
    assert operation.kind == "embedding_bag"
    assert operation.facts == {
        "packing": [5, "int8", "float32"],
        "output": "f32",
        "mode": "sum",
        "padding_idx": None,
        "include_last_offset": False,
        "two_dimensional": False,
        "index_dtype": "int64",
    }
    assert operation.sizes == {"indices": ("N",), "offsets": (("B", 0),)}


def test_a_matrix_of_indices_has_no_offsets() -> None:
    model = Model(QUANTIZED_BAG, None, None, *BAG[:-2], True, None)
    (operation,) = found(model, torch.ones(2, 3, dtype=torch.int64)).operations
    assert operation.facts["two_dimensional"]
    assert not operation.facts["include_last_offset"], "it has no effect"
    assert list(operation.inputs) == ["weight", "indices"]


def test_an_embedding_is_found_with_its_format() -> None:
    model = Model(QUANTIZED_EMBEDDING, 5, "int8", "float32", torch.bfloat16)
    (operation,) = found(model, INDICES).operations
    assert operation.kind == "embedding"
    assert operation.facts == {
        "packing": [5, "int8", "float32"],
        "output": "bf16",
        "index_dtype": "int64",
    }


TORCH_BYTE: Any = torch.ops.quantized.embedding_bag_byte_rowwise_offsets.default
TORCH_4BIT: Any = torch.ops.quantized.embedding_bag_4bit_rowwise_offsets.default


@pytest.mark.parametrize(
    ("op", "packing"),
    [(TORCH_BYTE, [5, "int8", "float32"]), (TORCH_4BIT, [18, "int4", "float16"])],
)
def test_torch_s_own_operators_are_bags_of_sums(op: Any, packing: list[Any]) -> None:
    (operation,) = found(Model(op), INDICES, OFFSETS).operations
    assert operation.facts["packing"] == packing
    assert (operation.facts["mode"], operation.facts["output"]) == ("sum", "f32")
    assert list(operation.inputs) == ["weight", "indices", "offsets"]


@pytest.mark.parametrize(
    ("model", "inputs", "message"),
    [
        (
            Model(QUANTIZED_BAG, None, 6, *BAG[1:]),
            (INDICES, OFFSETS),
            "rows 'b_rows' must have 14 bytes each for embedding_dim 6 in int8 with scales of "
            "float32, not 13, in node",
        ),
        (
            Model(QUANTIZED_EMBEDDING, 5, "int8", "float32", torch.float64),
            (INDICES,),
            "output_dtype must be one of float32, float16, bfloat16, not float64, in node",
        ),
        (
            Model(QUANTIZED_EMBEDDING, 5, "int2", "float32", torch.float32),
            (INDICES,),
            "format of a table must be int8 or int4, not 'int2', in node",
        ),
        (
            Model(QUANTIZED_BAG, *BAG[:4], "max", False, None),
            (INDICES, OFFSETS, torch.ones(3)),
            "mode must be 'sum' with per_sample_weights, not 'max', in node",
        ),
        (
            Model(QUANTIZED_BAG, *BAG),
            (INDICES, OFFSETS, torch.ones(3).half()),
            "per_sample_weights must be of dtype float32, not float16, in node",
        ),
        (
            Model(TORCH_BYTE, False, 1),
            (INDICES, OFFSETS),
            "mode must be 0, as torch's operator sums whatever it is, not 1, in node",
        ),
        (
            Model(TORCH_BYTE, False, 0, True),
            (INDICES, OFFSETS),
            "rows must all be there, not pruned, in node",
        ),
        (
            Model(QUANTIZED_BAG, None, *BAG, rows=ROWS.to(torch.int32)),
            (INDICES, OFFSETS),
            "rows 'b_rows' must be of dtype uint8, not int32, in node",
        ),
    ],
)
def test_what_is_refused_names_the_rule(model: Model, inputs: Any, message: str) -> None:
    findings = found(model, *inputs)
    (refusal,) = findings.refusals
    assert re.match(re.escape(message), refusal.reason)
    assert findings.operations == ()


def test_one_tensor_as_indices_and_offsets_is_refused() -> None:
    class Same(Model):
        def forward(self, indices: Any, *others: Any) -> Any:
            return self.op(self.rows, indices, indices, None, *self.facts)

    (refusal,) = found(Same(QUANTIZED_BAG, *BAG), INDICES).refusals
    assert refusal.reason.startswith(
        "offsets must be another input than indices, not indices too, in node"
    )
