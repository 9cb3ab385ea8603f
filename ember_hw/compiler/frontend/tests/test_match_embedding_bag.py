# pyright: basic
import inspect
import re
import types

import pytest
import torch
from torch.export import Dim

from ember_hw.compiler.frontend import import_module
from ember_hw.compiler.frontend.tests import models
from ember_hw.errors import CompileError, UnsupportedError

IDS = torch.tensor([1, 2, 3, 4, 5, 6, 7])
ENDS = torch.tensor([0, 3, 4])
BAG = "aten.embedding_bag.padding_idx"
INPUT_RULE = (
    "must be an input of the model, not computed in it; pass indices and offsets, or 2-D indices, "
    "as they are"
)
OP_RULE = (
    "must be a torch.nn.EmbeddingBag of mode 'sum', not another operation; compile the "
    "EmbeddingBag by itself and leave the rest to torch"
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


@pytest.mark.parametrize("mode", ["mean", "max"])
def test_other_modes_are_refused(mode):
    model, where = _wrapped_bag(mode=mode)
    caught = _refused(model, IDS, ENDS)
    text = f"mode must be 'sum', the only supported one, not {mode!r}, in {where}"
    assert str(caught.value) == text
    assert caught.type is UnsupportedError
    assert caught.value.node == "embedding_bag"


@pytest.mark.parametrize(("padding_idx", "seen"), [(0, 0), (-1, 9)])
def test_padding_is_refused(padding_idx, seen):
    model, where = _wrapped_bag(padding_idx=padding_idx)
    assert str(_refused(model, IDS, ENDS).value) == (
        f"padding_idx must be None, as padding is not supported, not {seen}, in {where}; leave "
        f"the padding out of indices"
    )


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")
@pytest.mark.parametrize("padding_idx", [0, 9])
def test_padding_is_refused_after_decomposition(padding_idx):
    program = torch.export.export(
        models.Wrapped(padding_idx=padding_idx), (IDS, ENDS), dynamic_shapes=({0: Dim.AUTO},) * 2
    ).run_decompositions()
    with pytest.raises(UnsupportedError, match=f"not {padding_idx}, in node '_embedding_bag'"):
        import_module(program)


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


def test_weights_are_refused():
    bag = torch.nn.EmbeddingBag(10, 4, mode="sum")
    caught = _refused(bag, IDS, ENDS, torch.ones(7))
    assert re.fullmatch(
        r"per_sample_weights must be None, as weights are not supported, not per_sample_weights, "
        r"in node 'embedding_bag' \(aten\.embedding_bag\.padding_idx\) at .*sparse\.py:\d+",
        str(caught.value),
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_tables_are_refused(dtype):
    model, where = _wrapped_bag()
    name = str(dtype).removeprefix("torch.")
    assert str(_refused(model.to(dtype), IDS, ENDS).value) == (
        f"table 'user.weight' must be of dtype float32, not {name}, in {where}; convert the model "
        f"with .float()"
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
    caught = _refused(torch.nn.Embedding(10, 4), IDS)
    assert re.fullmatch(
        rf"node 'embedding' \(aten\.embedding\.default\) at .*sparse\.py:\d+ {re.escape(OP_RULE)}",
        str(caught.value),
    )


def test_second_bag_is_refused():
    line = _line(models.TwoBags.forward, "self.user(")
    assert str(_refused(models.TwoBags(), IDS, ENDS).value) == (
        f"node 'embedding_bag_1' ({BAG}) at {line} must be the only EmbeddingBag of the model, not "
        f"a second one after node 'embedding_bag'; compile each EmbeddingBag by itself"
    )


@pytest.mark.parametrize(
    ("model", "inputs", "node", "code"),
    [
        (models.Doubled, (IDS, ENDS), "'mul' (aten.mul.Tensor)", "ids * 2"),
        (models.OffsetsFromLengths, (IDS, ENDS), "'cumsum' (aten.cumsum.default)", "cumsum"),
        (models.SkewedArange, (IDS[:6].reshape(2, 3),), "'arange' (aten.arange.start_step)", "ara"),
    ],
)
def test_computed_indices_and_offsets_are_refused(model, inputs, node, code):
    line = _line(model.forward, code)
    assert str(_refused(model(), *inputs).value) == f"node {node} at {line} {INPUT_RULE}"


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
        "model must call torch.nn.EmbeddingBag once, not never"
    )


@pytest.mark.parametrize(
    ("model", "results"),
    [(models.TwoResults, "getitem, ids"), (models.PassesInputOn, "ends")],
)
def test_other_results_are_refused(model, results):
    assert str(_refused(model(), IDS, ENDS).value) == (
        f"model must return the pooled rows of node 'embedding_bag' and nothing else, not "
        f"({results})"
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
