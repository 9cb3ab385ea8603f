# pyright: basic
"""Programs that a reduce unit sums across rows, on the interpreter: one number leaves for a sum."""

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
from ember_hw.compiler.tests.kernels import BB_QK, KERNELS, Kernel
from ember_hw.host.bindings import binding_of
from ember_hw.host.device import Device, open_device
from ember_hw.host.reference import bit_equal

CONFIG = UNIT.with_changes(
    name="classes that sum", data_width_bits=128, execute="reduce", reduce_dot=1
)
SCORES = [case for case in op_models.CASES if case.kind == "scores"]
COMPLEX = (
    "case 1 computes with 12 numbers for each column, and the unit's chain takes those of up to 3 "
    "rows, once each"
)

#: Products of each node's row with those of its neighbours; a result for each edge.
EDGES = """
func.func @edges(%ptr: memref<?xindex>, %col: memref<?xindex>, %x: memref<?x?xf32>,
                 %y: memref<?x?xf32>, %out: memref<?xf32>, %N: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f0 = arith.constant 0.0 : f32
  %D = memref.dim %x, %c1 : memref<?x?xf32>
  scf.for %i = %c0 to %N step %c1 {
    %i1 = arith.addi %i, %c1 : index
    %s = memref.load %ptr[%i] : memref<?xindex>
    %e = memref.load %ptr[%i1] : memref<?xindex>
    scf.for %p = %s to %e step %c1 {
      %c = memref.load %col[%p] : memref<?xindex>
      %dot = scf.for %d = %c0 to %D step %c1 iter_args(%acc = %f0) -> (f32) {
        %u = memref.load %x[%i, %d] : memref<?x?xf32>
        %v = memref.load %y[%c, %d] : memref<?x?xf32>
        %m = arith.mulf %u, %v : f32
        %n = arith.addf %acc, %m : f32
        scf.yield %n : f32
      }
      memref.store %dot, %out[%p] : memref<?xf32>
    }
  }
  func.return
}
"""


@pytest.fixture(scope="module", params=["c", "numpy"])
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    with open_device("interpreter", config=CONFIG, engine=request.param) as opened:
        yield opened


def model_program(case: op_models.OpCase) -> tuple[Program, Any]:
    random = np.random.default_rng(1)
    columns = 4 * case.columns
    inputs = tuple(torch.from_numpy(array) for array in case.inputs(random, columns, 9))
    model = op_models.Model(case.function, columns).requires_grad_(False)
    return ember_hw.compile(model, inputs, config=CONFIG), inputs


@pytest.mark.parametrize("case", SCORES, ids=str)
def test_scores_of_triples(device: Device, case: op_models.OpCase) -> None:
    program, inputs = model_program(case)
    expected = ("fabric", "sum across") if case.name != "complex" else ("host", COMPLEX)
    assert [nest[1:] for nest in program.placement] == [expected]
    found = device.run(program, inputs)
    assert bit_equal(np.asarray(found), np.asarray(binding_of(program).reference(program, inputs)))
    (nest,) = device.report.nests
    assert nest.results == (9 if case.name != "complex" else 9 * 6)
    if case.name != "complex":
        assert nest.leaving_bytes == 9 * 4
        assert device.report.useful_bytes == 9 * 3 * 4 * 4


@pytest.mark.parametrize("name", ["transe", "distmult"])
@pytest.mark.parametrize("columns", [1, 3, 1023])
def test_columns_and_odd_numbers(device: Device, name: str, columns: int) -> None:
    kernel = next(kernel for kernel in KERNELS if kernel.name == name)
    arguments, expected = (odd(kernel, columns) for _ in range(2))
    with np.errstate(all="ignore"):
        interpret(parse_module(kernel.text), "kernel", list(expected.values()))
    program = compile_function(kernel.text, config=CONFIG, execute="fabric")
    assert bit_equal(device.run(program, arguments), expected["out"])
    assert device.report.leaving_bytes == 4 * len(expected["out"])


def odd(kernel: Kernel, columns: int) -> dict[str, Any]:
    """Return arguments with denormals, an infinity and a NaN."""
    arguments = kernel.arguments(columns, 3)
    table = next(array for array in arguments.values() if np.ndim(array) == 2)
    table[0, 0], table[1, -1], table[2, 0] = np.inf, np.nan, 1e-44
    return arguments


