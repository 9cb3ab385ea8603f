"""Every kernel at every level as a user's own function, on the interpreter and the simulated unit.

Each answer equals the scf interpreter's bit for bit, from generated C and from NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest

from ember_hw.bench.fuzzing.every_level import UNIT
from ember_hw.compiler import compile_function
from ember_hw.compiler.interpreters import interpret
from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.pipeline import OPT_LEVELS
from ember_hw.compiler.program import Program
from ember_hw.compiler.tests.kernels import KERNELS, Kernel
from ember_hw.host.device import Device, open_device
from ember_hw.host.reference import bit_equal

#: Tests of the op classes simulate the same unit.
WIDE = UNIT
COLUMNS = (1, 7)


@cache
def compiled(kernel: Kernel, opt_level: int) -> Program:
    """Compile a kernel; loops that four units have no room for are left to the execute side."""
    return compile_function(kernel.text, opt_level=opt_level, config=WIDE, may_leave_loops=True)


@cache
def expected(kernel: Kernel, columns: int, seed: int) -> np.ndarray:
    arguments = kernel.arguments(columns, seed)
    interpret(parse_module(kernel.text), "kernel", list(arguments.values()))
    return arguments["out"]


def check(device: Device, kernel: Kernel, opt_level: int) -> None:
    for seed, columns in enumerate(COLUMNS):
        found = device.run(compiled(kernel, opt_level), kernel.arguments(columns, seed))
        assert bit_equal(found, expected(kernel, columns, seed))
        other = expected(kernel, columns, seed + 1)
        assert not bit_equal(found, other), "the negative control"


@pytest.fixture(scope="module", params=["c", "numpy"])
def interpreter(request: pytest.FixtureRequest) -> Iterator[Device]:
    with open_device("interpreter", config=WIDE, engine=request.param) as opened:
        yield opened


@pytest.fixture(scope="module")
def unit() -> Iterator[Device]:
    with open_device("verilator", config=WIDE, optimise=False) as opened:
        yield opened


@pytest.mark.parametrize("opt_level", OPT_LEVELS)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_interpreter_agrees_with_scf(interpreter: Device, kernel: Kernel, opt_level: int) -> None:
    check(interpreter, kernel, opt_level)


#: The second nest gathers at the numbers that the first one stores, and counts them in place.
CHAIN = """
func.func @chain(%a: memref<?xindex>, %b: memref<?xindex>, %x: memref<?x?xf32>,
                 %y: memref<?x?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %D = memref.dim %x, %c1 : memref<?x?xf32>
  scf.for %i = %c0 to %n step %c1 {
    %r = memref.load %a[%i] : memref<?xindex>
    %q = arith.addi %r, %c1 : index
    memref.store %q, %b[%i] : memref<?xindex>
  }
  scf.for %i = %c0 to %n step %c1 {
    %r = memref.load %b[%i] : memref<?xindex>
    scf.for %d = %c0 to %D step %c1 {
      %v = memref.load %x[%r, %d] : memref<?x?xf32>
      memref.store %v, %y[%i, %d] : memref<?x?xf32>
    }
  }
  func.return
}
"""


@pytest.mark.parametrize("opt_level", OPT_LEVELS)
def test_a_nest_reads_what_the_one_before_wrote(interpreter: Device, opt_level: int) -> None:
    program = compile_function(CHAIN, opt_level=opt_level, config=WIDE)
    x = np.arange(21, dtype=np.float32).reshape(3, 7)
    inputs = {"a": np.array([1, 0, -1]), "b": np.full(3, 99), "x": x, "y": 0 * x, "n": 3}
    b, y = interpreter.run(program, inputs)
    assert b.tolist() == [2, 1, 0]
    assert y.tolist() == x[::-1].tolist()
    report = interpreter.report
    assert [nest.name for nest in report.nests] == ["chain_0", "chain_1"]
    assert sum(nest.bundles for nest in report.nests) == report.bundles
    assert f"nest chain_1            {report.nests[1].bundles} bundles, " in str(report)


@pytest.mark.verilator
@pytest.mark.timeout(900)  # builds the model
@pytest.mark.parametrize("opt_level", OPT_LEVELS)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_simulated_unit_agrees_with_scf(unit: Device, kernel: Kernel, opt_level: int) -> None:
    check(unit, kernel, opt_level)
    report = unit.report
    assert sum(nest.cycles or 0 for nest in report.nests) == report.cycles
    assert sum(nest.bundles for nest in report.nests) == report.bundles
