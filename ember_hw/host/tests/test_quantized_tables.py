"""Embedding bags in tables of int8 and int4: bytes that move, numbers that come back."""

from __future__ import annotations

import importlib
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ember_hw.bench.fuzzing.every_level import UNIT
from ember_hw.compiler import compile
from ember_hw.compiler.build import build
from ember_hw.compiler.element_dtypes import tensor_of
from ember_hw.compiler.frontend import EmbeddingBagSpec
from ember_hw.compiler.frontend.emit_operation import emit_scf
from ember_hw.compiler.program import Program
from ember_hw.compiler.quantized_rows import QuantizedTable, dequantize, quantize
from ember_hw.compiler.self_check import check_of
from ember_hw.errors import ProgramError, UnsupportedError
from ember_hw.host.bindings import binding_of
from ember_hw.host.device import Device, open_device
from ember_hw.host.reference import bit_equal

ROWS = 11
OFFSETS = np.array([0, 3, 3, 4, 9])
INDICES = np.array([10, 0, 3, 7, 7, 1, 2, 9, 4, 5, 10])
WEIGHTS = np.linspace(-1.5, 2, INDICES.size, dtype=np.float32)
FORMS = [(codes, scale) for codes in ("int8", "int4") for scale in ("float32", "float16")]
CASES = [("sum", False), ("sum", True), ("mean", False), ("max", False)]


def weight(columns: int) -> NDArray[np.float32]:
    return np.random.default_rng(columns).standard_normal((ROWS, columns)).astype(np.float32)


@cache
def program_for(
    mode: str,
    columns: int,
    codes: str,
    scale: str | None = None,
    *,
    weighted: bool = False,
    opt_level: int = 3,
    output: str | None = None,
) -> Program:
    spec = bag_spec(mode, columns, codes, scale, weighted=weighted, output=output)
    return build(emit_scf(spec), spec, opt_level=opt_level, config=UNIT)


def bag_spec(
    mode: str,
    columns: int,
    codes: str,
    scale: str | None = None,
    *,
    weighted: bool = False,
    output: str | None = None,
) -> EmbeddingBagSpec:
    return EmbeddingBagSpec(
        name="weight",
        num_embeddings=ROWS,
        embedding_dim=columns,
        index_dtype=np.dtype(np.int64),
        include_last_offset=False,
        input_names=("indices", "offsets", *(["weights"] if weighted else [])),
        two_dimensional=False,
        indices_name="indices",
        offsets_name="offsets",
        weight=quantize(weight(columns), codes, scale),
        mode=mode,
        weights_name="weights" if weighted else None,
        output=output,
    )


def check(device: Device, program: Program, *, weighted: bool = False) -> NDArray[Any]:
    inputs = (INDICES, OFFSETS, *([WEIGHTS] if weighted else []))
    found = device.run(program, inputs)
    assert bit_equal(found, binding_of(program).reference(program, inputs))
    return found


@pytest.mark.parametrize("opt_level", [2, 3])
@pytest.mark.parametrize(("codes", "scale"), FORMS)
@pytest.mark.parametrize(("mode", "weighted"), CASES)
def test_every_format_is_its_reference(
    interpreter: Device, mode: str, weighted: bool, codes: str, scale: str, opt_level: int
) -> None:
    program = program_for(mode, 19, codes, scale, weighted=weighted, opt_level=opt_level)
    check(interpreter, program, weighted=weighted)


