"""docs/scf.md: its example runs, and what it says is refused is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ember_hw.compiler import compile_function
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import CompileError

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "scf.md").read_text()


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_example_prints_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(block("python"), "docs/scf.md", "exec"), {"text": block("mlir")})
    assert capsys.readouterr().out == block("text")


@pytest.mark.parametrize("opt_level", [0, 1, 2, 3])
def test_the_example_compiles_at_every_level(opt_level: int) -> None:
    config = AcceleratorConfig(name="larger", exports=8, bundle_scalars=6)
    compile_function(block("mlir"), opt_level=opt_level, config=config, verify="every-pass")


HEAD = """
!S = memref<?xindex, strided<[?], offset: ?>>
func.func @f(%i: memref<?xindex>, %x: memref<?x?xf32>, %y: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
"""


def refused(body: str, **options: Any) -> str:
    with pytest.raises(CompileError) as error:
        compile_function(f"{HEAD}{body}\n  func.return\n}}\n", **options)
    return str(error.value)


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (
            """scf.for %k = %c0 to %n step %c1 {
                 %r = memref.load %i[%k] : memref<?xindex>
                 %v = vector.broadcast %r : index to vector<4xindex>
               }""",
            "op of a loop nest must be an scf.for, scf.if, arith, math or memref op, not ",
        ),
        (
            """scf.for %k = %c0 to %n step %c1 {
                 %v = memref.load %y[%k] : memref<?xf32>
                 memref.store %v, %y[%c0] : memref<?xf32>
               }""",
            "top-level loop must be one whose bounds, step and at least one load the access unit ",
        ),
        (
            """%s = memref.subview %i[%c1][%n][%c1] : memref<?xindex> to !S
               scf.for %k = %c0 to %n step %c1 {
                 %r = memref.load %s[%k] : !S
                 %v = memref.load %x[%r, %c0] : memref<?x?xf32>
                 memref.store %v, %y[%k] : memref<?xf32>
               }""",
            "memref %s of the access unit must be an argument of the function, or allocated by it, "
            "not 'memref.subview'",
        ),
    ],
)
def test_what_the_page_lists_is_refused(body: str, rule: str) -> None:
    assert refused(body, opt_level=0).startswith(rule)
