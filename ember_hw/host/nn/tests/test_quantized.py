# pyright: basic
"""Modules of quantised tables: state, copies, collections of several dtypes, and refusals."""

from __future__ import annotations

import copy
import doctest
import io
import re
import warnings
from typing import Any

import pytest
import torch

import ember_hw
from ember_hw.errors import UnsupportedError
from ember_hw.host.nn import quantized
from ember_hw.host.nn.tests.jagged import EmbeddingBagConfig
from ember_hw.nn import (
    EmbeddingBag,
    EmbeddingBagCollection,
    QuantizedEmbedding,
    QuantizedEmbeddingBag,
    TableConfig,
    functional,
)

INDICES, OFFSETS = torch.tensor([1, 2, 4, 5, 4, 3, 2, 9]), torch.tensor([0, 4])
MATRIX = torch.tensor([[1, 2], [9, 0]])


@pytest.fixture
def bag(device) -> QuantizedEmbeddingBag:
    torch.manual_seed(0)
    return QuantizedEmbeddingBag.from_torch(torch.nn.EmbeddingBag(10, 5, mode="sum"), "int4")


def unpacked(module) -> torch.Tensor:
    return torch.from_numpy(ember_hw.dequantize(module.table))


def test_rows_are_those_that_the_codes_stand_for(bag, counting):
    weights = torch.linspace(-1, 1, 8)
    found = bag(INDICES, OFFSETS, weights)
    expected = torch.nn.functional.embedding_bag(
        INDICES, unpacked(bag), OFFSETS, mode="sum", per_sample_weights=weights
    )
    torch.testing.assert_close(found, expected)  # torch fuses
    assert counting.launches == 1
    assert bag.accelerator.report.useful_bytes == 8 * bag.rows.shape[1]


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_options_are_torch_s(device, mode):
    theirs = torch.nn.EmbeddingBag(10, 4, mode=mode, include_last_offset=True, padding_idx=-1)
    ours = QuantizedEmbeddingBag.from_torch(theirs)
    assert (ours.mode, ours.include_last_offset, ours.padding_idx) == (mode, True, 9)
    with torch.no_grad():
        theirs.weight.copy_(unpacked(ours))
    ends = torch.tensor([0, 4, 8])
    torch.testing.assert_close(ours(INDICES, ends), theirs(INDICES, ends))
    torch.testing.assert_close(ours(MATRIX), theirs(MATRIX))


def test_nested_tensors_are_bags(bag):
    parts = [torch.tensor([1, 2, 4, 5]), torch.tensor([4, 3, 2, 9])]
    nested = torch.nested.nested_tensor(parts, layout=torch.jagged)
    assert torch.equal(bag(nested), bag(INDICES, OFFSETS))


