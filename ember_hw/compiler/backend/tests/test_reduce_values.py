# pyright: basic
"""When indices are new numbers in each iteration: counters, and numbers in a mixed radix."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from ember_hw.compiler import compile_function
from ember_hw.compiler.interpreters import interpret
from ember_hw.compiler.ir_text import parse_module
from ember_hw.config import AcceleratorConfig
from ember_hw.host.device import Device, open_device
from ember_hw.host.reference import bit_equal

CONFIG = AcceleratorConfig(
    name="reduces", execute="reduce", streams_per_unit=4, exports=8, traversal_units=4
)

#: Bags of tables; WHERE says to which rows of `out` their sums go.
TABLES = """
!X = memref<?xindex>
!T = memref<?x?xf32>
func.func @kernel(%off: !X, %idx: !X, %tab: !T, %out: SHAPE, %N: index, %B: index, %M: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %D = memref.dim %tab, %c1 : !T
  scf.for %t = %c0 to %N step %c1 {
    %first = arith.muli %t, %B : index
    PLACE
    scf.for %b = LOWER to %B step %c1 {
      %g = arith.addi %first, %b : index
      %g1 = arith.addi %g, %c1 : index
      %s = memref.load %off[%g] : !X
      %e = memref.load %off[%g1] : !X
      NUMBER
      scf.for %j = %s to %e step %c1 {
        %r = memref.load %idx[%j] : !X
        scf.for %d = %c0 to %D step %c1 {
          %v = memref.load %tab[%r, %d] : !T
          %a = memref.load %out[WHERE, %d] : SHAPE
          %n = arith.addf %a, %v : f32
          memref.store %n, %out[WHERE, %d] : SHAPE
        }
      }
    }
  }
  func.return
}
"""


def tables(
    where: str, place: str = "", number: str = "", lower: str = "%c0", shape: str = "!T"
) -> str:
    text = TABLES.replace("WHERE", where).replace("PLACE", place).replace("NUMBER", number)
    return text.replace("LOWER", lower).replace("SHAPE", shape)


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    with open_device("interpreter", config=CONFIG) as opened:
        yield opened


@pytest.mark.parametrize("opt_level", [2, 3])
@pytest.mark.parametrize(
    ("text", "shape"),
    [
        (tables("%g"), (6, 5)),
        (tables("%t, %b", shape="memref<?x?x?xf32>"), (2, 3, 5)),
        (tables("%b, %t", shape="memref<?x?x?xf32>"), (3, 2, 5)),
        (tables("%h", number="%h = arith.addi %g, %c2 : index"), (8, 5)),
    ],
    ids=["radix", "each in its place", "swapped", "from 2 on"],
)
def test_rows_that_are_new(
    device: Device, text: str, shape: tuple[int, ...], opt_level: int
) -> None:
    program = compile_function(text, config=CONFIG, opt_level=opt_level, execute="fabric")
    random = np.random.default_rng(7)
    arguments = {
        "off": np.cumsum([0, 2, 0, 1, 0, 3, 1]),
        "idx": random.integers(0, 9, 7),
        "tab": random.standard_normal((9, 5)).astype(np.float32),
        "out": np.zeros(shape, np.float32),
        **{"N": 2, "B": 3, "M": 0},
    }
    expected = {**arguments, "out": arguments["out"].copy()}
    interpret(parse_module(text), "kernel", list(expected.values()))
    assert bit_equal(device.run(program, arguments), expected["out"])
    assert device.report.results == 6


@pytest.mark.parametrize("opt_level", [2, 3])
@pytest.mark.parametrize(
    "text",
    [
        tables("%b"),
        tables("%h", "%p = arith.muli %t, %M : index", "%h = arith.addi %p, %b : index"),
        tables("%h", "%p = arith.muli %t, %c2 : index", "%h = arith.addi %p, %b : index"),
        tables("%h", number="%h = arith.muli %t, %b : index"),
        tables("%g", lower="%c1"),
    ],
    ids=["one row for all tables", "another radix", "too small a radix", "product", "from 1 on"],
)
def test_rows_that_may_come_back(text: str, opt_level: int) -> None:
    program = compile_function(text, config=CONFIG, opt_level=opt_level)
    (nest,) = program.nests
    assert nest.execute == "host"
    assert nest.reason == (
        "case 1 may come back to a row of 'out' that has its result: its indices don't count"
    )
