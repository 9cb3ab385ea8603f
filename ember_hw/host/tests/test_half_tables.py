"""Tables of float16 and bfloat16: rows at their stored width, sums in float32, one rounding."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch

from ember_hw.bench.fuzzing.every_level import UNIT
from ember_hw.compiler import compile
from ember_hw.compiler.build import build
from ember_hw.compiler.element_dtypes import (
    BFLOAT16,
    FLOAT_NAMES,
    round_to,
    tensor_array,
    tensor_of,
)
from ember_hw.compiler.frontend import EmbeddingBagSpec
from ember_hw.compiler.frontend.emit_operation import emit_scf
from ember_hw.compiler.program import Program
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import ProgramError, UnsupportedError
from ember_hw.host.bindings import binding_of
from ember_hw.host.bindings.embedding_bag import lookup_request
from ember_hw.host.device import Device, open_device
from ember_hw.host.execution.tests.runs import ENGINES
from ember_hw.host.reference import bit_equal, error_bound, exact, true
from ember_hw.host.torch_backend import Record

HALVES = (torch.float16, torch.bfloat16)
ROWS = 11
#: Bags of 3, none, 1, 5 and 2 lookups.
OFFSETS = torch.tensor([0, 3, 3, 4, 9])
INDICES = torch.tensor([10, 0, 3, 7, 7, 1, 2, 9, 4, 5, 10])
LEVELS = (0, 1, 2, 3)


def bag(mode: str, columns: int, dtype: torch.dtype) -> torch.nn.EmbeddingBag:
    cast(Any, torch).manual_seed(columns)  # the same table at each call
    return torch.nn.EmbeddingBag(ROWS, columns, mode=mode, dtype=dtype)


def call(mode: str, dtype: torch.dtype, *, weighted: bool = False) -> tuple[Any, ...]:
    if not weighted:
        return INDICES, OFFSETS
    assert mode == "sum"
    return INDICES, OFFSETS, torch.linspace(-1.7, 2.1, INDICES.numel()).to(dtype)


@cache
def program_for(
    mode: str,
    columns: int,
    dtype: torch.dtype,
    *,
    weighted: bool = False,
    opt_level: int = 3,
    output: str | None = None,
) -> Program:
    """Return the program of a bag, without torch's export of it, which takes a second."""
    spec = EmbeddingBagSpec(
        name="weight",
        num_embeddings=ROWS,
        embedding_dim=columns,
        index_dtype=np.dtype(np.int64),
        include_last_offset=False,
        input_names=("indices", "offsets", *(["weights"] if weighted else [])),
        two_dimensional=False,
        indices_name="indices",
        offsets_name="offsets",
        weight=tensor_array(bag(mode, columns, dtype).weight),
        mode=mode,
        weights_name="weights" if weighted else None,
        output=output,
    )
    return build(emit_scf(spec), spec, opt_level=opt_level, config=UNIT)


def check(device: Device, program: Program, inputs: tuple[Any, ...], dtype: torch.dtype) -> Any:
    found = device.run(program, inputs)
    assert found.dtype is dtype
    expected = binding_of(program).reference(program, inputs)
    assert bit_equal(tensor_array(found), expected)
    return found


CASES = [("sum", False), ("sum", True), ("mean", False), ("max", False)]


@pytest.mark.parametrize("opt_level", LEVELS)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize(("mode", "weighted"), CASES)
def test_every_mode_is_its_reference(
    interpreter: Device, mode: str, weighted: bool, dtype: torch.dtype, opt_level: int
) -> None:
    inputs = call(mode, dtype, weighted=weighted)
    program = program_for(mode, 19, dtype, weighted=weighted, opt_level=opt_level)
    check(interpreter, program, inputs, dtype)
    assert interpreter.report.useful_bytes == INDICES.numel() * 19 * 2


@pytest.mark.parametrize("output", FLOAT_NAMES)
@pytest.mark.parametrize("dtype", [torch.float32, *HALVES], ids=str)
def test_rows_come_back_as_the_caller_says(
    interpreter: Device, dtype: torch.dtype, output: str
) -> None:
    inputs = call("mean", dtype)
    program = program_for("mean", 5, dtype, output=FLOAT_NAMES[output])
    found = check(interpreter, program, inputs, getattr(torch, output))
    wide = exact(program.tables["tab"], lookup_request(program, inputs), "mean")
    assert bit_equal(tensor_array(found), wide.astype(tensor_array(found).dtype)), "rounded once"


