# pyright: basic
"""Collections: TorchRec's interface, one run for many bags, and gradients of all tables."""

from __future__ import annotations

import copy
import doctest
import re

import pytest
import torch

import ember_hw
from ember_hw.host.nn import collection
from ember_hw.host.nn.tests.jagged import (
    EmbeddingBagConfig,
    KeyedJaggedTensor,
    PoolingType,
    TorchRecCollection,
)
from ember_hw.host.program_cache import programs_built
from ember_hw.nn import EmbeddingBagCollection, TableConfig

TABLES = [
    EmbeddingBagConfig(9, 4, "user", ["u"]),
    EmbeddingBagConfig(20, 5, "item", ["i", "j"]),
    EmbeddingBagConfig(7, 16, "shop", ["u"]),
]
BAGS = {"u": [[1, 2], [], [6]], "i": [[19, 0, 3], [4], []], "j": [[5], [5, 5], [19]]}
JAGGED = KeyedJaggedTensor.of(BAGS)


def test_rows_are_torchrec_s_from_one_run(device, counting):
    theirs = TorchRecCollection(TABLES)
    ours = EmbeddingBagCollection.from_torch(theirs)
    with torch.no_grad():
        rows = ours(JAGGED)
        assert counting.launches == 1
        torch.testing.assert_close(rows.values(), theirs(JAGGED))
        theirs.embedding_bags["item"].get_parameter("weight")[5] = torch.nan
        assert ours(JAGGED)["j"].isnan().any()
    assert rows.keys() == ["u@user", "i", "j", "u@shop"]
    assert rows.length_per_key() == [4, 5, 5, 16]
    assert rows.offset_per_key() == [0, 4, 9, 14, 30]
    assert torch.equal(rows["j"], rows.to_dict()["j"])
    assert [str(group) for group in ours.groups] == ["one program: u@user, i, j, u@shop"]


def test_second_call_builds_nothing(device, monkeypatch):
    ours = EmbeddingBagCollection(TABLES)
    ours(JAGGED)
    before = programs_built()
    monkeypatch.setattr("ember_hw.host.nn.lookups.program_of", None)
    ours(KeyedJaggedTensor.of({name: [[1], [2, 3]] for name in "uij"}))
    assert programs_built() == before
    assert len(ours.accelerator._loaded) >= 1


def test_weights_and_gradients_are_torchrec_s(device, counting):
    theirs = TorchRecCollection(TABLES, is_weighted=True)
    ours = EmbeddingBagCollection.from_torch(copy.deepcopy(theirs))
    found = []
    for module in (theirs, ours):
        scales = torch.arange(11.0).requires_grad_()
        rows = module(KeyedJaggedTensor.of(BAGS, scales))
        rows = rows if module is theirs else rows.values()
        rows.square().sum().backward()
        found.append([rows, scales.grad, *(table.grad for table in module.parameters())])
    assert counting.launches == 1
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("sparse", [False, True])
def test_mapping_of_each_kind_of_feature(device, sparse):
    tables = [
        TableConfig(
            name=name, num_embeddings=20, embedding_dim=4, feature_names=[name], sparse=sparse
        )
        for name in "uijn"
    ]
    ours = EmbeddingBagCollection(tables)
    indices, offsets = torch.tensor([1, 2, 6]), torch.tensor([0, 2])
    matrix = torch.tensor([[3, 4], [5, 6]])
    nested = torch.nested.nested_tensor([indices, indices[:1]], layout=torch.jagged)
    rows = ours({"u": (indices, offsets), "i": matrix, "j": matrix, "n": nested})
    bags = ours.embedding_bags
    torch.testing.assert_close(rows["u"], bags["u"](indices, offsets))
    torch.testing.assert_close(rows["i"], bags["i"](matrix))
    torch.testing.assert_close(rows["n"], bags["n"](nested))
    rows.values().sum().backward()
    assert [getattr(table.grad, "is_sparse", None) for table in ours.parameters()] == [sparse] * 4


