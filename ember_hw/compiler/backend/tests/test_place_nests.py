# pyright: basic
"""Loops that stay with the access unit where the reduce unit then sums across their rows."""

from __future__ import annotations

from typing import Any

import pytest

from ember_hw.compiler import compile_function
from ember_hw.compiler.backend.tests.dot_functions import CONFIG
from ember_hw.compiler.program import Program
from ember_hw.compiler.tests.kernels import BB_QK
from ember_hw.errors import UnsupportedError

#: Room for products of queries and keys: blocks, gathered blocks, keys, queries.
ROOMY = CONFIG.with_changes(name="four loops", traversal_units=4)
IN_A_LOOP = "case 1 folds its rows in a loop or a branch, and the unit does so once; "

_HEAD = """
!X = memref<?xindex>
!V = memref<?xf32>
!T = memref<?x?xf32>
func.func @kernel(%h: !X, %a: !T, %b: !T, %out: !T, %top: !T, %N: index, %M: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f0 = arith.constant 0.0 : f32
  %D = memref.dim %a, %c1 : !T
"""
#: Each row of a that is looked up, with every row of b.
_PRODUCTS = """
  scf.for %k = %c0 to %N step %c1 {
    %i = memref.load %h[%k] : !X
    scf.for %m = %c0 to %M step %c1 {
      %q = scf.for %d = %c0 to %D step %c1 iter_args(%acc = %f0) -> (f32) {
        %x = memref.load %a[%i, %d] : !T
        %y = memref.load %b[%m, %d] : !T
        %v = arith.OPERATION %x, %y : f32
        %n = arith.addf %acc, %v : f32
        scf.yield %n : f32
      }
      memref.store %q, %OUT[%k, %m] : !T
    }
  }
"""


def products(operation: str = "mulf", out: str = "out") -> str:
    return _PRODUCTS.replace("OPERATION", operation).replace("OUT", out)


def compiled(*nests: str, **options: Any) -> Program:
    text = f"{_HEAD}{''.join(nests)}  func.return\n}}\n"
    return compile_function(text, config=options.pop("config", CONFIG), **options)


def units(program: Program, nest: int = 0) -> int:
    """Return the loops of the access unit of a nest."""
    return program.ir["au"].split("au.program")[nest + 1].count("au.tu")


@pytest.mark.parametrize("opt_level", [2, 3])
def test_queries_come_as_rows_where_the_unit_sums_across_them(opt_level: int) -> None:
    program = compile_function(BB_QK.text, config=ROOMY, execute="fabric", opt_level=opt_level)
    assert program.placement == (("kernel", "fabric", "sum across"),)
    assert program.nests[0].symbols_read == ("blk", "tab", "q")
    assert units(program) == 4


@pytest.mark.parametrize(
    ("config", "execute"),
    [
        (ROOMY.with_changes(name="no lane", reduce_dot=0), "auto"),
        (ROOMY.with_changes(name="queues", execute="queues", reduce_dot=0), "auto"),
        (ROOMY, "host"),
    ],
    ids=lambda given: getattr(given, "name", given),
)
def test_without_the_lane_rows_leave_once(config: Any, execute: Any) -> None:
    program = compile_function(BB_QK.text, config=config, execute=execute)
    assert program.nests[0].symbols_read == ("blk", "tab")
    assert units(program) == 3


def test_levels_that_send_no_rows_stay_as_they_are() -> None:
    (nest,) = compiled(products(), opt_level=1).nests
    assert nest.reason == "its rows come in parts: opt levels 2 and 3 send them whole"


def test_every_pass_is_checked_in_both_lowerings() -> None:
    program = compile_function(BB_QK.text, config=ROOMY, verify="every-pass")
    assert program.placement[0][1] == "fabric"


def test_a_loop_for_which_the_access_unit_has_no_room() -> None:
    program = compile_function(BB_QK.text, config=CONFIG)
    reason = (
        f"{IN_A_LOOP}with that loop in the access unit it is refused: au: 'au.tu t3': needs unit "
        "3, config 'sums' has 3 (limit traversal_units)"
    )
    assert program.placement == (("kernel", "host", reason),)
    assert units(program) == 3
    with pytest.raises(UnsupportedError) as caught:
        compile_function(BB_QK.text, config=CONFIG, execute="fabric")
    assert str(caught.value) == (
        "execute code of nest 'kernel' must fit the reduce unit with execute='fabric', but "
        f"{reason}; execute='auto' runs it on the host"
    )


def test_loops_stay_in_the_nests_alone_that_the_unit_runs() -> None:
    program = compiled(products(), products("divf", "top"), products("mulf", "top"))
    reason = (
        f"{IN_A_LOOP}with that loop in the access unit, case 2 computes 'divf' of its columns, "
        "and the unit adds, subtracts and multiplies them"
    )
    assert program.placement == (
        ("kernel_0", "fabric", "sum across"),
        ("kernel_1", "host", reason),
        ("kernel_2", "fabric", "sum across"),
    )
    assert [units(program, nest) for nest in range(3)] == [2, 1, 2]
