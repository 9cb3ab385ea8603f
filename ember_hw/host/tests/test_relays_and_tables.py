"""Relays and tables of loaded shapes on the interpreter and the simulated unit, end to end."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from ember_hw.compiler import compile_function
from ember_hw.compiler.interpreters import interpret
from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.program import Program
from ember_hw.compiler.tests.kernels import Kernel
from ember_hw.compiler.tests.table_kernel import EB_TABLES, TABLE_BAGS, TABLE_ROWS
from ember_hw.errors import DeviceError
from ember_hw.host.device import Device, open_device
from ember_hw.host.reference import bit_equal
from ember_hw.host.tests.test_functions import WIDE
from ember_hw.registers import FaultCode

#: Bounds at the sum of a load and of a load at it, rows at a load, a row that stays the same, and a
#: callback before the inner loop.
CHAINED = """
!X = memref<?xindex>
!T = memref<?x?xf32>
func.func @kernel(%a: !X, %b: !X, %off: !X, %x: !T, %out: !T, %seen: !X, %n: index)
    attributes {ember.args = ["a", "b", "off", "x", "out", "seen", "n"], ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %D = memref.dim %x, %c1 : !T
  scf.for %i = %c0 to %n step %c1 {
    %p = memref.load %a[%i] : !X
    %q = memref.load %b[%p] : !X
    %k = arith.addi %q, %p : index
    %k1 = arith.addi %k, %c1 : index
    %s = memref.load %off[%k] : !X
    %e = memref.load %off[%k1] : !X
    memref.store %k, %seen[%i] : !X
    scf.for %j = %s to %e step %c1 {
      %r = memref.load %b[%j] : !X
      scf.for %d = %c0 to %D step %c1 {
        %v = memref.load %x[%r, %d] : !T
        %w = memref.load %x[%c0, %d] : !T
        %o = memref.load %out[%i, %d] : !T
        %y = arith.mulf %v, %w : f32
        %z = arith.addf %o, %y : f32
        memref.store %z, %out[%i, %d] : !T
      }
    }
  }
  func.return
}
"""


def chained_arguments(columns: int, seed: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    b = random.integers(2, 5, 8)
    return {
        "a": random.integers(0, 4, 6),
        "b": b,
        "off": np.array([0, 0, 2, 3, 3, 5, 8, 8, 8, 8]),
        "x": random.standard_normal((5, columns)).astype(np.float32),
        "out": np.zeros((6, columns), np.float32),
        "seen": np.zeros(6, np.int64),
        "n": 6,
    }


CHAINS = Kernel("chains", CHAINED, chained_arguments)
KERNELS = (CHAINS, EB_TABLES)


@cache
def compiled(kernel: Kernel, opt_level: int) -> Program:
    return compile_function(kernel.text, opt_level=opt_level, config=WIDE)


def check(device: Device, kernel: Kernel, opt_level: int) -> None:
    for seed, columns in enumerate((1, 7)):
        expected = kernel.arguments(columns, seed)
        interpret(parse_module(kernel.text), "kernel", list(expected.values()))
        found = device.run(compiled(kernel, opt_level), kernel.arguments(columns, seed))
        for name, array in zip(
            ("out", "seen"), found if kernel is CHAINS else [found], strict=False
        ):
            assert bit_equal(np.asarray(array), expected[name])


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("opt_level", [2, 3])
def test_programs_have_relays(kernel: Kernel, opt_level: int) -> None:
    assert "{relay}" in compiled(kernel, opt_level).ir["au"]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("opt_level", [2, 3])
def test_interpreter_agrees_with_scf(kernel: Kernel, opt_level: int) -> None:
    check(open_device("interpreter", config=WIDE), kernel, opt_level)


@pytest.fixture(scope="module")
def unit() -> Iterator[Device]:
    with open_device("verilator", config=WIDE, optimise=False) as opened:
        yield opened


@pytest.mark.verilator
@pytest.mark.timeout(900)  # builds the model
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("opt_level", [2, 3])
def test_simulated_unit_agrees_with_scf(unit: Device, kernel: Kernel, opt_level: int) -> None:
    check(unit, kernel, opt_level)


@pytest.mark.verilator
@pytest.mark.timeout(900)  # builds the model
def test_simulated_unit_checks_the_rows_of_each_table(unit: Device) -> None:
    for table, rows in enumerate(TABLE_ROWS):
        arguments = EB_TABLES.arguments(7, 0)
        arguments["idx"][int(arguments["off"][table * TABLE_BAGS])] = rows
        with pytest.raises(DeviceError) as raised:
            unit.run(compiled(EB_TABLES, 3), arguments)
        assert raised.value.code == FaultCode.INDEX_OUT_OF_RANGE
    check(unit, EB_TABLES, 3)