def test_modes_and_dtypes_are_groups_of_their_own(device, counting):
    tables = [
        TableConfig(
            name=f"t{n}", num_embeddings=9, embedding_dim=4, feature_names=[f"f{n}"], pooling=mode
        )
        for n, mode in enumerate(("sum", "mean", "sum", "sum", PoolingType.MEAN))
    ]
    ours, matrix = EmbeddingBagCollection(tables), torch.tensor([[1, 2], [3, 8]])
    features = {f"f{n}": matrix.int() if n == 3 else matrix for n in range(5)}
    rows = ours(features)
    assert counting.launches == 3
    assert sorted(group.names for group in ours.groups) == [("f0", "f2"), ("f1", "f4"), ("f3",)]
    for n in range(5):
        torch.testing.assert_close(rows[f"f{n}"], ours.embedding_bags[f"t{n}"](matrix))


@pytest.mark.parametrize(
    ("preset", "opt_level", "reason"),
    [
        ("default", 3, r"au: .* \(limit traversal_units; a config with 4 would do\)"),
        ("tables", 1, "opt_level must be 2 or 3 for 4 bags in one program, not 1"),
    ],
)
def test_where_bags_do_not_fit_they_run_one_by_one_and_it_is_said(preset, opt_level, reason):
    config = ember_hw.AcceleratorConfig.preset(preset)
    theirs = TorchRecCollection(TABLES)
    with ember_hw.open_device("interpreter", config=config) as small:
        ours = EmbeddingBagCollection.from_torch(theirs, device=small, opt_level=opt_level)
        text = (
            f"4 bags run one by one, as one program for them doesn't fit the device: {reason}; "
            r"AcceleratorConfig\.preset\('tables'\) at opt_level 2 or 3 is made for them"
        )
        with torch.no_grad():
            with pytest.warns(UserWarning, match=f"^{text}$"):
                found = ours(JAGGED).values()
            torch.testing.assert_close(found, theirs(JAGGED))
            torch.testing.assert_close(ours(JAGGED).values(), found)  # and isn't said again
    (group,) = ours.groups
    assert group.reason is not None
    assert re.fullmatch(reason, group.reason)
    assert str(group) == f"one by one: u@user, i, j, u@shop: {group.reason}"


def test_rows_that_are_too_long_for_one_program_are_named(device):
    tables = [
        TableConfig(name="short", num_embeddings=2, embedding_dim=4, feature_names=["a"]),
        TableConfig(name="long", num_embeddings=2, embedding_dim=1 << 18, feature_names=["b"]),
    ]
    ours = EmbeddingBagCollection(tables)
    matrix = torch.tensor([[1]])
    message = (
        r"embedding_dim of table 'long' must be in \[1, \d+\] at opt_level 3 on config 'tables', "
        "not 262144"
    )
    with (
        pytest.warns(UserWarning, match=message),
        pytest.raises(ember_hw.errors.UnsupportedError, match="table 'long' must be at most"),
    ):
        ours({"a": matrix, "b": matrix})


def test_no_bag_at_all_gives_no_rows(device):
    ours = EmbeddingBagCollection(TABLES)
    rows = ours(KeyedJaggedTensor.of({name: [] for name in "uij"}))
    assert [rows[key].shape for key in rows.keys()] == [(0, 4), (0, 5), (0, 5), (0, 16)]


