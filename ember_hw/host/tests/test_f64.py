"""Functions on f64: rows carry it at levels 1 to 3, bit for bit as the scf interpreter has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_hw.bench.fuzzing.every_level import UNIT
from ember_hw.compiler import compile_function
from ember_hw.compiler.interpreters import interpret
from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.tests.kernels import DISTMULT, EB_MAX, SPMM, Kernel
from ember_hw.errors import UnsupportedError
from ember_hw.host.device import Device
from ember_hw.host.reference import bit_equal

#: Weights that the execute side loads; folds of kept rows; a maximum.
KERNELS = (SPMM, DISTMULT, EB_MAX)
LEVELS = (1, 2, 3)


def text_of(kernel: Kernel) -> str:
    return kernel.text.replace("f32", "f64")


def wide(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return arguments whose floats are of f64, and most of them no f32."""
    arrays = {name: np.asarray(value) for name, value in arguments.items()}
    narrow = {name for name, array in arrays.items() if array.dtype == np.float32}
    return {
        name: arrays[name].astype(np.float64) / 3 if name in narrow else value
        for name, value in arguments.items()
    }


def check(device: Device, kernel: Kernel, opt_level: int) -> None:
    program = compile_function(
        text_of(kernel), opt_level=opt_level, config=UNIT, may_leave_loops=True
    )
    arguments = wide(kernel.arguments(7, 1))
    found = device.run(program, wide(kernel.arguments(7, 1)))
    interpret(parse_module(text_of(kernel)), "kernel", list(arguments.values()))
    expected = arguments["out"]
    assert expected.dtype == np.float64
    assert bit_equal(found, expected)
    assert not np.array_equal(expected.astype(np.float32), expected), "no f32 would do"
    assert device.report.row_beats


@pytest.mark.parametrize("opt_level", LEVELS)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_interpreter_agrees_with_scf(interpreter: Device, kernel: Kernel, opt_level: int) -> None:
    check(interpreter, kernel, opt_level)


@pytest.mark.verilator
@pytest.mark.timeout(900)  # builds the model
@pytest.mark.parametrize("opt_level", LEVELS)
def test_simulated_unit_agrees_with_scf(unit: Device, opt_level: int) -> None:
    check(unit, SPMM, opt_level)


def test_every_pass_of_a_table_of_f64_is_held_against_scf() -> None:
    table = np.random.default_rng(0).standard_normal((6, 5))
    compile_function(text_of(SPMM), tables={"tab": table}, opt_level=3, verify="every-pass")


#: The columns of y are rows of x, at places that are loaded beside them.
SCATTER = """
func.func @scatter(%x: memref<?x?xf64>, %to: memref<?xindex>, %y: memref<?x?xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %x, %c1 : memref<?x?xf64>
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %m step %c1 {
      %k = memref.load %to[%j] : memref<?xindex>
      %l = memref.load %to[%k] : memref<?xindex>
      %v = memref.load %x[%i, %j] : memref<?x?xf64>
      memref.store %v, %y[%l, %i] : memref<?x?xf64>
    }
  }
  func.return
}
"""


@pytest.mark.parametrize(
    ("text", "opt_level", "remedy"),
    [
        (text_of(SPMM), 0, "compile with opt_level=3, which sends rows"),
        (SCATTER.replace("%to[%k]", "%to[%j]"), 1, "compile with opt_level=3, which sends rows"),
        (
            SCATTER,
            3,
            "no row carries them: scatter: loop of %j: not vectorised: 'slc.mem_stream' computes "
            "with a vector stream; not buffered: %to isn't read row by row",
        ),
    ],
)
def test_elements_that_would_be_sent_one_by_one_are_refused(
    text: str, opt_level: int, remedy: str
) -> None:
    with pytest.raises(UnsupportedError) as error:
        compile_function(text, opt_level=opt_level)
    symbol = "x" if text.lstrip().startswith("func.func @scatter") else "tab"
    assert str(error.value) == (
        f"elements of {symbol!r} must have at most 32 bits where they are sent one by one, as at "
        f"opt_level {opt_level}, not f64; {remedy}"
    )
