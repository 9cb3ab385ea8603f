# pyright: basic
"""Modules that stand in for torch's: parameters, attributes, and rows from the device."""

from __future__ import annotations

import copy
import io
import re

import pytest
import torch

import ember_hw
from ember_hw import nn
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import UnsupportedError
from ember_hw.host.launch_plan import LaunchPlan
from ember_hw.host.program_cache import programs_built

INDICES, OFFSETS = torch.tensor([1, 2, 4, 5, 4, 3, 2, 9]), torch.tensor([0, 4])
MATRIX = torch.tensor([[1, 2, 4, 5], [4, 3, 2, 9]])


def test_bag_gives_torch_s_rows_from_the_device(device, counting):
    bag = torch.nn.EmbeddingBag(10, 4, mode="sum")
    ours = nn.EmbeddingBag.from_torch(bag, device=device)
    with torch.no_grad():
        torch.testing.assert_close(ours(INDICES, OFFSETS), bag(INDICES, OFFSETS))
        assert counting.launches == 1
        bag.weight[4] = torch.nan
        assert ours(INDICES, OFFSETS).isnan().all()
    assert ours.accelerator.report.lookups == 8


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "mean"},
        {"mode": "max"},
        {"mode": "mean", "padding_idx": -8},
        {"mode": "max", "padding_idx": 2},
    ],
)
def test_each_option_is_torch_s(device, counting, options):
    bag = torch.nn.EmbeddingBag(10, 4, **options)
    ours = nn.EmbeddingBag.from_torch(bag)
    with torch.no_grad():
        torch.testing.assert_close(ours(INDICES, OFFSETS), bag(INDICES, OFFSETS))
        torch.testing.assert_close(ours(MATRIX), bag(MATRIX))
        torch.testing.assert_close(ours(MATRIX.int()), bag(MATRIX))
    assert counting.launches == 3


def test_offsets_with_the_last_end_and_weights_are_torch_s(device):
    bag = torch.nn.EmbeddingBag(10, 4, mode="sum", include_last_offset=True)
    ours = nn.EmbeddingBag.from_torch(bag)
    weights, ends = torch.rand(8), torch.tensor([0, 4, 8])
    with torch.no_grad():
        torch.testing.assert_close(
            ours(INDICES, ends, per_sample_weights=weights), bag(INDICES, ends, weights)
        )


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0), (2, 3, 1)])
def test_embedding_takes_indices_of_any_shape(device, counting, shape):
    rows = torch.nn.Embedding(10, 4, padding_idx=1)
    ours = nn.Embedding.from_torch(rows)
    indices = torch.randint(0, 10, shape)
    with torch.no_grad():
        assert torch.equal(ours(indices), rows(indices))
    assert counting.launches == 1


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", ["Embedding", "EmbeddingBag"])
def test_narrow_tables_give_rows_of_their_dtype(device, counting, kind, dtype):
    theirs = getattr(torch.nn, kind)(10, 4, dtype=dtype)
    ours = getattr(nn, kind).from_torch(theirs)
    with torch.no_grad():
        assert ours(MATRIX).dtype is dtype
        torch.testing.assert_close(ours(MATRIX), theirs(MATRIX))
    assert counting.launches == 2


@pytest.mark.parametrize("kind", ["Embedding", "EmbeddingBag"])
def test_attributes_and_state_are_torch_s(device, kind):
    torch.manual_seed(0)
    ours = getattr(nn, kind)(10, 4, padding_idx=2)
    torch.manual_seed(0)
    theirs = getattr(torch.nn, kind)(10, 4, padding_idx=2)
    assert repr(ours) == repr(theirs)
    assert torch.equal(ours.weight, theirs.weight)
    assert isinstance(ours, type(theirs))
    assert {name for name in vars(theirs) if not name.startswith("_")} == {
        name for name in vars(ours) if not name.startswith("_")
    }
    for source, target in ((ours, theirs), (theirs, ours)):
        with torch.no_grad():
            source.weight.normal_()
        target.load_state_dict(source.state_dict())
        assert torch.equal(ours.weight, theirs.weight)
        indices = MATRIX
        torch.testing.assert_close(ours(indices), theirs(indices))


@pytest.mark.parametrize("kind", ["Embedding", "EmbeddingBag"])
def test_from_torch_shares_the_parameter_and_keeps_the_rest(device, kind):
    theirs = getattr(torch.nn, kind)(10, 4, padding_idx=2, sparse=True).eval()
    theirs.weight.requires_grad_(False)
    ours = getattr(nn, kind).from_torch(theirs, opt_level=2)
    assert ours.weight is theirs.weight
    assert repr(ours) == repr(theirs)
    assert not ours.training
    again = getattr(nn, kind).from_torch(ours)
    assert again.weight is theirs.weight


