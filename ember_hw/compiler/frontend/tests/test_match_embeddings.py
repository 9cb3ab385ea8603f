# pyright: basic
import inspect
import types
from typing import Any

import pytest
import torch
from torch.export import Dim

from ember_hw.compiler.frontend import EmbeddingBagSpec, import_module
from ember_hw.compiler.frontend.tests import models
from ember_hw.errors import CompileError, UnsupportedError

IDS = torch.tensor([1, 2, 3, 4, 5, 6, 7])
ENDS = torch.tensor([0, 3, 4])
BAG = "aten.embedding_bag.padding_idx"
OP_RULE = (
    "must be part of an embedding operation, not another operation; compile the embedding "
    "operation by itself, or the whole model with torch.compile(model, backend='ember_hw')"
)


def _line(function: types.FunctionType, code: str) -> str:
    """Find where torch should say that `code` of a model stands."""
    lines, first = inspect.getsourcelines(function)
    offset = next(i for i, line in enumerate(lines) if code in line)
    return f"{models.FILE}:{first + offset}"


def _refused(model, *inputs) -> pytest.ExceptionInfo[CompileError]:
    with pytest.raises(CompileError) as caught:
        import_module(model, inputs)
    return caught


def _wrapped_bag(**options) -> tuple[models.Wrapped, str]:
    where = f"node 'embedding_bag' ({BAG}) at {_line(models.Wrapped.forward, 'self.user(')}"
    return models.Wrapped(**options), where


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize(("padding_idx", "seen"), [(None, None), (0, 0), (-1, 9)])
@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")
@pytest.mark.parametrize("decompose", [False, True])
def test_modes_and_padding_are_read(mode, padding_idx, seen, decompose):
    model: Any = models.Wrapped(mode=mode, padding_idx=padding_idx)
    if decompose:
        model = torch.export.export(
            model, (IDS, ENDS), dynamic_shapes=({0: Dim.AUTO},) * 2
        ).run_decompositions()
    spec = import_module(model, (IDS, ENDS)).spec
    assert isinstance(spec, EmbeddingBagSpec)
    assert (spec.mode, spec.padding_idx) == (mode, seen)


def test_max_norm_is_refused_with_the_remedy():
    model, where = _wrapped_bag(max_norm=1.5)
    where = where.replace("embedding_bag", "embedding_renorm_", 1).replace(
        BAG, "aten.embedding_renorm_.default"
    )
    assert str(_refused(model, IDS, ENDS).value) == (
        f"max_norm must be None, not 1.5, in {where}; renormalise the table once before it is "
        f"loaded: weight.data.renorm_(2.0, 0, 1.5)"
    )


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")
def test_max_norm_is_refused_after_decomposition():
    program = torch.export.export(models.Wrapped(max_norm=1.5), (IDS, ENDS)).run_decompositions()
    with pytest.raises(UnsupportedError, match=r"^max_norm must be None, not 1\.5, in node"):
        import_module(program)


def test_the_remedy_for_max_norm_is_what_torch_does():
    plain, limited = torch.nn.EmbeddingBag(8, 4, mode="sum"), None
    limited = torch.nn.EmbeddingBag(8, 4, mode="sum", max_norm=1.5)
    limited.load_state_dict(plain.state_dict())
    plain.weight.data.renorm_(2.0, 0, 1.5)
    torch.testing.assert_close(plain(IDS, ENDS), limited(IDS, ENDS))


def test_weights_are_read():
    bag = torch.nn.EmbeddingBag(10, 4, mode="sum")
    spec = import_module(bag, (IDS, ENDS, torch.ones(7))).spec
    assert isinstance(spec, EmbeddingBagSpec)
    assert spec.weights_name == "per_sample_weights"
    assert spec.input_names == ("input", "offsets", "per_sample_weights")


def test_weights_of_two_dimensional_indices_are_read():
    bag = torch.nn.EmbeddingBag(10, 4, mode="sum")
    spec = import_module(bag, (IDS[:6].reshape(2, 3), None, torch.ones(2, 3))).spec
    assert isinstance(spec, EmbeddingBagSpec)
    assert (spec.two_dimensional, spec.weights_name) == (True, "per_sample_weights")


@pytest.mark.parametrize("dtype", [torch.float64])
def test_other_tables_are_refused(dtype):
    model, where = _wrapped_bag()
    name = str(dtype).removeprefix("torch.")
    assert str(_refused(model.to(dtype), IDS, ENDS).value) == (
        f"table 'p_user_weight' must be of dtype float32 or float16 or bfloat16, not {name}, in "
        f"{where}; convert the model with .float()"
    )


