from __future__ import annotations

import re

import pytest

from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.pipeline import run_pipeline
from ember_hw.compiler.tests.kernels import (
    BB_PV,
    EB_MEAN,
    EB_MULTI,
    EB_SUM,
    FUSEDMM,
    SPMM,
    TRANSE,
    Kernel,
)

#: A weight a lookup, and a length at the end of each bag, whose callback counts bags as well.
WEIGHTED_MEAN = Kernel(
    "weighted_mean",
    EB_MEAN.text.replace(
        "      scf.for %d = %c0",
        "      %w = memref.load %psw[%j] : !V\n      scf.for %d = %c0",
        1,
    )
    .replace("%tab[%r, %d] : !T", "%tab[%r, %d] : !T\n        %p = arith.mulf %w, %v : f32")
    .replace("arith.addf %a, %v : f32", "arith.addf %a, %p : f32"),
    EB_MEAN.arguments,
)
PUSHES = {
    EB_SUM: ["t1, ite: row", "t1, end:"],
    EB_MEAN: ["t1, ite: row", "t1, end: len"],
    SPMM: ["t1, ite: b w row"],
    WEIGHTED_MEAN: ["t1, ite: w row", "t1, end: len"],
    EB_MULTI: ["t2, ite: g w row"],
    FUSEDMM: ["t1, beg: row", "t1, ite: row"],
    TRANSE: ["t0, ite: row row row"],
    BB_PV: ["t2, ite: row", "t2, end:", "t1, end:"],
}


def pushes_of(text: str) -> list[str]:
    """Return the push lists of a kernel for hardware at level 3."""
    result = run_pipeline(parse_module(text), 3, 16, hardware=True)
    pushes: list[str] = []
    pattern = r"register_(callback|operand) %(t\w*, \w+)(?:, %([a-z]+))?"
    for match in re.finditer(pattern, result.texts["dlc"]):
        if match[1] == "callback":
            pushes.append(f"{match[2]}:")
        else:
            pushes[-1] += f" {match[3]}"
    return pushes


@pytest.mark.parametrize("kernel", PUSHES, ids=str)
def test_for_hardware_a_scalar_beside_others_is_no_reason_for_a_token(kernel: Kernel) -> None:
    assert pushes_of(kernel.text) == PUSHES[kernel]


@pytest.mark.parametrize(("rows", "pays"), [(1, False), (4, False), (5, True), (8, True)])
def test_for_hardware_a_short_loop_does_not_pay_a_token(rows: int, pays: bool) -> None:
    text = BB_PV.text.replace("%BS: index", "%bs: index").replace('"BS"', '"bs"')
    text = text.replace("%f1 = arith", f"%BS = arith.constant {rows} : index\n  %f1 = arith", 1)
    found = pushes_of(text)
    assert (found == PUSHES[BB_PV]) is pays
    assert pays or len(found) == 1