@pytest.mark.parametrize("kind", ["Embedding", "EmbeddingBag"])
def test_from_pretrained_makes_a_drop_in_module(device, counting, kind):
    table = torch.arange(40.0).reshape(10, 4)
    ours = getattr(nn, kind).from_pretrained(table)
    theirs = getattr(torch.nn, kind).from_pretrained(table)
    assert not ours.weight.requires_grad
    torch.testing.assert_close(ours(MATRIX), theirs(MATRIX))
    assert counting.launches == 1


@pytest.mark.parametrize("change", ["in place", "data", "exchanged", "strided", "other shape"])
def test_table_that_was_changed_is_never_stale(device, change):
    bag = nn.EmbeddingBag(10, 5, mode="sum")
    reference = torch.nn.EmbeddingBag(10, 5, mode="sum")
    for _ in range(2):
        bag(MATRIX)
        with torch.no_grad():
            if change == "in place":
                bag.weight[2] += 1
            elif change == "data":
                bag.weight.data[2] = 7.0
            elif change == "exchanged":
                bag.weight.data = torch.randn(10, 5)
            elif change == "strided":
                bag.weight.data = torch.randn(5, 10).T
                bag(MATRIX)
                bag.weight.data[9] = 5.0
            else:
                bag.weight.data = torch.randn(12, 5)
        reference.weight = bag.weight
        torch.testing.assert_close(bag(MATRIX), reference(MATRIX))


def test_second_call_of_a_shape_class_builds_nothing(device, monkeypatch):
    bag = nn.EmbeddingBag(10, 4, mode="sum")
    bag(MATRIX)
    before = programs_built()
    monkeypatch.setattr("ember_hw.host.nn.lookups.program_of", None)
    bag(MATRIX[:1])
    bag(INDICES, OFFSETS)
    bag(torch.empty(0, dtype=torch.int64), torch.empty(0, dtype=torch.int64))
    assert programs_built() == before


@pytest.mark.parametrize("kind", ["bag", "rows", "collection"])
def test_second_call_of_one_size_plans_nothing(device, monkeypatch, kind):
    tables = [
        nn.TableConfig(name=n, num_embeddings=10, embedding_dim=4, feature_names=[n]) for n in "ab"
    ]
    module, inputs = {
        "bag": (nn.EmbeddingBag(10, 4, mode="sum"), [MATRIX, MATRIX.flip(0)]),
        "rows": (nn.Embedding(10, 4), [MATRIX, MATRIX.flip(0)]),
        "collection": (
            nn.EmbeddingBagCollection(tables),
            [{"a": MATRIX, "b": MATRIX.flip(0)}, {"a": MATRIX.flip(0), "b": MATRIX}],
        ),
    }[kind]
    module(inputs[0])
    expected = module(inputs[1])
    monkeypatch.setattr(LaunchPlan, "__init__", None)
    for given in (inputs[0], inputs[1]):
        found = module(given)
    if kind == "collection":
        found, expected = found.values(), expected.values()
    assert torch.equal(found, expected)
    with torch.no_grad():
        for table in module.parameters():
            table.mul_(2)  # it is read where it lies
    found = module(inputs[1])
    assert torch.equal(found.values() if kind == "collection" else found, 2 * expected)


def test_tables_of_other_heights_share_a_program(device):
    nn.EmbeddingBag(10, 4, mode="sum")(MATRIX)
    before = programs_built()
    nn.EmbeddingBag(1000, 4, mode="sum")(MATRIX)
    assert programs_built() == before
    nn.EmbeddingBag(10, 4, mode="sum", device=ember_hw.open_device("interpreter"))(MATRIX)
    assert programs_built() <= before + 1


def test_copies_have_tables_of_their_own(device):
    bag = nn.EmbeddingBag(10, 4, mode="sum", opt_level=2)
    before = bag(MATRIX)
    other = copy.deepcopy(bag)
    with torch.no_grad():
        other.weight.zero_()
    assert not other(MATRIX).any()
    assert torch.equal(bag(MATRIX), before)
    assert other.accelerator is bag.accelerator