@pytest.mark.parametrize("columns", [1, 2, 3, 8, 9, 40])
@pytest.mark.parametrize(("codes", "scale"), FORMS)
def test_a_lookup_moves_codes_scale_and_bias(
    interpreter: Device, columns: int, codes: str, scale: str
) -> None:
    check(interpreter, program_for("sum", columns, codes, scale))
    report = interpreter.report
    code_bytes = columns if codes == "int8" else -(-columns // 2)
    row_bytes = code_bytes + 2 * np.dtype(scale).itemsize
    assert report.useful_bytes == INDICES.size * row_bytes
    assert report.row_beats == INDICES.size * -(-row_bytes // UNIT.bus_bytes)


def test_the_reference_pools_what_the_codes_stand_for(interpreter: Device) -> None:
    program = program_for("sum", 6, "int8")
    numbers = dequantize(QuantizedTable(program.tables["tab"], 6))
    expected = np.zeros((5, 6), np.float32)
    for bag, (first, last) in enumerate(zip(OFFSETS, [*OFFSETS[1:], INDICES.size], strict=True)):
        for index in INDICES[first:last]:
            expected[bag] += numbers[index]
    found = check(interpreter, program)
    assert bit_equal(found, expected)
    scale, _ = quantize(weight(6)).format.scales(program.tables["tab"])
    pooled = np.zeros((5, 6))
    for bag, (first, last) in enumerate(zip(OFFSETS, [*OFFSETS[1:], INDICES.size], strict=True)):
        pooled[bag] = weight(6)[INDICES[first:last]].astype(np.float64).sum(axis=0)
    assert np.abs(found - pooled).max() <= 5 * 0.501 * scale.max(), "half a step a lookup"


def test_rows_come_back_as_the_caller_says(interpreter: Device) -> None:
    wide = check(interpreter, program_for("mean", 5, "int8"))
    narrow = check(interpreter, program_for("mean", 5, "int8", output="f16"))
    assert wide.dtype == np.float32
    assert bit_equal(narrow, wide.astype(np.float16))


@pytest.mark.parametrize(("codes", "columns"), [("int8", 5), ("int4", 6)])
def test_a_module_compiles_and_every_pass_is_checked(codes: str, columns: int) -> None:
    module = torch.nn.EmbeddingBag(ROWS, columns, mode="sum")
    inputs = (tensor_of(INDICES), tensor_of(OFFSETS))
    program = compile(module, inputs, config=UNIT, tables={"weight": codes}, verify="every-pass")
    expected = quantize(module.weight, codes)
    assert np.array_equal(program.tables["tab"], expected.rows)
    assert program.model["types"] == [expected.format.name, "f32", "f32"]
    with open_device("interpreter", config=UNIT) as device:
        found = device.run(program, inputs)
    assert found.dtype is torch.float32
    assert bit_equal(found.numpy(), binding_of(program).reference(program, inputs))


def test_a_table_of_rows_is_taken_without_a_copy(tmp_path: Path) -> None:
    table = quantize(weight(8))
    table.rows.tofile(tmp_path / "rows")
    mapped = np.memmap(tmp_path / "rows", np.uint8, "r", shape=table.rows.shape)
    module = torch.nn.EmbeddingBag(ROWS, 8, mode="sum")
    inputs = (tensor_of(INDICES), tensor_of(OFFSETS))
    program = compile(module, inputs, config=UNIT, tables={"weight": QuantizedTable(mapped, 8)})
    assert np.shares_memory(program.tables["tab"], mapped)
    program.save(tmp_path / "p.ember")
    loaded = Program.load(tmp_path / "p.ember")
    with open_device("interpreter", config=UNIT) as device:
        assert torch.equal(device.run(loaded, inputs), device.run(program, inputs))


def torch_s_own(columns: int, dtype: torch.dtype) -> Any:
    """Return a quantised bag of torch with its weight packed."""
    kinds: Any = importlib.import_module("torch.ao.nn.quantized")
    observers: Any = importlib.import_module("torch.ao.quantization")
    values = tensor_of(weight(columns))
    scheme: Any = torch.per_channel_affine_float_qparams
    observer = observers.PerChannelMinMaxObserver(dtype=dtype, qscheme=scheme, ch_axis=0)
    observer(values)
    module = kinds.EmbeddingBag(ROWS, columns, mode="sum", dtype=dtype)
    pack: Any = torch.quantize_per_channel
    module.set_weight(pack(values, *observer.calculate_qparams(), 0, dtype))
    return module


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize(("dtype", "columns"), [(torch.quint8, 5), (torch.quint4x2, 6)], ids=str)
def test_torch_s_quantised_bag_is_taken(dtype: torch.dtype, columns: int) -> None:
    module = torch_s_own(columns, dtype)
    inputs = (tensor_of(INDICES), tensor_of(OFFSETS))
    program = compile(module, inputs, config=UNIT)
    with open_device("interpreter", config=UNIT) as device:
        found = device.run(program, inputs)
    assert bit_equal(found.numpy(), binding_of(program).reference(program, inputs))
    torch.testing.assert_close(found, module(*inputs), rtol=0, atol=1e-5)  # torch fuses
    module.pruned_weights = True
    with pytest.raises(UnsupportedError) as error:
        compile(module, inputs, config=UNIT)
    assert str(error.value) == (
        "rows of EmbeddingBag must all be there, not pruned; pack them again"
    )


@pytest.mark.parametrize("opt_level", [0, 1])
def test_rows_are_sent_whole_at_every_level(interpreter: Device, opt_level: int) -> None:
    for mode, weighted in CASES:
        program = program_for(mode, 5, "int4", weighted=weighted, opt_level=opt_level)
        check(interpreter, program, weighted=weighted)
        assert interpreter.report.useful_bytes == INDICES.size * 7


@pytest.mark.parametrize("opt_level", [0, 1])
def test_every_pass_of_the_lower_levels_is_checked(opt_level: int) -> None:
    spec = bag_spec("mean", 9, "int8")
    module = emit_scf(spec)
    verified = check_of(spec, module)
    assert build(module, spec, opt_level=opt_level, config=UNIT, check=verified).opt_level < 2


@pytest.mark.parametrize(("codes", "most"), [("int8", 65527), ("int4", 131062)])
def test_longer_rows_than_the_unit_s_are_refused(codes: str, most: int) -> None:
    spec = bag_spec("sum", most + 1, codes)
    with pytest.raises(UnsupportedError) as error:
        build(emit_scf(spec), spec, opt_level=3, config=UNIT)
    assert str(error.value) == (
        f"embedding_dim of table 'weight' must be at most {most} at opt_level 3 on config "
        f"{UNIT.name!r}, not {most + 1}; split the table by columns"
    )


@pytest.mark.parametrize(
    ("tables", "error", "message"),
    [
        (
            {"user": "int8"},
            ValueError,
            "name in tables must be 'weight', the model's table, not 'user'",
        ),
        ({"weight": "int2"}, ValueError, "format of a table must be int8 or int4, not 'int2'"),
        (
            {"weight": 8},
            TypeError,
            "table 'weight' must be 'int8', 'int4' or a QuantizedTable, not int",
        ),
        (
            {"weight": quantize(np.zeros((2, 3), np.float32))},
            ValueError,
            "table 'weight' must be of the model's shape (3, 4), not (2, 3)",
        ),
    ],
)
def test_other_tables_are_refused(
    tables: dict[str, Any], error: type[Exception], message: str
) -> None:
    module = torch.nn.EmbeddingBag(3, 4, mode="sum")
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        compile(module, (torch.tensor([1]), torch.tensor([0])), tables=tables)


class Aggregation(torch.nn.Module):
    def forward(self, x: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return x.new_zeros(x.shape).index_add(0, target, x[source])


def test_a_table_of_another_kind_of_model_is_not_quantised() -> None:
    edges = torch.tensor([1, 2]), torch.tensor([0, 1])
    with pytest.raises(UnsupportedError) as error:
        compile(Aggregation(), (torch.ones(3, 4), *edges), tables={"x": "int8"})
    assert str(error.value) == (
        "a model whose table 'x' is quantised must be of embedding bags or an Embedding, "
        "not of kind 'aggregation'"
    )


def test_bytes_of_another_width_are_refused(interpreter: Device) -> None:
    program = replace(program_for("sum", 5, "int8"), tables={"tab": np.zeros((11, 5), np.uint8)})
    with pytest.raises(ProgramError) as error:
        interpreter.run(program, (INDICES, OFFSETS))
    assert str(error.value) == (
        "table 'tab' of program 'eb_sum' must be uint8 of shape (11, 13), "
        "not uint8 of shape (11, 5)"
    )


@pytest.mark.verilator
@pytest.mark.timeout(900)  # builds the model
@pytest.mark.parametrize(
    ("codes", "scale", "opt_level"),
    [*((*form, 3) for form in FORMS), ("int8", "float32", 0), ("int4", "float16", 1)],
)
def test_simulated_unit(unit: Device, codes: str, scale: str, opt_level: int) -> None:
    for columns, weighted in ((3, True), (24, False)):
        program = program_for("sum", columns, codes, scale, weighted=weighted, opt_level=opt_level)
        check(unit, program, weighted=weighted)
        assert unit.report.cycles