def edges() -> dict[str, Any]:
    """Return arguments of `EDGES`: nodes with and without neighbours."""
    random = np.random.default_rng(7)
    pointers = np.concatenate(([0], np.cumsum([3, 0, 0, 5, 1, 40])))
    x, y = random.standard_normal((2, 6, 7)).astype(np.float32)
    columns = random.integers(0, 6, pointers[-1])
    out = np.zeros(pointers[-1], np.float32)
    return {"ptr": pointers, "col": columns, "x": x, "y": y, "out": out, "N": 6}


@pytest.mark.parametrize("opt_level", [2, 3])
def test_a_row_is_kept_for_the_rows_of_its_neighbours(device: Device, opt_level: int) -> None:
    program = compile_function(EDGES, config=CONFIG, execute="fabric", opt_level=opt_level)
    expected = edges()
    interpret(parse_module(EDGES), "edges", list(expected.values()))
    assert bit_equal(device.run(program, edges()), expected["out"])
    sums = len(expected["out"])
    assert device.report.leaving_bytes == 4 * sums
    assert device.report.useful_bytes is not None
    assert device.report.useful_bytes < 2 * 28 * sums, "a node's row comes once"


@cache
def queries_and_keys() -> Program:
    return compile_function(BB_QK.text, config=CONFIG, execute="fabric")


def test_products_of_queries_and_keys(device: Device) -> None:
    program = queries_and_keys()
    for columns, block_rows in ((1, 1), (3, 2), (64, 4), (64, 2)):
        random = np.random.default_rng(columns)
        queries, keys = random.standard_normal((2, 8, columns)).astype(np.float32)
        blocks = random.integers(0, 8 // block_rows, (8 // block_rows, 3))
        sizes = {"NB": len(blocks), "NS": 3, "BS": block_rows}
        given = {"q": queries, "tab": keys, "blk": blocks}
        given |= {"out": np.zeros((8, 3 * block_rows), np.float32), **sizes}
        expected = given | {"out": given["out"].copy()}
        interpret(parse_module(BB_QK.text), "kernel", list(expected.values()))
        assert bit_equal(device.run(program, given), expected["out"])
        (nest,) = device.report.nests
        pairs = expected["out"].size
        assert (nest.results, nest.leaving_bytes) == (pairs, 4 * pairs)
        assert nest.rows == pairs + pairs // block_rows, "a key's row comes once for its queries"
        assert not bit_equal(device.run(program, given | {"q": queries + 1}), expected["out"])


def test_no_block_is_attended_to(device: Device) -> None:
    program = queries_and_keys()
    given = {**BB_QK.arguments(5, 0), "NS": 0}
    assert bit_equal(device.run(program, given), given["out"])
    assert device.report.leaving_bytes == 0


def test_no_triples_at_all(device: Device) -> None:
    program, inputs = model_program(next(case for case in SCORES if case.name == "transe_2"))
    nothing = tuple(array[:0] for array in inputs)
    assert np.asarray(device.run(program, nothing)).shape == (0,)
    assert device.report.leaving_bytes == 0


def test_other_tables_give_other_scores(device: Device) -> None:
    kernel = next(kernel for kernel in KERNELS if kernel.name == "transe")
    program = compile_function(kernel.text, config=CONFIG)
    first, second = kernel.arguments(5, 1), kernel.arguments(5, 1)
    second["rel"][:] += 1
    assert not bit_equal(device.run(program, first), device.run(program, second))


def test_a_program_file_holds_both_parts(device: Device, tmp_path: Path) -> None:
    kernel = next(kernel for kernel in KERNELS if kernel.name == "transe")
    program = compile_function(kernel.text, config=CONFIG)
    program.save(tmp_path / "scores.ember")
    loaded = ember_hw.load(tmp_path / "scores.ember", CONFIG)
    assert loaded.placement == program.placement == (("kernel", "fabric", "sum across"),)
    arguments = kernel.arguments(5, 2)
    assert bit_equal(device.run(loaded, arguments), device.run(program, arguments))
