# pyright: basic
"""Programs of a config with a reduce unit, on the interpreter: the same answers, fewer bytes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import ember_hw
from ember_hw.bench.fuzzing import op_models
from ember_hw.bench.fuzzing.every_level import UNIT
from ember_hw.compiler import compile_function
from ember_hw.compiler.interpreters import interpret
from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.program import Program
from ember_hw.compiler.tests.kernels import KERNELS, Kernel
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError, ProgramError, UnsupportedError
from ember_hw.host.bindings import binding_of
from ember_hw.host.device import Device, open_device
from ember_hw.host.reference import bit_equal, count_mismatches, exact
from ember_hw.host.request import LookupRequest
from ember_hw.host.tests.cases import CASES, Case

#: Each op class fits it; D = 1100 fits its accumulator.
CONFIG = UNIT.with_changes(name="classes that reduce", data_width_bits=128, execute="reduce")
FABRIC = {"embedding_bag", "embedding", "spmm", "aggregation"}
BAGS = {kernel.name: kernel for kernel in KERNELS if kernel.name.startswith("eb_")}
SPMM = next(kernel for kernel in KERNELS if kernel.name == "spmm")
MODELS = [
    case
    for case in op_models.CASES
    if case.name
    in (
        *("bag_sum", "bag_mean_padding", "bag_max_matrix", "bag_weighted", "embedding", "spmm"),
        *("index_add_weighted", "scatter_mean", "scatter_amax", "fused_sigmoid", "transe_1"),
        "block_attention",
    )
]
BEGINS = {"eb_max": -np.inf}


@pytest.fixture(scope="module", params=["c", "numpy"])
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    with open_device("interpreter", config=CONFIG, engine=request.param) as opened:
        yield opened


@pytest.fixture(scope="module")
def in_c() -> Iterator[Device]:
    with open_device("interpreter", config=CONFIG) as opened:
        yield opened


@cache
def compiled(kernel: Kernel, opt_level: int = 3) -> Program:
    return compile_function(kernel.text, opt_level=opt_level, config=CONFIG, may_leave_loops=True)


def pooled(device: Device, kernel: Kernel, table: np.ndarray, request: LookupRequest) -> Any:
    """Pool bags by a kernel; weights, where it has some, are those of the request."""
    bags = len(request.offsets) - 1
    out = np.full((bags, table.shape[1]), BEGINS.get(kernel.name, 0), np.float32)
    weights = np.zeros(len(request.indices), np.float32)
    inputs = {
        "off": request.offsets,
        "idx": request.indices.astype(np.int64),
        "psw": weights if request.weights is None else request.weights,
        "tab": table,
        "out": out,
        "B": bags,
    }
    return device.run(compiled(kernel), inputs)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("mode", ["sum", "mean", "max", "weighted"])
def test_pooled_rows_are_exact(device: Device, case: Case, mode: str) -> None:
    table, request = case.table(), case.request()
    kernel = SPMM if mode == "weighted" else BAGS[f"eb_{mode}"]
    if mode == "weighted":
        random = np.random.default_rng(case.seed)
        weights = random.standard_normal(len(request.indices)).astype(np.float32)
        weights[::5] *= np.float32(2.0**-120)
        weights[3:4] = np.inf
        request = LookupRequest(request.indices, request.offsets, request.num_bags, weights)
    assert compiled(kernel).nests[0].execute == "fabric"
    found = pooled(device, kernel, table, request)
    assert (
        count_mismatches(found, exact(table, request, "sum" if mode == "weighted" else mode)) == 0
    )
    (nest,) = device.report.nests
    columns = table.shape[1]
    assert (nest.results, nest.leaving_bytes) == (request.num_bags, 4 * columns * request.num_bags)
    assert device.report.useful_bytes == 4 * columns * int(request.offsets[-1])


@pytest.mark.parametrize("columns", [1, 3, 1023])
def test_columns(device: Device, columns: int) -> None:
    random = np.random.default_rng(columns)
    table = random.standard_normal((9, columns)).astype(np.float32)
    indices, offsets = random.integers(0, 9, 40), np.array([0, 11, 11, 30, 40])
    request = LookupRequest(indices, offsets, 4)
    for mode in ("sum", "mean", "max"):
        found = pooled(device, BAGS[f"eb_{mode}"], table, request)
        assert count_mismatches(found, exact(table, request, mode)) == 0


@pytest.mark.parametrize("opt_level", [2, 3])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_each_kernel_is_right_wherever_it_runs(
    device: Device, kernel: Kernel, opt_level: int
) -> None:
    program = compiled(kernel, opt_level)
    (nest,) = program.nests
    assert nest.fabric is not None, "else such hardware couldn't run it"
    assert (nest.execute == "fabric") == (kernel.name.startswith("eb_") or kernel.name == "spmm")
    assert (nest.reason == "") == (nest.execute == "fabric")
    for seed, columns in enumerate((1, 7)):
        arguments = kernel.arguments(columns, seed)
        expected = kernel.arguments(columns, seed)
        interpret(parse_module(kernel.text), "kernel", list(expected.values()))
        assert bit_equal(device.run(program, arguments), expected["out"])
        (report,) = device.report.nests
        assert report.results == (
            len(arguments["out"]) if nest.execute == "fabric" else report.rows
        )


@cache
def model_program(case: op_models.OpCase) -> tuple[Program, Any]:
    random = np.random.default_rng(1)
    columns = 4 * case.columns
    inputs = tuple(torch.from_numpy(a) for a in case.inputs(random, columns, 9))
    model = op_models.Model(case.function, columns).requires_grad_(False)
    return ember_hw.compile(model, inputs, config=CONFIG), inputs


@pytest.mark.parametrize("case", MODELS, ids=str)
def test_op_classes(in_c: Device, case: op_models.OpCase) -> None:
    device = in_c
    program, inputs = model_program(case)
    assert {nest.execute for nest in program.nests} == {"fabric" if case.kind in FABRIC else "host"}
    found = device.run(program, inputs)
    expected = binding_of(program).reference(program, inputs)
    assert bit_equal(np.asarray(found), np.asarray(expected))
    report = device.report
    if case.kind in FABRIC:
        assert report.leaving_bytes is not None
        assert report.leaving_bytes <= (report.useful_bytes or 0) or "mean" not in case.name
    else:
        assert report.leaving_bytes == report.useful_bytes


def test_a_program_file_holds_both_parts(device: Device, tmp_path: Path) -> None:
    kernel = BAGS["eb_max"]
    compiled(kernel).save(tmp_path / "max.ember")
    loaded = ember_hw.load(tmp_path / "max.ember", CONFIG)
    loaded.save(tmp_path / "again.ember")
    assert (tmp_path / "again.ember").read_bytes() == (tmp_path / "max.ember").read_bytes()
    assert loaded.placement == compiled(kernel).placement == (("kernel", "fabric", "maximum"),)
    arguments = kernel.arguments(5, 2)
    expected = device.run(compiled(kernel), arguments)
    assert bit_equal(device.run(loaded, arguments), expected)


def test_tables_are_pooled_with_lengths_of_their_own(in_c: Device) -> None:
    class Bags(torch.nn.Module):
        def __init__(self, mode: str) -> None:
            super().__init__()
            torch.manual_seed(3)
            self.wide = torch.nn.EmbeddingBag(10, 24, mode=mode).requires_grad_(False)
            self.narrow = torch.nn.EmbeddingBag(7, 3, mode=mode).requires_grad_(False)

        def forward(self, a: Any, b: Any, offsets: Any) -> Any:
            return self.wide(a, offsets), self.narrow(b, offsets)

    inputs = torch.tensor([1, 9, 4, 4]), torch.tensor([6, 0, 2, 2]), torch.tensor([0, 3, 3])
    for mode in ("sum", "mean", "max"):
        program = ember_hw.compile(Bags(mode), inputs, config=CONFIG, execute="fabric")
        found = in_c.run(program, inputs)
        expected = binding_of(program).reference(program, inputs)
        for one, other in zip(found, expected, strict=True):
            assert bit_equal(np.asarray(one), np.asarray(other))
        assert in_c.report.leaving_bytes == 3 * 4 * (24 + 3)


#: The sum of all rows of a list, in one result; then a nest that can't leave the host.
TWO_NESTS = """
func.func @two(%idx: memref<?xindex>, %x: memref<?x?xf32>, %sum: memref<?x?xf32>,
               %dot: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f0 = arith.constant 0.0 : f32
  %n = memref.dim %idx, %c0 : memref<?xindex>
  %D = memref.dim %x, %c1 : memref<?x?xf32>
  scf.for %i = %c0 to %n step %c1 {
    %r = memref.load %idx[%i] : memref<?xindex>
    scf.for %d = %c0 to %D step %c1 {
      %v = memref.load %x[%r, %d] : memref<?x?xf32>
      %a = memref.load %sum[%c0, %d] : memref<?x?xf32>
      %s = arith.addf %a, %v : f32
      memref.store %s, %sum[%c0, %d] : memref<?x?xf32>
    }
  }
  scf.for %i = %c0 to %n step %c1 {
    %r = memref.load %idx[%i] : memref<?xindex>
    %q = scf.for %d = %c0 to %D step %c1 iter_args(%acc = %f0) -> (f32) {
      %v = memref.load %x[%r, %d] : memref<?x?xf32>
      %m = arith.mulf %v, %v : f32
      %s = arith.addf %acc, %m : f32
      scf.yield %s : f32
    }
    memref.store %q, %dot[%i] : memref<?xf32>
  }
  func.return
}
"""


def two_nests(rows: np.ndarray) -> dict[str, Any]:
    x = np.random.default_rng(4).standard_normal((9, 5)).astype(np.float32)
    return {
        "idx": rows,
        "x": x,
        "sum": np.zeros((1, 5), np.float32),
        "dot": np.zeros(len(rows), np.float32),
    }


@pytest.mark.parametrize("rows", [np.array([3, 8, 3, 0, 1]), np.array([], np.int64)])
def test_each_nest_runs_where_it_can(device: Device, rows: np.ndarray) -> None:
    program = compile_function(TWO_NESTS, config=CONFIG)
    reason = "case 1 folds the columns of its row, and the unit keeps one number of each"
    assert program.placement == (("two_0", "fabric", "sum"), ("two_1", "host", reason))
    arguments, expected = two_nests(rows), two_nests(rows)
    interpret(parse_module(TWO_NESTS), "two", list(expected.values()))
    found = device.run(program, arguments)
    for one, name in zip(found, ("sum", "dot"), strict=True):
        assert bit_equal(one, expected[name])
    first, second = device.report.nests
    assert (first.results, first.leaving_bytes) == (1, 20)
    assert (second.results, second.leaving_bytes) == (len(rows), 20 * len(rows))
    assert f"host runs two_1         {reason}" in str(device.report)
    assert f"leaving bytes           {20 + 20 * len(rows)}, {1 + len(rows)} results" in str(
        device.report
    )


#: The greatest of four rows, whose number is known: the host tells from numbers that the loop ran.
FOURS = """
func.func @fours(%idx: memref<?x4xindex>, %x: memref<?x?xf32>, %out: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %n = memref.dim %idx, %c0 : memref<?x4xindex>
  %D = memref.dim %x, %c1 : memref<?x?xf32>
  scf.for %b = %c0 to %n step %c1 {
    scf.for %i = %c0 to %c4 step %c1 {
      %r = memref.load %idx[%b, %i] : memref<?x4xindex>
      scf.for %d = %c0 to %D step %c1 {
        %v = memref.load %x[%r, %d] : memref<?x?xf32>
        %a = memref.load %out[%b, %d] : memref<?x?xf32>
        %s = arith.maximumf %a, %v : f32
        memref.store %s, %out[%b, %d] : memref<?x?xf32>
      }
    }
  }
  func.return
}
"""


def test_a_maximum_over_a_number_of_rows(device: Device) -> None:
    program = compile_function(FOURS, config=CONFIG, execute="fabric")
    random = np.random.default_rng(6)
    x, idx = random.standard_normal((9, 5)).astype(np.float32), random.integers(0, 9, (3, 4))
    found = device.run(program, {"idx": idx, "x": x, "out": np.full((3, 5), -np.inf, np.float32)})
    assert bit_equal(found, x[idx].max(1))


def test_more_than_2_to_the_24_ones(in_c: Device) -> None:
    count = (1 << 24) + 1000
    request = LookupRequest(np.zeros(count, np.int64), np.array([0, count]), 1)
    found = pooled(in_c, BAGS["eb_sum"], np.ones((1, 1), np.float32), request)
    assert found.tolist() == [[2.0**24]]


def test_an_array_must_begin_as_the_accumulator_does(device: Device) -> None:
    arguments = BAGS["eb_sum"].arguments(3, 0)
    arguments["out"][2, 1] = -0.0
    with pytest.raises(ProgramError) as caught:
        device.run(compiled(BAGS["eb_sum"]), arguments)
    assert str(caught.value) == (
        "array 'out' must begin as +0 all over, as the reduce unit's accumulator does for nest "
        "'kernel', not with -0; compile with execute='host'"
    )
    arguments["out"][2, 1] = 7
    program = compile_function(BAGS["eb_sum"].text, config=CONFIG, execute="host")
    assert program.placement == (("kernel", "host", "execute='host' was asked for"),)
    found = device.run(program, arguments)
    assert found[2, 1] == 7, "bag 2 is empty"
    assert device.report.leaving_bytes == device.report.useful_bytes


def test_fabric_is_refused_with_the_reason() -> None:
    kernel = next(kernel for kernel in KERNELS if kernel.name == "transe")
    with pytest.raises(UnsupportedError) as caught:
        compile_function(kernel.text, config=CONFIG, execute="fabric")
    assert str(caught.value) == (
        "execute code of nest 'kernel' must fit the reduce unit with execute='fabric', but case 1 "
        "takes 3 rows, and the unit combines one row with its accumulator; execute='auto' runs it "
        "on the host"
    )


def test_options_are_checked() -> None:
    text = BAGS["eb_sum"].text
    with pytest.raises(ValueError, match="execute") as caught:
        compile_function(text, config=CONFIG, execute="chip")  # pyright: ignore[reportArgumentType]
    assert str(caught.value) == "execute must be 'auto', 'host' or 'fabric', not 'chip'"
    small = AcceleratorConfig.preset("small")
    with pytest.raises(ValueError, match="execute") as caught:
        compile_function(text, config=small, execute="fabric")
    assert str(caught.value) == (
        "execute must be 'auto' or 'host' for config 'small', which has no reduce unit, not "
        "'fabric'; AcceleratorConfig(execute='reduce') has one"
    )
    program = compile_function(text, config=small)
    assert program.placement == (("kernel", "host", "the config has no reduce unit"),)


def test_a_row_that_gets_lost_is_noticed(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    program = model_program(next(case for case in MODELS if case.name == "bag_sum"))
    backend = device._backend
    assert backend is not None
    facts = backend.facts
    monkeypatch.setattr(backend, "facts", lambda: {**facts(), "rows": facts()["rows"] - 1})
    with pytest.raises(DeviceError) as caught:
        device.run(*program)
    assert str(caught.value) == (
        "rows of nest 'eb_sum' must be the 9 that the request implies, not the 8 that the unit "
        "counted"
    )
