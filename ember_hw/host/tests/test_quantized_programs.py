"""Quantised tables of an Embedding, and of many embedding bags in one program."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ember_hw.compiler import compile
from ember_hw.compiler.build import build
from ember_hw.compiler.element_dtypes import FLOAT_NAMES, tensor_array
from ember_hw.compiler.frontend import EmbeddingBagSpec
from ember_hw.compiler.frontend.emit_operation import emit_scf
from ember_hw.compiler.frontend.tables import TablesSpec
from ember_hw.compiler.program import Program
from ember_hw.compiler.quantized_rows import dequantize, quantize
from ember_hw.compiler.self_check import check_of
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import ProgramError, UnsupportedError
from ember_hw.host.backends.requests import check_leaves
from ember_hw.host.bindings import binding_of
from ember_hw.host.device import Device, open_device
from ember_hw.host.launch import Launch
from ember_hw.host.reference import bit_equal

CONFIG = AcceleratorConfig.preset("tables")
FORMS = [(codes, scale) for codes in ("int8", "int4") for scale in ("float32", "float16")]
CASES = [("sum", False), ("sum", True), ("mean", False), ("max", False)]
#: Rows and columns of three tables, the widest of them odd.
SHAPES = ((11, 5), (7, 20), (3, 33))
OFFSETS = np.array([0, 3, 3, 5])
WEIGHTS = np.linspace(-1, 2, 9, dtype=np.float32)


def weight(rows: int, columns: int) -> NDArray[np.float32]:
    return np.random.default_rng(columns).standard_normal((rows, columns)).astype(np.float32)


def bags_spec(
    mode: str, codes: str, scale: str, *, weighted: bool, output: str | None = None
) -> TablesSpec:
    bags = [
        EmbeddingBagSpec(
            name=f"table{number}",
            num_embeddings=rows,
            embedding_dim=columns,
            index_dtype=np.dtype(np.int64),
            include_last_offset=False,
            input_names=(),
            two_dimensional=False,
            indices_name=f"indices{number}",
            offsets_name=f"offsets{number}",
            weight=quantize(weight(rows, columns), codes, scale),
            mode=mode,
            weights_name=f"weights{number}" if weighted else None,
            output=output,
        )
        for number, (rows, columns) in enumerate(SHAPES)
    ]
    names = [
        f"{what}{number}"
        for number in range(len(bags))
        for what in ("indices", "offsets", *(["weights"] if weighted else []))
    ]
    return TablesSpec(tuple(bags), ("tab0", "tab1", "tab2"), tuple(names))


@cache
def bags_program(
    mode: str,
    codes: str,
    scale: str,
    *,
    weighted: bool = False,
    opt_level: int = 3,
    output: str | None = None,
) -> Program:
    spec = bags_spec(mode, codes, scale, weighted=weighted, output=output)
    return build(emit_scf(spec), spec, opt_level=opt_level, config=CONFIG)


def inputs_of(*, weighted: bool) -> list[NDArray[Any]]:
    found: list[NDArray[Any]] = []
    for number, (rows, _) in enumerate(SHAPES):
        found += [np.random.default_rng(number).integers(0, rows, 9), OFFSETS]
        found += [WEIGHTS] if weighted else []
    return found


def check_bags(device: Device, program: Program, *, weighted: bool = False) -> Any:
    inputs = inputs_of(weighted=weighted)
    found = device.run(program, inputs)
    expected = binding_of(program).reference(program, inputs)
    assert all(map(bit_equal, found, expected))
    return found


@pytest.fixture(scope="module")
def tables_device() -> Any:
    with open_device("interpreter", config=CONFIG) as device:
        yield device


@pytest.mark.parametrize(("codes", "scale"), FORMS)
@pytest.mark.parametrize(("mode", "weighted"), CASES)
def test_bags_of_every_format_run_as_one_program(
    tables_device: Device, mode: str, weighted: bool, codes: str, scale: str
) -> None:
    program = bags_program(mode, codes, scale, weighted=weighted)
    check_bags(tables_device, program, weighted=weighted)
    assert tables_device.report.lookups == 3 * 9
    row_bytes = [quantize(weight(1, columns), codes, scale).rows.shape[1] for _, columns in SHAPES]
    assert tables_device.report.useful_bytes == 9 * sum(row_bytes)


@pytest.mark.parametrize("opt_level", [2, 3])
def test_bags_come_back_in_the_dtype_that_the_caller_says(
    tables_device: Device, opt_level: int
) -> None:
    wide = check_bags(tables_device, bags_program("sum", "int4", "float16", opt_level=opt_level))
    narrow = bags_program("sum", "int4", "float16", opt_level=opt_level, output="f16")
    found = check_bags(tables_device, narrow)
    assert all(bit_equal(f, w.astype(np.float16)) for f, w in zip(found, wide, strict=True))


@pytest.mark.parametrize(("codes", "mode"), [("int8", "mean"), ("int4", "sum"), ("int4", "max")])
def test_every_pass_over_bags_is_checked(codes: str, mode: str) -> None:
    spec = bags_spec(mode, codes, "float16", weighted=mode == "sum", output="f16")
    module = emit_scf(spec)
    check = check_of(spec, module)
    assert build(module, spec, opt_level=3, config=CONFIG, check=check).nests


@pytest.mark.parametrize(("codes", "most"), [("int8", 65527), ("int4", 131054)])
def test_a_longer_row_among_many_is_refused_by_its_name(codes: str, most: int) -> None:
    spec = bags_spec("sum", codes, "float32", weighted=False)
    *others, last = spec.bags
    columns = most + 2
    long = quantize(np.zeros((1, columns), np.float32), codes, "float32")
    changed = replace(last, weight=long, embedding_dim=columns)
    spec = TablesSpec((*others, changed), spec.symbols, spec.input_names)
    with pytest.raises(UnsupportedError) as error:
        build(emit_scf(spec), spec, opt_level=3, config=CONFIG)
    assert str(error.value) == (
        f"embedding_dim of table 'table2' must be at most {most} at opt_level 3 on config "
        f"'tables', not {columns}; split the table by columns"
    )


class Two(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = torch.nn.EmbeddingBag(9, 6, mode="sum")
        self.b = torch.nn.EmbeddingBag(7, 3, mode="sum")

    def forward(self, i: Any, o: Any, j: Any, p: Any) -> tuple[torch.Tensor, torch.Tensor]:
        return self.a(i, o), self.b(j, p)


TWO_INPUTS = (
    torch.tensor([1, 2, 3]),
    torch.tensor([0, 1]),
    torch.tensor([6, 5, 4, 3]),
    torch.tensor([0, 2]),
)


def test_a_model_of_bags_compiles_with_quantised_tables(tables_device: Device) -> None:
    model = Two()
    formats = {"a.weight": "int4", "b.weight": "int4"}
    program = compile(model, TWO_INPUTS, config=CONFIG, tables=formats, verify="every-pass")
    assert np.array_equal(program.tables["tab1"], quantize(model.b.weight, "int4").rows)
    found = tables_device.run(program, TWO_INPUTS)
    expected = binding_of(program).reference(program, TWO_INPUTS)
    assert all(bit_equal(tensor_array(f), e) for f, e in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    ("tables", "kind", "message"),
    [
        (
            {"a.weight": "int8"},
            UnsupportedError,
            "table 'b.weight' must be of int8 with scales of float32, as table 'a.weight' of the "
            "same program, not float32; name all tables of the model in tables, with one format",
        ),
        (
            {"a.weight": "int8", "b.weight": "int4"},
            UnsupportedError,
            "table 'b.weight' must be of int8 with scales of float32, as table 'a.weight' of the "
            "same program, not int4 with scales of float16; name all tables of the model in "
            "tables, with one format",
        ),
        (
            {"c": "int8"},
            ValueError,
            "name in tables must be 'a.weight' or 'b.weight', a table of the model, not 'c'",
        ),
    ],
)
def test_bags_of_one_program_have_one_format(
    tables: dict[str, str], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind) as error:
        compile(Two(), TWO_INPUTS, config=CONFIG, tables=tables)
    assert str(error.value) == message


def test_bags_of_several_float_dtypes_are_refused_by_the_table() -> None:
    model = Two()
    model.b.half()
    with pytest.raises(UnsupportedError) as error:
        compile(model, TWO_INPUTS, config=CONFIG)
    assert str(error.value).startswith(
        "dtype of table of the bag in table 'b.weight' must be float32, as of that in table "
        "'a.weight', to run in the same program, not float16, in node "
    )
    assert str(error.value).endswith(
        "; compile each by itself, or the whole model with torch.compile(model, backend='ember_hw')"
    )


@pytest.mark.parametrize("output", [None, *FLOAT_NAMES])
@pytest.mark.parametrize("codes", ["int8", "int4"])
def test_an_embedding_has_a_quantised_table(
    tables_device: Device, codes: str, output: str | None
) -> None:
    module = torch.nn.Embedding(11, 5)
    indices = torch.tensor([[1, 2], [10, 0]])
    program = compile(
        module, (indices,), config=CONFIG, tables={"weight": codes}, output_dtype=output
    )
    found = tensor_array(tables_device.run(program, (indices,)))
    numbers = dequantize(quantize(module.weight, codes))[indices.numpy()]
    assert bit_equal(found, numbers.astype(found.dtype))
    assert bit_equal(found, binding_of(program).reference(program, (indices,)))
    assert found.dtype.name == (output or "float32")
    assert tables_device.report.useful_bytes == 4 * program.tables["tab"].shape[1]


@pytest.mark.parametrize("opt_level", [0, 1, 2, 3])
def test_every_pass_over_an_embedding_is_checked(opt_level: int) -> None:
    module = torch.nn.Embedding(7, 3)
    program = compile(
        module,
        (torch.tensor([1]),),
        config=CONFIG,
        opt_level=opt_level,
        tables={"weight": "int4"},
        verify="every-pass",
    )
    assert program.model["types"] == ["q4f16", "f32", "f32"]


@pytest.mark.parametrize("codes", ["int8", "int4"])
def test_rows_of_loaded_length_do_not_pass_the_reduce_unit(codes: str) -> None:
    config = CONFIG.with_changes(name="reducing", execute="reduce")
    spec = bags_spec("sum", codes, "float16", weighted=False)
    program = build(emit_scf(spec), spec, opt_level=3, config=config)
    (nest,) = program.nests
    assert nest.fabric is None
    with open_device("interpreter", config=config) as device:
        check_bags(device, program)  # it has no queue to lose them in
    launch = Launch(nest.microcode, (), (), nest=nest)
    with pytest.raises(ProgramError, match=r"must leave through the reduce unit of config 'reduc"):
        check_leaves(launch, config)


def test_a_poisoned_row_changes_the_result(tables_device: Device) -> None:
    program = bags_program("sum", "int8", "float32")
    before = check_bags(tables_device, program)
    program.tables["tab1"][:, 0] ^= 1
    after = check_bags(tables_device, program)
    program.tables["tab1"][:, 0] ^= 1
    assert bit_equal(before[0], after[0])
    assert not bit_equal(before[1], after[1])


@pytest.mark.verilator
@pytest.mark.timeout(900)  # builds the model
@pytest.mark.parametrize(("codes", "scale"), [("int8", "float32"), ("int4", "float16")])
def test_simulated_unit(codes: str, scale: str) -> None:
    with open_device("verilator", config=CONFIG) as unit:
        check_bags(unit, bags_program("mean", codes, scale))
        assert unit.report.cycles
