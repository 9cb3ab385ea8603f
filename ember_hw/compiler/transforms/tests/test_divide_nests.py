"""Which nests `divide-nests` divides, and that halves do what the whole did."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_hw.compiler.dialects import make_context
from ember_hw.compiler.interpreters import interpret
from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.transforms.divide_nests import DivideNests
from ember_hw.compiler.transforms.ir_facts import find_remarks

#: Of each pair of rows the product; its exp scales the second of them.
FUSED = """
func.func @fused(%off: memref<?xindex>, %idx: memref<?xindex>, %tab: memref<?x?xf32>,
                 %w: memref<?xf32>, %out: memref<?x?xf32>, %lo: index, %N: index)
    attributes {ember.args = ["off", "idx", "tab", "w", "out", "lo", "N"], ember.noalias,
                ember.rising = ["off"]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %f0 = arith.constant 0.0 : f32
  %D = memref.dim %tab, %c1 : memref<?x?xf32>
  scf.for %i = %c0 to %N step %c1 {
    %i1 = arith.addi %i, %c1 : index
    %s = memref.load %off[%i] : memref<?xindex>
    %e = memref.load %off[%i1] : memref<?xindex>
    scf.for %p = %s to %e step %c1 {
      %c = memref.load %idx[%p] : memref<?xindex>
      %dot = scf.for %d = %c0 to %D step %c1 iter_args(%acc = %f0) -> (f32) {
        %x = memref.load %tab[%i, %d] : memref<?x?xf32>
        %y = memref.load %tab[%c, %d] : memref<?x?xf32>
        %m = arith.mulf %x, %y : f32
        %n = arith.addf %acc, %m : f32
        scf.yield %n : f32
      }
      %ex = math.exp %dot : f32
      scf.for %d = %c0 to %D step %c1 {
        %y = memref.load %tab[%c, %d] : memref<?x?xf32>
        %a = memref.load %out[%i, %d] : memref<?x?xf32>
        %m = arith.mulf %ex, %y : f32
        %n = arith.addf %a, %m : f32
        memref.store %n, %out[%i, %d] : memref<?x?xf32>
      }
    }
  }
  func.return
}
"""
TWICE = (
    "loop of %p: not divided: the loop of %p may come to a number twice: "
    "'ember.rising' says of no array that gives its bounds, one behind the other, that its "
    "elements never fall"
)


def arguments() -> list[Any]:
    """Return a call; the first, a middle and the last node have no neighbours."""
    random = np.random.default_rng(3)
    pointers = np.cumsum([0, 0, 3, 0, 4, 1, 0, 0])
    table = random.standard_normal((6, 5)).astype(np.float32)
    weights, out = np.zeros(8, np.float32), np.zeros((6, 5), np.float32)
    return [pointers, random.integers(0, 6, 8), table, weights, out, 0, 6]


def divided(text: str) -> tuple[int, list[str]]:
    """Divide, and hold the answer against the whole's. Return the number of nests, and remarks."""
    module = parse_module(text)
    whole, halves = arguments(), arguments()
    interpret(module, "fused", whole)
    DivideNests().apply(make_context(), module)
    module.verify()
    interpret(module, "fused", halves)
    for one, other in zip(whole, halves, strict=True):
        assert np.array_equal(one, other)
    return str(module).count("\n    scf.for"), find_remarks(module)


def test_halves_do_what_the_whole_did() -> None:
    assert divided(FUSED) == (2, [])


def test_a_loop_with_bounds_of_the_host_needs_no_rising_array() -> None:
    text = FUSED.replace("%p = %s to %e", "%p = %c0 to %N")
    text = text.replace(',\n                ember.rising = ["off"]', "")
    assert divided(text) == (2, [])


def test_what_the_first_half_stores_stays_there() -> None:
    text = FUSED.replace(
        "math.exp %dot : f32", "math.exp %dot : f32\n      memref.store %ex, %w[%p] : memref<?xf32>"
    )
    assert divided(text) == (2, [])


def test_three_loops_become_three_nests() -> None:
    second = FUSED[FUSED.index("      scf.for %d = %c0 to %D step %c1 {\n        %y") :]
    second = second[: second.index("      }\n") + len("      }\n")]
    row = """      scf.for %d = %c0 to %D step %c1 {
        %y = memref.load %tab[%c, %d] : memref<?x?xf32>
        memref.store %y, %w[%d] : memref<?xf32>
      }
"""
    assert divided(FUSED.replace(second, second + row)) == (3, [])


@pytest.mark.parametrize(
    ("old", "new", "remark"),
    [
        (',\n                ember.rising = ["off"]', "", TWICE),
        ('ember.rising = ["off"]', "ember.rising", TWICE),
        ("%i1 = arith.addi %i, %c1", "%i1 = arith.addi %i, %c2", TWICE),
        ("%i1 = arith.addi %i, %c1", "%i1 = arith.subi %i, %c0", TWICE),
        ("%s = memref.load %off[%i]", "%s = memref.load %idx[%i]", TWICE),
        ("%p = %s to", "%p = %i to", TWICE),
        (
            "  scf.for %i = %c0 to %N step %c1 {\n    %i1",
            "  scf.for %i = %c0 to %c0 step %c1 {\n"
            "    %t = memref.load %idx[%i] : memref<?xindex>\n"
            "    memref.store %t, %off[%i] : memref<?xindex>\n"
            "  }\n  scf.for %i = %c0 to %N step %c1 {\n    %i1",
            TWICE,
        ),
        (
            "%i = %c0 to",
            "%i = %lo to",
            "loop of %p: not divided: the loop of %i may begin below 0",
        ),
        (
            "%c = memref.load %idx[%p] : memref<?xindex>",
            "%c = arith.subi %p, %s : index",
            "loop of %p: not divided: no memory that the loop of %p reads at its number says how "
            "many there are",
        ),
        (
            "math.exp %dot : f32",
            "math.exp %dot : f32\n      memref.store %ex, %out[%i, %c0] : memref<?x?xf32>",
            "loop of %p: not divided: both halves touch %out",
        ),
    ],
)
def test_a_nest_that_stays_whole_says_why(old: str, new: str, remark: str) -> None:
    assert FUSED.count(old) == 1
    nests, remarks = divided(FUSED.replace(old, new))
    assert remarks == [f"fused: {remark}"]
    assert nests == 1 + new.count("scf.for") // 2
