"""The execute side computes indices where that costs no operand, or all of them on request."""

from __future__ import annotations

import re

import pytest

from ember_hw.compiler.interpreters import interpret
from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.pipeline import run_pipeline
from ember_hw.compiler.tests.kernels import BB_PV, EB_MULTI, Kernel
from ember_hw.host.reference import bit_equal


def pushed(kernel: Kernel, *, recompute: bool = False) -> list[str]:
    """Return the operands of a kernel at level 2, by name."""
    module = parse_module(kernel.text)
    run_pipeline(module, 2, 4, hardware=True, recompute=recompute)
    expected, found = kernel.arguments(7, 0), kernel.arguments(7, 0)
    interpret(parse_module(kernel.text), "kernel", list(expected.values()))
    interpret(module, "kernel", list(found.values()))
    assert bit_equal(found["out"], expected["out"])
    return re.findall(r"register_operand %t\d, \w+, %(\w+)", str(module))


def test_an_index_of_one_stream_is_sent_as_that_stream() -> None:
    assert pushed(BB_PV) == ["qb", "col", "row"]


def test_an_index_of_two_streams_is_sent_as_it_is() -> None:
    assert pushed(EB_MULTI) == ["g", "w", "row"]


@pytest.mark.parametrize(
    ("kernel", "operands"),
    [(BB_PV, ["qb", "s", "kk", "row"]), (EB_MULTI, ["t", "b", "w", "row"])],
    ids=str,
)
def test_every_index_is_recomputed_on_request(kernel: Kernel, operands: list[str]) -> None:
    assert pushed(kernel, recompute=True) == operands


DIVIDED = """
func.func @kernel(%idx: memref<?xindex>, %x: memref<?xf32>, %y: memref<?xf32>, %N: index)
    attributes {ember.args = ["idx", "x", "y", "N"], ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.for %i = %c0 to %N step %c1 {
    %r = memref.load %idx[%i] : memref<?xindex>
    %h = arith.divsi %r, %c2 : index
    %v = memref.load %x[%r] : memref<?xf32>
    memref.store %v, %y[%h] : memref<?xf32>
  }
  func.return
}
"""


def test_a_quotient_leaves_the_access_unit_which_has_none() -> None:
    module = parse_module(DIVIDED)
    run_pipeline(module, 0, 4, hardware=True)
    assert "slc.alu_stream" not in str(module)
    assert "arith.divsi" in str(module)