def test_table_without_data_is_refused():
    model, where = _wrapped_bag()
    inputs = (IDS.to("meta"), ENDS.to("meta"))
    assert str(_refused(model.to("meta"), *inputs).value) == (
        f"table 'user.weight' must be dense, not a meta tensor, in {where}"
    )


def test_table_without_columns_is_refused():
    model, where = _wrapped_bag()
    model.user.weight = torch.nn.Parameter(torch.zeros(10, 0))
    assert str(_refused(model, IDS, ENDS).value) == (
        f"embedding_dim must be at least 1, not 0, in {where}"
    )


def test_other_operations_are_refused_by_name_and_line():
    caught = _refused(models.ThenLinear(), IDS, ENDS)
    line = _line(models.ThenLinear.forward, "self.top(")
    assert str(caught.value) == f"node 'linear' (aten.linear.default) at {line} {OP_RULE}"
    assert caught.value.node == "linear"


def test_sum_of_two_bags_is_refused():
    line = _line(models.TwoBags.forward, "self.user(")
    assert str(_refused(models.TwoBags(), IDS, ENDS).value) == (
        f"node 'add' (aten.add.Tensor) at {line} {OP_RULE}"
    )


@pytest.mark.parametrize(
    ("model", "inputs", "node", "code", "role"),
    [
        (models.Doubled, (IDS, ENDS), "'mul' (aten.mul.Tensor)", "ids * 2", "indices"),
        (
            models.OffsetsFromLengths,
            (IDS, ENDS),
            "'cumsum' (aten.cumsum.default)",
            "cumsum",
            "offsets",
        ),
        (
            models.SkewedArange,
            (IDS[:6].reshape(2, 3),),
            "'reshape' (aten.reshape.default)",
            "reshape",
            "indices",
        ),
    ],
)
def test_computed_indices_and_offsets_are_refused(model, inputs, node, code, role):
    line = _line(model.forward, code)
    assert str(_refused(model(), *inputs).value) == (
        f"node {node} at {line} must be an input of the model, not computed in it; pass {role} as "
        "it is"
    )


def test_one_input_for_both_is_refused():
    line = _line(models.SameInput.forward, "self.user(")
    assert str(_refused(models.SameInput(), IDS).value) == (
        f"offsets must be another input than indices, not ids too, in node 'embedding_bag' ({BAG}) "
        f"at {line}"
    )


def test_constant_offsets_are_refused():
    line = _line(models.ConstantOffsets.forward, "self.user(")
    assert str(_refused(models.ConstantOffsets(), IDS).value) == (
        f"offsets must be an input of the model, not the constant 'ends', in node 'embedding_bag' "
        f"({BAG}) at {line}"
    )


def test_unused_input_is_refused():
    caught = _refused(models.IgnoresInput(), IDS, ENDS, IDS)
    assert str(caught.value) == (
        "input 'extra' must be used by the model, not ignored; drop it, and don't export with one "
        "tensor as the example of two inputs"
    )
    assert caught.type is CompileError
    assert caught.value.node == "extra"


def test_program_exported_with_one_tensor_for_two_inputs_is_refused():
    program = torch.export.export(torch.nn.EmbeddingBag(10, 4, mode="sum"), (ENDS, ENDS))
    with pytest.raises(CompileError, match="offsets must be another input than indices"):
        import_module(program)


def test_model_without_a_call_is_refused():
    assert str(_refused(models.NoBag(), IDS).value) == (
        "model must hold an embedding operation, not no call at all"
    )


@pytest.mark.parametrize(
    ("model", "results"),
    [(models.TwoResults, "getitem, ids"), (models.PassesInputOn, "ends")],
)
def test_other_results_are_refused(model, results):
    assert str(_refused(model(), IDS, ENDS).value) == (
        f"model must return the rows of node 'embedding_bag' and nothing else, not ({results})"
    )


def test_other_outputs_of_the_operator_are_refused():
    line = _line(models.BagSizes.forward, "torch.embedding_bag(")
    assert str(_refused(models.BagSizes(), IDS, ENDS).value) == (
        f"node 'getitem_2' (getitem) at {line} must not be used, as only the pooled rows are "
        f"computed, not output 2 of node 'embedding_bag'"
    )


def test_table_as_input_is_refused():
    line = _line(models.TableAsInput.forward, "embedding_bag(")
    assert str(_refused(models.TableAsInput(), IDS, ENDS, torch.ones(10, 4)).value) == (
        f"weight must be a parameter or buffer of the model, not the input 'table', in node "
        f"'embedding_bag' ({BAG}) at {line}"
    )


def test_computed_table_is_refused():
    line = _line(models.ScaledTable.forward, "weight * 2")
    caught = _refused(models.ScaledTable(), IDS, ENDS)
    assert str(caught.value) == f"node 'mul' (aten.mul.Tensor) at {line} {OP_RULE}"
