# pyright: basic
"""Functions that sum across rows, and what the compiler makes of them for a unit that can."""

from __future__ import annotations

from typing import Any

from ember_hw.compiler import compile_function
from ember_hw.compiler.nest import Nest
from ember_hw.config import AcceleratorConfig

CONFIG = AcceleratorConfig(
    name="sums", execute="reduce", reduce_dot=1, streams_per_unit=4, exports=8, row_entries=4
)

_HEAD = """
!X = memref<?xindex>
!V = memref<?xTYPE>
!T = memref<?x?xTYPE>
func.func @kernel(%h: !X, %r: !X, %t: !X, %a: !T, %b: !T, %w: !V, %out: !V, %top: !V, %wide: !T,
                  %N: index, %M: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f0 = arith.constant 0.0 : TYPE
  %minus0 = arith.constant -0.0 : TYPE
  %D = memref.dim %a, %c1 : !T
"""
_LOOP = """
  scf.for %k = %c0 to %N step %c1 {
    %i = memref.load %h[%k] : !X
    %j = memref.load %r[%k] : !X
    %l = memref.load %t[%k] : !X
    %f = memref.load %w[%k] : !V
    BEFORE
    %q = scf.for %d = %c0 to %D step %c1 iter_args(%acc = START) -> (TYPE) {
      %x = memref.load %a[%i, %d] : !T
      %y = memref.load %b[%j, %d] : !T
      %z = memref.load %a[%l, %d] : !T
      MAKE
      scf.yield %n : TYPE
    }
    AFTER
  }
"""


def triples(
    make: str, start: str = "%f0", before: str = "", after: str = "memref.store %q, %out[%k] : !V"
) -> str:
    """Return a loop over triples of rows x, y and z that makes %n of them and of %acc."""
    body = _LOOP.replace("START", start).replace("MAKE", make)
    return body.replace("BEFORE", before).replace("AFTER", after)


def nest_of(
    body: str, type_: str = "f32", config: AcceleratorConfig = CONFIG, **options: Any
) -> Nest:
    text = f"{_HEAD}{body}  func.return\n}}\n".replace("TYPE", type_)
    program = compile_function(text, config=config, may_leave_loops=True, **options)
    (nest,) = program.nests
    return nest


def made(*lines: str) -> str:
    """Return statements %0, %1, .. of f32, the last of which is %n."""
    names = [f"%v{number}" for number in range(len(lines) - 1)] + ["%n"]
    return "\n      ".join(
        f"{name} = {line} : TYPE" for name, line in zip(names, lines, strict=True)
    )


NORM = made("arith.addf %x, %y", "arith.subf %v0, %z", "math.absf %v1", "arith.addf %acc, %v2")

#: A node's row is kept while its neighbours' come.
KEPT = """
  scf.for %k = %c0 to %N step %c1 {
    %k1 = arith.addi %k, %c1 : index
    %s = memref.load %r[%k] : !X
    %e = memref.load %r[%k1] : !X
    scf.for %p = %s to %e step %c1 {
      %l = memref.load %t[%p] : !X
      %q = scf.for %d = %c0 to %D step %c1 iter_args(%acc = %f0) -> (TYPE) {
        %x = memref.load %a[%k, %d] : !T
        %y = memref.load %b[%l, %d] : !T
        %m = arith.mulf %x, %y : TYPE
        %n = arith.addf %acc, %m : TYPE
        scf.yield %n : TYPE
      }
      memref.store %q, %out[%p] : !V
    }
  }
"""