def test_state_is_torchrec_s(device):
    theirs, ours = TorchRecCollection(TABLES), EmbeddingBagCollection(TABLES)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict(theirs.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(ours(JAGGED).values(), theirs(JAGGED))
    theirs.load_state_dict(ours.state_dict())
    assert not ours.is_weighted()
    (user, item, shop) = ours.embedding_bag_configs()
    assert (item.name, item.num_embeddings, list(item.feature_names)) == ("item", 20, ["i", "j"])
    assert (
        EmbeddingBagCollection([user, item, shop]).embedding_bags.keys()
        == {
            "user": 0,
            "item": 0,
            "shop": 0,
        }.keys()
    )


def test_modules_by_name_become_a_collection(device):
    modules = torch.nn.ModuleDict({name: torch.nn.EmbeddingBag(9, 4) for name in ("a", "b")})
    ours = EmbeddingBagCollection.from_torch(modules)
    matrix = torch.tensor([[1, 2]])
    rows = ours({"a": matrix, "b": matrix})
    assert ours.embedding_bags["b"].weight is modules["b"].weight
    torch.testing.assert_close(rows["b"], modules["b"](matrix))


def test_copy_has_tables_of_its_own(device):
    ours = EmbeddingBagCollection(TABLES)
    before = ours(JAGGED).values()
    other = copy.deepcopy(ours)
    with torch.no_grad():
        for table in other.parameters():
            table.zero_()
    assert not other(JAGGED).values().any()
    assert torch.equal(ours(JAGGED).values(), before)
    assert other.accelerator is device


MATRIX = torch.tensor([[1, 2]])
INDICES, OFFSETS = torch.tensor([1, 2]), torch.tensor([0])


@pytest.mark.parametrize(
    ("features", "error", "message"),
    [
        (3, TypeError, "features must be a mapping or a KeyedJaggedTensor, not int"),
        (
            {"u": 3},
            TypeError,
            "feature 'u' must be a tensor, (indices, offsets) or (indices, "
            "offsets, per_sample_weights), not int",
        ),
        (
            {"u": (INDICES,)},
            TypeError,
            "feature 'u' must be a tensor, (indices, offsets) or "
            "(indices, offsets, per_sample_weights), not a tuple of 1",
        ),
        ({"u": MATRIX, "i": MATRIX}, ValueError, "features must hold 'j', not only u, i"),
        ({}, ValueError, "features must hold 'u', not only nothing"),
        (
            {"u": (INDICES, OFFSETS, torch.ones(2)), "i": MATRIX, "j": MATRIX},
            ValueError,
            "feature 'u' must not have weights of lookups in a collection with is_weighted=False",
        ),
        (
            {"u": MATRIX, "i": MATRIX, "j": MATRIX.T},
            ValueError,
            "features must have the same number of bags, not 'u@user' 1, 'i' 1, 'j' 2, 'u@shop' 1",
        ),
        (
            {"u": MATRIX, "i": (INDICES + 18, OFFSETS), "j": MATRIX},
            IndexError,
            "indices[1] must be in [0, 20), the rows of table 'item', not 20",
        ),
        (
            KeyedJaggedTensor(["u", "i", "j"], INDICES, torch.tensor([0, 1, 2]), 1),
            ValueError,
            "offsets must have 3 x 1 + 1 entries for 3 keys of stride 1, not 3",
        ),
        (
            KeyedJaggedTensor(["u", "i", "j"], INDICES, torch.tensor([0, 2, 1, 2]), 1),
            ValueError,
            "offsets[2] must be at least offsets[1] = 2, not 1 (table 'KeyedJaggedTensor')",
        ),
    ],
)
def test_features_that_break_a_rule_are_refused(device, counting, features, error, message):
    ours = EmbeddingBagCollection(TABLES)
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        ours(features)
    assert counting.launches == 0


def test_missing_weights_are_refused(device):
    ours = EmbeddingBagCollection(TABLES, is_weighted=True)
    message = "feature 'u' must have weights of lookups in a collection with is_weighted=True"
    for features in (JAGGED, {"u": MATRIX, "i": MATRIX, "j": MATRIX}):
        with pytest.raises(ValueError, match=f"^{message}$"):
            ours(features)


def test_two_tables_of_one_name_are_refused():
    with pytest.raises(
        ValueError, match=r"^names of tables must be distinct, and 'user' stands twice$"
    ):
        EmbeddingBagCollection([TABLES[0], TABLES[0]])


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (
            torch.nn.Linear(2, 2),
            "module must be a mapping of EmbeddingBags or have one as embedding_bags, not Linear",
        ),
        (
            {"a": torch.nn.Embedding(2, 2)},
            "module must be a torch.nn.EmbeddingBag itself, not Embedding",
        ),
    ],
)
def test_other_modules_are_refused(module, message):
    with pytest.raises(TypeError, match=f"^{message}$"):
        EmbeddingBagCollection.from_torch(module)


def test_examples_of_the_docstrings_hold(device):
    results = doctest.testmod(collection)
    assert (results.attempted > 0, results.failed) == (True, 0)
