# pyright: basic
import doctest
import re
from typing import Any

import numpy as np
import pytest
import torch
from torch.export import Dim

from ember_hw.compiler import frontend
from ember_hw.compiler.frontend import torch_export
from ember_hw.compiler.frontend.tests import models
from ember_hw.errors import CompileError, UnsupportedError

#: Whatever kind of spec it finds has the attributes that a test reads.
import_module: Any = frontend.import_module

IDS = torch.tensor([1, 2, 3, 4, 5, 6, 7])
ENDS = torch.tensor([0, 3, 4])


def _bag(**options) -> torch.nn.EmbeddingBag:
    return torch.nn.EmbeddingBag(10, 4, **{"mode": "sum", **options})


def _refuses(error: type[Exception], text: str):
    return pytest.raises(error, match=f"^{re.escape(text)}$")


@pytest.mark.parametrize("offset_dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("include_last_offset", [False, True])
def test_bag_with_offsets(index_dtype, offset_dtype, include_last_offset):
    bag = _bag(include_last_offset=include_last_offset)
    spec = import_module(bag, (IDS.to(index_dtype), ENDS.to(offset_dtype))).spec
    assert (spec.name, spec.num_embeddings, spec.embedding_dim) == ("weight", 10, 4)
    assert f"torch.{spec.index_dtype.name}" == str(index_dtype)
    assert spec.include_last_offset is include_last_offset
    assert spec.two_dimensional is False
    assert spec.input_names == ("input", "offsets")
    assert (spec.indices_name, spec.offsets_name) == ("input", "offsets")
    assert spec.size_limits == ()


@pytest.mark.parametrize("include_last_offset", [False, True])
@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64])
def test_bag_of_two_dimensions(index_dtype, include_last_offset):
    bag = _bag(include_last_offset=include_last_offset)
    spec = import_module(bag, (IDS[:6].reshape(2, 3).to(index_dtype),)).spec
    assert spec.two_dimensional is True
    assert spec.include_last_offset is False  # no effect on 2-D indices
    assert f"torch.{spec.index_dtype.name}" == str(index_dtype)
    assert spec.input_names == ("input",)
    assert (spec.indices_name, spec.offsets_name) == ("input", None)
    assert spec.size_limits == ()


@pytest.mark.parametrize(
    "examples",
    [
        (IDS[:0], ENDS[:0]),
        (IDS[:1], ENDS[:1]),
        (IDS[:3], ENDS[:3]),
        [IDS, ENDS, None],
        (IDS.numpy(), ENDS.numpy()),
    ],
    ids=["none", "one", "equal", "list", "numpy"],
)
def test_sizes_of_examples_fix_nothing(examples):
    spec = import_module(_bag(), examples).spec
    assert spec.size_limits == ()
    assert spec.input_names == ("input", "offsets")


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (1, 1)])
def test_sizes_of_two_dimensional_examples_fix_nothing(shape):
    examples = torch.zeros(shape, dtype=torch.int64)
    assert import_module(_bag(), examples).spec.size_limits == ()


def test_one_tensor_for_two_inputs_is_not_wired_up_as_one():
    spec = import_module(_bag(), (IDS, IDS)).spec
    assert (spec.indices_name, spec.offsets_name) == ("input", "offsets")


def test_examples_are_not_touched():
    ids, ends = IDS.clone(), ENDS.clone()
    import_module(_bag(), (ids, ends))
    assert torch.equal(ids, IDS)
    assert torch.equal(ends, ENDS)


def test_bag_in_a_submodule_is_named_by_its_path():
    spec = import_module(models.Wrapped(), (IDS, ENDS)).spec
    assert spec.name == "user.weight"
    assert spec.input_names == ("ids", "ends")


def test_options_without_effect_on_the_result_are_accepted():
    bag = _bag(sparse=True)
    assert import_module(bag, (IDS, ENDS)).spec.name == "weight"
    bag = _bag(scale_grad_by_freq=True)
    assert import_module(bag, (IDS, ENDS)).spec.name == "weight"


def test_zero_row_table():
    bag = torch.nn.EmbeddingBag(0, 4, mode="sum")
    assert import_module(bag, (IDS, ENDS)).spec.num_embeddings == 0


def test_weight_is_the_memory_of_the_parameter():
    bag = _bag()
    spec = import_module(bag, (IDS, ENDS)).spec
    with torch.no_grad():
        bag.weight[3, 1] = 42.0
    assert spec.weight[3, 1] == 42.0
    assert spec.weight.dtype == np.float32


def test_transposed_weight_is_copied():
    bag = _bag()
    bag.weight = torch.nn.Parameter(torch.arange(40.0).reshape(4, 10).T)
    spec = import_module(bag, (IDS, ENDS)).spec
    assert spec.weight.flags.c_contiguous
    assert spec.weight.tolist() == bag.weight.tolist()


class _BufferTable(torch.nn.Module):
    rows: torch.Tensor

    def __init__(self, persistent):
        super().__init__()
        self.register_buffer("rows", torch.arange(40.0).reshape(10, 4), persistent=persistent)

    def forward(self, ids, ends):
        return torch.nn.functional.embedding_bag(ids, self.rows, ends, mode="sum")