def test_saved_module_runs_on_the_default_device(device):
    own = ember_hw.open_device("interpreter")
    bag = nn.EmbeddingBag(10, 4, mode="sum", device=own)
    file = io.BytesIO()
    torch.save(bag, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    assert bag.accelerator is own
    assert loaded.accelerator is device
    assert torch.equal(loaded(MATRIX), bag(MATRIX))


def test_backend_by_name_and_torch_s_device_are_told_apart(device):
    assert nn.Embedding(3, 4, device="cpu").accelerator is device
    assert nn.Embedding(3, 4, device="meta").weight.is_meta
    made = nn.Embedding.from_torch(torch.nn.Embedding(3, 4), device="interpreter")
    assert made.accelerator.config == AcceleratorConfig.preset("tables")
    assert made.accelerator is not device


def test_compiled_model_calls_the_device_between_its_graphs(device, counting):
    torch._dynamo.reset()
    model = torch.nn.Sequential(nn.EmbeddingBag(10, 4, mode="sum"), torch.nn.ReLU())
    with torch.no_grad():
        compiled = torch.compile(model, backend="eager")
        torch.testing.assert_close(compiled(MATRIX), model(MATRIX))
    assert counting.launches == 2


@pytest.mark.filterwarnings("ignore:is_fx_tracing")
@pytest.mark.parametrize(
    ("kind", "inputs"), [("EmbeddingBag", (INDICES, OFFSETS)), ("Embedding", (MATRIX,))]
)
def test_module_is_compiled_and_exported_as_torch_s(device, kind, inputs):
    module = getattr(nn, kind)(10, 4)
    program = ember_hw.compile(module, inputs, config=device.config)
    with torch.no_grad():
        torch.testing.assert_close(device.run(program, inputs), module(*inputs))


@pytest.mark.parametrize("kind", ["Embedding", "EmbeddingBag"])
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"max_norm": 1.0, "norm_type": 1.0},
            UnsupportedError,
            "max_norm must be None, not 1.0; renormalise the table once before it is loaded: "
            "weight.data.renorm_(1.0, 0, 1.0)",
        ),
        (
            {"padding_idx": 10},
            ValueError,
            "padding_idx must be in [-10, 10), the rows of table 'weight' counted from either end, "
            "not 10",
        ),
        ({"opt_level": 4}, ValueError, "opt_level must be 0, 1, 2 or 3, not 4"),
    ],
)
def test_options_are_checked(kind, options, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        getattr(nn, kind)(10, 4, **options)


def test_mode_is_checked_at_once():
    message = "mode must be 'sum', 'mean' or 'max', not 'min' (table 'weight')"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        nn.EmbeddingBag(10, 4, mode="min")


@pytest.mark.parametrize("kind", ["Embedding", "EmbeddingBag"])
def test_max_norm_that_is_set_later_is_refused_too(device, counting, kind):
    module = getattr(nn, kind)(10, 4)
    module.max_norm = 2.0
    with pytest.raises(UnsupportedError, match=r"^max_norm must be None, not 2\.0; renormalise"):
        module(MATRIX)
    assert counting.launches == 0


class Doubled(torch.nn.EmbeddingBag):
    """A bag with another forward."""


@pytest.mark.parametrize(
    ("kind", "module", "message"),
    [
        ("EmbeddingBag", torch.nn.Linear(2, 2), "EmbeddingBag itself, not Linear"),
        ("EmbeddingBag", Doubled(2, 2), "EmbeddingBag itself, not Doubled"),
        ("Embedding", torch.nn.EmbeddingBag(2, 2), "Embedding itself, not EmbeddingBag"),
    ],
)
def test_other_modules_are_refused(kind, module, message):
    with pytest.raises(TypeError, match=f"^module must be a torch.nn.{message}$"):
        getattr(nn, kind).from_torch(module)


def test_module_with_hooks_is_refused():
    bag = torch.nn.EmbeddingBag(2, 2)
    bag.register_forward_hook(lambda *_: None)
    message = (
        "module must have no hooks, and has forward hooks; register them on the result of "
        "from_torch"
    )
    with pytest.raises(ValueError, match=f"^{message}$"):
        nn.EmbeddingBag.from_torch(bag)


@pytest.mark.parametrize(
    ("dtype", "place", "error", "message"),
    [
        (
            torch.float64,
            "cpu",
            UnsupportedError,
            "weight must be of dtype float32, float16, bfloat16, not float64; convert the module "
            "with .float()",
        ),
        (
            torch.float32,
            "meta",
            TypeError,
            "weight must be a dense tensor with data, not a meta tensor",
        ),
    ],
)
def test_tables_of_other_kinds_are_refused(device, counting, dtype, place, error, message):
    bag = nn.EmbeddingBag(10, 4, dtype=dtype, device=place)
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        bag(MATRIX)
    assert counting.launches == 0