def test_state_says_what_the_bytes_are(bag):
    other = QuantizedEmbeddingBag.from_torch(torch.nn.EmbeddingBag(10, 5, mode="sum"), "int4")
    assert not torch.equal(other(MATRIX), bag(MATRIX))
    other.load_state_dict(bag.state_dict())
    assert torch.equal(other(MATRIX), bag(MATRIX))
    of_six = QuantizedEmbeddingBag.from_torch(torch.nn.EmbeddingBag(10, 6, mode="sum"), "int4")
    assert of_six.rows.shape == bag.rows.shape, "bytes alone don't tell"
    message = (
        "format of the rows that are loaded must be {'embedding_dim': 6, 'codes': 'int4', "
        "'scale_dtype': 'float16'}, not {'embedding_dim': 5, 'codes': 'int4', "
        "'scale_dtype': 'float16'}"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        of_six.load_state_dict(bag.state_dict())


def test_two_widths_of_the_same_bytes_are_two_programs(bag):
    of_six = QuantizedEmbeddingBag.from_torch(torch.nn.EmbeddingBag(10, 6, mode="sum"), "int4")
    assert bag(MATRIX).shape == (2, 5)
    assert of_six(MATRIX).shape == (2, 6)


def test_copies_have_tables_of_their_own(bag):
    file = io.BytesIO()
    torch.save(bag, file)
    file.seek(0)
    for other in (copy.deepcopy(bag), torch.load(file, weights_only=False)):
        before = bag(MATRIX)
        assert torch.equal(other(MATRIX), before)
        other.rows.zero_()
        assert torch.equal(bag(MATRIX), before)
        assert torch.equal(other(MATRIX), torch.zeros(2, 5))


@pytest.mark.parametrize("change", ["in place", "exchanged"])
def test_rows_that_were_changed_are_never_stale(bag, change):
    bag(MATRIX)
    other = QuantizedEmbeddingBag.from_torch(torch.nn.EmbeddingBag(10, 5, mode="sum"), "int4")
    if change == "in place":
        bag.rows.copy_(other.rows)
    else:
        bag.rows = other.rows
    assert torch.equal(bag(MATRIX), other(MATRIX))


def test_repr_tells_the_format(bag):
    assert repr(bag) == (
        "QuantizedEmbeddingBag(10, 5, codes='int4', scale_dtype='float16', "
        "output_dtype=torch.float32)"
    )


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_torch_s_quantised_module_gives_its_own_bytes(device):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch.ao.nn.quantized as theirs

        module = theirs.EmbeddingBag(10, 4, mode="sum", dtype=torch.quint8)
    ours = QuantizedEmbeddingBag.from_torch(module, "int4")
    assert ours.codes == "int8"
    torch.testing.assert_close(ours(INDICES, OFFSETS), module(INDICES, OFFSETS), rtol=0, atol=1e-5)


def test_a_table_stands_for_the_module_s(device):
    theirs = torch.nn.EmbeddingBag(10, 4, mode="sum")
    table = ember_hw.quantize(torch.ones(10, 4))
    ours = QuantizedEmbeddingBag.from_torch(theirs, table)
    assert torch.equal(ours(MATRIX), torch.full((2, 4), 2.0))
    assert ours.rows.data_ptr() == table.rows.ctypes.data


TABLE = ember_hw.quantize(torch.ones(10, 4))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: QuantizedEmbedding(torch.ones(3, 4)),  # pyright: ignore[reportArgumentType]
            TypeError,
            "table must be a QuantizedTable, not Tensor; ember_hw.quantize makes one",
        ),
        (
            lambda: QuantizedEmbeddingBag(TABLE, "min"),
            ValueError,
            "mode must be 'sum', 'mean' or 'max', not 'min' (table 'rows')",
        ),
        (
            lambda: QuantizedEmbeddingBag(TABLE, output_dtype=torch.float64),
            ValueError,
            "output_dtype must be one of float32, float16, bfloat16, not torch.float64",
        ),
        (
            lambda: QuantizedEmbeddingBag.from_torch(torch.nn.EmbeddingBag(9, 4), TABLE),
            ValueError,
            "table 'weight' must be of the model's shape (9, 4), not (10, 4)",
        ),
        (
            lambda: QuantizedEmbedding.from_torch(torch.nn.Linear(2, 2)),
            TypeError,
            "module must be a torch.nn.Embedding itself, not Linear",
        ),
        (
            lambda: QuantizedEmbedding.from_torch(torch.nn.Embedding(3, 4, max_norm=1.0)),
            UnsupportedError,
            "max_norm must be None, not 1.0; renormalise the table once before it is loaded: "
            "weight.data.renorm_(2.0, 0, 1.0)",
        ),
        (
            lambda: QuantizedEmbeddingBag.from_torch(torch.nn.EmbeddingBag(3, 4).half()),
            TypeError,
            "weight must be of dtype float32, not float16",
        ),
        (
            lambda: functional.embedding_bag(
                MATRIX, TABLE, mode="sum", per_sample_weights=torch.ones(2, 2, requires_grad=True)
            ),
            UnsupportedError,
            "per_sample_weights must need no gradient with a quantised table, which has none "
            "(table 'weight'); detach them, or use a table of float32",
        ),
        (
            lambda: functional.embedding_bag(MATRIX + 1, TABLE, mode="sum"),
            IndexError,
            "indices[1, 0] must be in [0, 10), the rows of table 'weight', not 10",
        ),
        (
            lambda: QuantizedEmbedding(TABLE)(MATRIX + 1),
            IndexError,
            "indices[1, 0] must be in [0, 10), the rows of table 'rows', not 10",
        ),
        (
            lambda: EmbeddingBagCollection.from_torch(
                {"a": torch.nn.EmbeddingBag(3, 4)}, tables={"b": "int8"}
            ),
            ValueError,
            "name in tables must be one of a, not 'b'",
        ),
        (
            lambda: EmbeddingBagCollection([
                TableConfig(num_embeddings=3, embedding_dim=4, name="a", feature_names=["u"],
                            data_type="fp8"),
            ]),
            ValueError,
            "data_type of table 'a' must be one of fp32, fp16, bf16, int8, int4, not 'fp8'",
        ),
    ],
)  # fmt: skip
def test_what_is_refused_says_why(device, counting, call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message
    assert counting.launches == 0


FEATURES = {name: (INDICES, OFFSETS) for name in "abcd"}


def mixed() -> dict[str, torch.nn.EmbeddingBag]:
    torch.manual_seed(1)
    return {name: torch.nn.EmbeddingBag(10, 4, mode="sum") for name in "abcd"}


def test_a_collection_has_tables_of_several_dtypes(device, counting):
    bags = mixed()
    bags["b"].bfloat16()
    ours = EmbeddingBagCollection.from_torch(bags, tables={"c": "int8", "d": "int8"})
    rows = ours(FEATURES)
    assert [str(group) for group in ours.groups] == [
        "one program: a",
        "one program: b",
        "one program: c, d",
    ]
    assert counting.launches == 3
    assert [rows[name].dtype for name in "abcd"] == [
        torch.float32,
        torch.bfloat16,
        torch.float32,
        torch.float32,
    ]
    for name in "cd":
        single = ours.embedding_bags[name]
        assert isinstance(single, QuantizedEmbeddingBag)
        assert torch.equal(rows[name], single(INDICES, OFFSETS))
    assert [config.data_type for config in ours.embedding_bag_configs()] == [
        "fp32",
        "bf16",
        "int8",
        "int8",
    ]
    same = EmbeddingBagCollection.from_torch(ours, output_dtype=torch.float16)
    assert {rows.dtype for rows in same(FEATURES).to_dict().values()} == {torch.float16}


def test_a_config_says_what_a_table_is_stored_as(device):
    tables = [
        TableConfig(
            num_embeddings=10,
            embedding_dim=4,
            name=f"t{number}",
            feature_names=[name],
            data_type=data_type,
        )
        for number, (name, data_type) in enumerate(zip("abcd", ("fp32", "FP16", "int8", "INT4")))
    ]
    ours = EmbeddingBagCollection(tables)
    found = [config.data_type for config in ours.embedding_bag_configs()]
    assert found == ["fp32", "fp16", "int8", "int4"]
    assert ours(FEATURES)["d"].shape == (2, 4)
    theirs = EmbeddingBagCollection([EmbeddingBagConfig(9, 4, "user", ["u"])])
    assert theirs.embedding_bag_configs()[0].data_type == "fp32", "by default"


def test_a_collection_trains_beside_quantised_tables(device):
    ours = EmbeddingBagCollection.from_torch(mixed(), tables={"c": "int8"})
    rows = ours(FEATURES)
    torch.stack([rows[name].square().sum() for name in "abcd"]).sum().backward()
    theirs = mixed()
    theirs["a"](INDICES, OFFSETS).square().sum().backward()
    torch.testing.assert_close(ours.embedding_bags["a"].weight.grad, theirs["a"].weight.grad)
    assert not rows["c"].isnan().any()
    assert {name for name, _ in ours.named_parameters()} == {
        f"embedding_bags.{name}.weight" for name in "abd"
    }


@pytest.mark.parametrize("sparse", [False, True])
def test_the_gradient_of_rows_in_another_dtype_is_the_table_s(device, sparse):
    theirs = torch.nn.EmbeddingBag(10, 4, mode="sum", sparse=sparse)
    ours = EmbeddingBag.from_torch(copy.deepcopy(theirs), output_dtype=torch.bfloat16)
    found = ours(INDICES, OFFSETS)
    assert found.dtype is torch.bfloat16
    found.sum().backward()
    theirs(INDICES, OFFSETS).sum().backward()
    grads: list[Any] = [module.weight.grad for module in (ours, theirs)]
    assert grads[0].dtype is torch.float32
    assert torch.equal(*(grad.to_dense() if sparse else grad for grad in grads))


def test_examples_hold(device):
    assert doctest.testmod(quantized).failed == 0
