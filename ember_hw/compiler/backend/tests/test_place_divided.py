# pyright: basic
"""Nests that are divided where the reduce unit then runs both halves, and those that are not."""

from __future__ import annotations

from typing import Any

import pytest

from ember_hw.compiler import compile_function
from ember_hw.compiler.backend.tests.dot_functions import CONFIG
from ember_hw.compiler.program import Program
from ember_hw.compiler.tests.kernels import FUSEDMM
from ember_hw.compiler.transforms.tests.test_divide_nests import FUSED
from ember_hw.errors import UnsupportedError

HALVES = [("fabric", "sum across"), ("fabric", "weighted sum")]
AGAIN = "case 2 needs its rows once more, behind the sum across them; "


def compiled(text: str = FUSED, **options: Any) -> Program:
    return compile_function(text, config=options.pop("config", CONFIG), **options)


def places(program: Program) -> list[tuple[str, str]]:
    return [nest[1:] for nest in program.placement]


@pytest.mark.parametrize(("opt_level", "execute"), [(2, "auto"), (3, "fabric")])
def test_both_halves_run_in_the_fabric(opt_level: int, execute: Any) -> None:
    program = compiled(opt_level=opt_level, execute=execute, verify="every-pass")
    assert program.placement == (
        ("fused_0", "fabric", "sum across"),
        ("fused_1", "fabric", "weighted sum"),
    )
    assert program.arguments[-1].role == "scratch"
    assert "memref.alloc" not in program.ir["scf"], "it is the source"


def test_a_nest_is_divided_only_for_a_unit_that_sums_across_rows() -> None:
    assert places(compiled(execute="host")) == [("host", "execute='host' was asked for")]
    assert len(compiled(config=CONFIG.with_changes(reduce_dot=0)).nests) == 1
    queues = CONFIG.with_changes(execute="queues", reduce_dot=0)
    assert len(compiled(config=queues).nests) == 1


def test_levels_that_send_parts_of_rows_divide_as_ever() -> None:
    program = compiled(opt_level=1)
    plain = compiled(opt_level=1, config=CONFIG.with_changes(reduce_dot=0))
    assert program.ir["dlc"] == plain.ir["dlc"]


def test_several_nests_are_divided_and_others_stay() -> None:
    begin, end = FUSED.index("  scf.for %i"), FUSED.index("  func.return")
    nest = FUSED[begin:end]
    copy = """
  scf.for %i = %c0 to %N step %c1 {
    %c = memref.load %idx[%i] : memref<?xindex>
    scf.for %d = %c0 to %D step %c1 {
      %y = memref.load %tab[%c, %d] : memref<?x?xf32>
      memref.store %y, %out[%i, %d] : memref<?x?xf32>
    }
  }
"""
    maximum = nest.replace("%n = arith.addf %acc, %m", "%n = arith.maximumf %acc, %m")
    program = compiled(FUSED.replace(nest, nest + copy + maximum + nest))
    host = places(program)[3]
    assert places(program) == [*HALVES, ("fabric", "copy"), host, *HALVES]
    assert host == (
        "host",
        AGAIN + "divided, case 2 folds its rows by another operation than a sum",
    )


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (
            "math.exp %dot : f32",
            "math.exp %dot : f32\n      memref.store %ex, %out[%i, %c0] : memref<?x?xf32>",
            "it can't be divided: both halves touch %out",
        ),
        (
            "%n = arith.addf %a, %m",
            "%n = arith.minimumf %a, %m",
            "divided, case 1 makes its columns by 'minimumf', and the unit adds or takes the "
            "maximum",
        ),
    ],
)
def test_the_reason_says_what_divided_nests_lack(old: str, new: str, why: str) -> None:
    text = FUSED.replace(old, new)
    assert places(compiled(text)) == [("host", AGAIN + why)]
    with pytest.raises(UnsupportedError) as caught:
        compiled(text, execute="fabric")
    assert str(caught.value) == (
        "execute code of nest 'fused' must fit the reduce unit with execute='fabric', but "
        f"{AGAIN}{why}; execute='auto' runs it on the host"
    )


def test_a_function_that_says_nothing_of_its_pointers_stays_whole() -> None:
    (nest,) = compiled(FUSEDMM.text).nests
    assert nest.execute == "host"
    assert "; it can't be divided: the loop of %p may come to a number twice: " in nest.reason


def test_halves_that_do_not_fit_the_config_leave_the_nest_whole() -> None:
    config = CONFIG.with_changes(name="narrow", exports=4, bundle_scalars=1)
    assert places(compiled(config=config)) == [
        (
            "host",
            f"{AGAIN}divided, it is refused: au: 'au.push t1 ite': needs scalar 1 for s3, config "
            "'narrow' has 1 (limit bundle_scalars)",
        )
    ]