@pytest.mark.parametrize("persistent", [False, True])
def test_table_may_be_a_buffer(persistent):
    spec = import_module(_BufferTable(persistent), (IDS, ENDS)).spec
    assert spec.name == "rows"
    assert spec.weight[9].tolist() == [36.0, 37.0, 38.0, 39.0]


AUTO = {0: Dim.AUTO}


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")
@pytest.mark.parametrize("decompose", [False, True])
@pytest.mark.parametrize("two_dimensional", [False, True])
@pytest.mark.parametrize("free", [False, True])
def test_exported_program_before_and_after_decomposition(decompose, two_dimensional, free):
    if two_dimensional:
        inputs, shapes = (IDS[:6].reshape(3, 2),), ({0: Dim.AUTO, 1: Dim.AUTO},)
        fixed = (("input", 0, 3, 3), ("input", 1, 2, 2))
    else:
        inputs, shapes = (IDS, ENDS), (AUTO, AUTO)
        fixed = (("input", 0, 7, 7), ("offsets", 0, 3, 3))
    program = torch.export.export(_bag(), inputs, dynamic_shapes=shapes if free else None)
    if decompose:
        program = program.run_decompositions()
    spec = import_module(program).spec
    assert spec.two_dimensional is two_dimensional
    assert spec.size_limits == (() if free else fixed)


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")
def test_exported_program_of_a_file(tmp_path):
    bag = _bag(include_last_offset=True)
    torch.export.save(
        torch.export.export(bag, (IDS, ENDS), dynamic_shapes=(AUTO, AUTO)), tmp_path / "bag.pt2"
    )
    spec = import_module(torch.export.load(tmp_path / "bag.pt2")).spec
    assert spec.include_last_offset is True
    assert spec.weight.tolist() == bag.weight.tolist()


def test_bounds_of_an_exported_program_are_kept():
    shapes = ({0: Dim("n", min=5, max=100)}, {0: Dim("b", max=64)})
    program = torch.export.export(_bag(), (IDS, ENDS), dynamic_shapes=shapes)
    spec = import_module(program).spec
    assert spec.size_limits == (("input", 0, 5, 100), ("offsets", 0, 0, 64))


def test_other_models_are_refused():
    with _refuses(
        TypeError, "model must be a torch.nn.Module or torch.export.ExportedProgram, not int"
    ):
        import_module(3, (IDS, ENDS))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(("examples", "kind"), [(None, "NoneType"), ({"input": IDS}, "dict")])
def test_other_examples_are_refused(examples, kind):
    text = f"example_inputs must be a tuple of tensors for a module, not {kind}"
    with _refuses(TypeError, text):
        import_module(_bag(), examples)


def test_example_of_another_kind_is_refused():
    text = "example_inputs[1] must be a tensor, an array or None, not list"
    with _refuses(TypeError, text):
        import_module(_bag(), (IDS, [0, 2]))


def test_module_that_torch_cannot_export_is_refused():
    text = (
        "RaisesWhenTraced must be a module that torch.export can export with example_inputs, "
        "not fail with RuntimeError: no trace of me"
    )
    with _refuses(CompileError, text):
        import_module(models.RaisesWhenTraced(), (IDS,))


def test_indices_of_another_dtype_are_refused():
    text = (
        "EmbeddingBag must be a module that torch.export can export with example_inputs, "
        "not fail with RuntimeError: expected indices to be long or int, got torch.int16"
    )
    with _refuses(CompileError, text):
        import_module(_bag(), (IDS.to(torch.int16), ENDS))


@pytest.mark.parametrize(
    ("takes_other_path", "rule"),
    [
        (lambda n: n != 5, "5"),
        (lambda n: n > 100, "in [0, 100]"),
        (lambda n: 2 <= n < 4, "at least 4"),
    ],
    ids=["fixed", "above", "below"],
)
def test_module_that_needs_some_sizes_is_refused(takes_other_path, rule):
    text = f"BranchesOn must take inputs of any size, not need ids.shape[0] to be {rule}"
    with _refuses(UnsupportedError, text):
        import_module(models.BranchesOn(takes_other_path), (IDS, ENDS))


@pytest.mark.parametrize("special", [0, 1])
def test_module_that_is_another_for_few_bags_is_refused(special):
    module = models.BranchesOn(lambda n: n == special)
    line = models.BranchesOn.forward.__code__.co_firstlineno + 2
    text = (
        f"BranchesOn must be the same operation at any sizes of its inputs, not another model at "
        f"sizes of {special}: offsets must be another input than indices, not ends too, in node "
        f"'embedding_bag' "
        f"(aten.embedding_bag.padding_idx) at {models.FILE}:{line}"
    )
    with _refuses(UnsupportedError, text):
        import_module(module, (IDS, ENDS))


class _OtherTableForOne(models.Wrapped):
    def __init__(self):
        super().__init__()
        self.item = torch.nn.EmbeddingBag(10, 4, mode="sum")

    def forward(self, ids, ends):
        return (self.item if ids.shape[0] == 1 else self.user)(ids, ends)


def test_module_with_another_table_for_one_bag_is_refused():
    text = (
        "_OtherTableForOne must be the same operation at any sizes of its inputs, not another "
        "model at sizes of 1"
    )
    with _refuses(UnsupportedError, text):
        import_module(_OtherTableForOne(), (IDS, ENDS))


def test_examples_of_the_docstrings_hold():
    results = doctest.testmod(torch_export)
    assert results.attempted > 0
    assert results.failed == 0