@pytest.mark.parametrize("output", ["bfloat16", torch.bfloat16, np.float16])
def test_an_output_dtype_may_be_of_torch_or_numpy(output: Any) -> None:
    program = compile(bag("sum", 2, torch.float32), call("sum", torch.float32), output_dtype=output)
    assert program.model["types"] == ["f32", "f32", "f16" if output is np.float16 else "bf16"]


@pytest.mark.parametrize("columns", [1, 2, 3, 7, 9, 33])
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_rows_of_any_width(interpreter: Device, columns: int, dtype: torch.dtype) -> None:
    program = program_for("sum", columns, dtype)
    check(interpreter, program, call("sum", dtype), dtype)
    bus = UNIT.bus_bytes
    assert interpreter.report.row_beats == INDICES.numel() * -(-2 * columns // bus)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize(("mode", "weighted"), CASES)
def test_torch_agrees_within_the_rounding(
    interpreter: Device, mode: str, weighted: bool, dtype: torch.dtype
) -> None:
    inputs = call(mode, dtype, weighted=weighted)
    found = check(interpreter, program_for(mode, 8, dtype, weighted=weighted), inputs, dtype)
    expected = bag(mode, 8, dtype)(INDICES, OFFSETS, *inputs[2:]).detach()
    # torch sums some of these in the narrow dtype, and divides a mean by a rounded count.
    tolerance = 0 if mode == "max" else 8 * torch.finfo(dtype).eps
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_exact_is_near_the_true_value(mode: str, dtype: torch.dtype) -> None:
    program = program_for(mode, 6, dtype)
    table, lookup = program.tables["tab"], lookup_request(program, call(mode, dtype))
    wide = exact(table, lookup, mode).astype(np.float64)
    assert np.all(np.abs(wide - true(table, lookup, mode)) <= error_bound(table, lookup, mode))
    narrow = exact(table, lookup, mode, table.dtype)
    assert bit_equal(narrow, wide.astype(np.float32).astype(table.dtype))
    assert true(table, lookup, mode, table.dtype).dtype == table.dtype


def test_a_half_is_rounded_once_from_float64() -> None:
    values = np.array([1 + 2.0**-8 + 2.0**-40, -(1 + 3 * 2.0**-8 - 2.0**-40), 1e300, np.nan])
    assert round_to(values, BFLOAT16).astype(np.float64).tolist()[:3] == [
        1 + 2.0**-7,
        -(1 + 2.0**-7),
        np.inf,
    ]
    assert np.isnan(round_to(values, BFLOAT16)[3].astype(np.float64))
    assert round_to(values[:1], np.dtype(np.float16)).dtype == np.float16


def test_sums_don_t_lose_what_a_half_would(interpreter: Device) -> None:
    table = np.array([[2048.0]] + [[1.0]] * (ROWS - 1), np.float16)
    inputs = (torch.arange(5), torch.tensor([0]))
    program = replace(program_for("sum", 1, torch.float16), tables={"tab": table})
    assert check(interpreter, program, inputs, torch.float16).item() == 2052
    assert np.float16(2048) + np.float16(1) == 2048


@pytest.mark.parametrize("value", ["nan", "inf", "-0.0", "6e-8"])
@pytest.mark.parametrize("mode", ["sum", "max"])
def test_special_values(interpreter: Device, value: str, mode: str) -> None:
    program = program_for(mode, 3, torch.float16)
    table = program.tables["tab"].copy()
    table[3] = float(value)
    inputs = (torch.tensor([3, 1, 3]), torch.tensor([0, 2, 3]))
    check(interpreter, replace(program, tables={"tab": table}), inputs, torch.float16)


class Rows(torch.nn.Module):
    def __init__(self, dtype: torch.dtype, columns: int) -> None:
        super().__init__()
        self.rows = torch.nn.Embedding(ROWS, columns, dtype=dtype)

    def forward(self, indices: torch.Tensor) -> torch.Tensor:
        return self.rows(indices)


@pytest.mark.parametrize(
    ("output", "opt_level"), [(None, 3), ("float32", 1), ("bfloat16", 0), ("bfloat16", 2)]
)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_embedding(dtype: torch.dtype, output: str | None, opt_level: int) -> None:
    model, indices = Rows(dtype, 5), torch.tensor([[3, 0], [10, 3]], dtype=torch.int32)
    program = compile(model, (indices,), opt_level=opt_level, config=UNIT, output_dtype=output)
    wanted = dtype if output is None else getattr(torch, output)
    expected = model(indices).detach().float().to(wanted)
    for engine in ENGINES:
        with open_device("interpreter", config=UNIT, engine=engine) as device:
            assert torch.equal(check(device, program, (indices,), wanted), expected)


class Bags(torch.nn.Module):
    def __init__(self, dtype: torch.dtype, mode: str) -> None:
        super().__init__()
        self.a = torch.nn.EmbeddingBag(ROWS, 3, mode=mode, dtype=dtype)
        self.b = torch.nn.EmbeddingBag(4, 21, mode=mode, dtype=dtype)

    def forward(self, i: Any, o: Any, j: Any, p: Any) -> Any:
        return self.a(i, o), self.b(j, p)


TABLES = AcceleratorConfig(
    name="half tables",
    data_width_bits=128,
    streams_per_unit=4,
    exports=10,
    bundle_scalars=6,
    traversal_units=3,
)


@pytest.mark.parametrize(
    ("mode", "dtype", "output"),
    [
        ("sum", torch.bfloat16, None),
        ("mean", torch.float16, "float32"),
        ("max", torch.float16, None),
    ],
)
def test_many_tables_in_one_program(mode: str, dtype: torch.dtype, output: str | None) -> None:
    inputs = (INDICES, OFFSETS, torch.tensor([3, 0, 1]), torch.tensor([0, 1, 1]))
    program = compile(
        Bags(dtype, mode), inputs, config=TABLES, output_dtype=output, verify="every-pass"
    )
    assert program.model["kind"] == "tables"
    wanted = dtype if output is None else torch.float32
    references = binding_of(program).reference(program, inputs)
    for engine in ENGINES:
        with open_device("interpreter", config=TABLES, engine=engine) as device:
            found = device.run(program, inputs)
        for rows, reference in zip(found, references, strict=True):
            assert rows.dtype is wanted
            assert bit_equal(tensor_array(rows), reference)


def test_a_program_of_bfloat16_is_the_same_after_a_file(
    tmp_path: Path, interpreter: Device
) -> None:
    inputs = call("sum", torch.bfloat16)
    program = program_for("sum", 6, torch.bfloat16)
    program.save(tmp_path / "p.ember")
    loaded = Program.load(tmp_path / "p.ember")
    assert loaded.tables["tab"].dtype == BFLOAT16
    assert bit_equal(loaded.tables["tab"], program.tables["tab"])
    check(interpreter, loaded, inputs, torch.bfloat16)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_torch_compile_runs_bags_of_halves(dtype: torch.dtype) -> None:
    model = bag("sum", 4, dtype)
    record = Record()
    options: Any = {"device": "interpreter", "config": UNIT, "record": record}
    fast = cast(Any, torch).compile(model, backend="ember_hw", options=options)
    with torch.no_grad():
        found: torch.Tensor = fast(INDICES, OFFSETS)
        expected = model(INDICES, OFFSETS)
    assert record.calls == 1
    assert found.dtype is dtype
    torch.testing.assert_close(found, expected, rtol=0.01, atol=0.01)


@pytest.mark.parametrize("dtype", [torch.float32, *HALVES], ids=str)
def test_every_pass_is_held_against_the_reference(dtype: torch.dtype) -> None:
    inputs = call("sum", dtype, weighted=True)
    model = bag("sum", 3, dtype)
    compile(model, inputs, config=UNIT, output_dtype="float16", verify="every-pass")


def test_weights_of_another_dtype_are_refused(interpreter: Device) -> None:
    inputs = call("sum", torch.float16, weighted=True)
    program = program_for("sum", 3, torch.float16, weighted=True)
    with pytest.raises(TypeError) as error:
        interpreter.run(program, (*inputs[:2], inputs[2].float()))
    assert str(error.value) == (
        "per_sample_weights must be of dtype float16, not float32; nothing is cast (table 'weight')"
    )


def test_a_table_of_another_dtype_is_refused(interpreter: Device) -> None:
    inputs = call("sum", torch.float16)
    program = program_for("sum", 3, torch.float16)
    wide = program.tables["tab"].astype(np.float32)
    with pytest.raises(ProgramError) as error:
        interpreter.run(replace(program, tables={"tab": wide}), inputs)
    assert str(error.value) == (
        "table 'tab' of program 'eb_sum' must be float16 of shape (11, 3), "
        "not float32 of shape (11, 3)"
    )


@pytest.mark.parametrize("dtype", ["float64", "int8", 3, object()])
def test_other_output_dtypes_are_refused(dtype: Any) -> None:
    message = f"output_dtype must be one of float32, float16, bfloat16, not {dtype!r}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        compile(bag("sum", 3, torch.float32), call("sum", torch.float32), output_dtype=dtype)


class Neighbours(torch.nn.Module):
    """A weighted sum, or a maximum, over the edges of a graph."""

    def __init__(self, *, weighted: bool) -> None:
        super().__init__()
        self.weighted = weighted

    def forward(self, x: Any, source: Any, target: Any, w: Any = None) -> Any:
        if self.weighted:
            rows = w.unsqueeze(-1) * x[source]
            return torch.zeros_like(x).index_add(0, target, rows)
        where = target.unsqueeze(-1).expand(-1, x.shape[1])
        zeros = torch.zeros_like(x)
        return zeros.scatter_reduce(0, where, x[source], "amax", include_self=False)


@pytest.mark.parametrize(
    ("dtype", "weighted", "opt_level"),
    [(torch.float16, True, 0), (torch.bfloat16, True, 3), (torch.float16, False, 2)],
)
def test_aggregation(dtype: torch.dtype, weighted: bool, opt_level: int) -> None:
    x = torch.linspace(-2, 3, 35).reshape(7, 5).to(dtype)
    source, target = torch.tensor([0, 6, 2, 2, 5]), torch.tensor([1, 1, 1, 0, 4])
    weights = (torch.linspace(-1, 2, 5).to(dtype),) if weighted else ()
    model, inputs = Neighbours(weighted=weighted), (x, source, target, *weights)
    program = compile(model, inputs, opt_level=opt_level, config=UNIT)
    for engine in ENGINES:
        with open_device("interpreter", config=UNIT, engine=engine) as device:
            found = check(device, program, inputs, dtype)
        torch.testing.assert_close(found, model(*inputs), rtol=0.02, atol=0.02)
    with open_device("interpreter", config=UNIT) as device, pytest.raises(TypeError) as error:
        device.run(program, (x.float(), *inputs[1:]))
    assert str(error.value) == (
        f"x must be of dtype {str(dtype)[6:]}, not float32; nothing is cast (table 'x')"
    )


class Sums(torch.nn.Module):
    def forward(self, x: Any, source: Any, target: Any) -> Any:
        return torch.zeros_like(x).index_add(0, target, x[source])


@pytest.mark.parametrize(("rows", "output"), [("float32", "bfloat16"), ("float16", "float32")])
def test_other_kinds_give_the_dtype_of_their_rows(rows: str, output: str) -> None:
    x = torch.zeros(4, 3, dtype=getattr(torch, rows))
    inputs = (x, torch.tensor([0, 1]), torch.tensor([1, 2]))
    with pytest.raises(UnsupportedError) as error:
        compile(Sums(), inputs, output_dtype=output)
    assert str(error.value) == (
        f"output_dtype must be {rows} for a model of kind 'aggregation', as that of its rows, not "
        f"{output}; an EmbeddingBag and an Embedding have others"
    )
    assert compile(Sums(), inputs, output_dtype=rows).model["kind"] == "aggregation"


def test_arrays_become_tensors_that_share_their_memory() -> None:
    array = np.zeros(3, BFLOAT16)
    tensor = tensor_of(array)
    array[1] = 2.5
    assert tensor.tolist() == [0, 2.5, 0]


@pytest.mark.verilator
@pytest.mark.timeout(900)  # builds the model
@pytest.mark.parametrize("opt_level", LEVELS)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_simulated_unit(unit: Device, dtype: torch.dtype, opt_level: int) -> None:
    for columns, weighted in ((3, True), (20, False)):
        inputs = call("sum", dtype, weighted=weighted)
        program = program_for("sum", columns, dtype, weighted=weighted, opt_level=opt_level)
        check(unit, program, inputs, dtype)
        assert unit.report.cycles
