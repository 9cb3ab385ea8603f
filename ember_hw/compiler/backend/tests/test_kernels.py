from __future__ import annotations

import re
from typing import Any

import pytest
from xdsl.parser import Parser

from ember_hw.compiler.backend.kernels import extract_kernels
from ember_hw.compiler.dialects import make_context
from ember_hw.compiler.dialects.dlc import ComputeLoopOp
from ember_hw.compiler.program import Kernel
from ember_hw.errors import CompileError

TEXT = """
func.func @f(%n: index, %w: memref<?xf32>, %tab: memref<?x?xf32>, %out: memref<?x?xf32>,
             %flat: memref<?xf32>, %E: index)
    attributes {{ember.args = ["n", "w", "tab", "out", "flat", "E"]}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zeros = arith.constant dense<0.0> : vector<4xf32>
  %D = memref.dim %tab, %c1 : memref<?x?xf32>
  %D2 = memref.dim %tab, %c1 : memref<?x?xf32>
  {before}
  dlc.configure_access_engine {{
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
    %b = dlc.get_ind_var %t0 : !slc.stream<index>
    %s = slc.mem_stream %w[%b] : memref<?xf32>[!slc.stream<index>] into !slc.stream<f32>
    %row = dlc.row_stream %tab[%b] len %D : memref<?x?xf32>[!slc.stream<index>], index
        into !slc.stream<memref<?xf32>>
    %t1 = dlc.new_tu %c0 to %D step %c4 {{under = 0 : i64}} : index into !dlc.tu
    %d = dlc.get_ind_var %t1 : !slc.stream<index>
    %v = slcvec.mem_stream %tab[%b, %d]
        : memref<?x?xf32>[!slc.stream<index>, !slc.stream<index>] into !slc.stream<vector<4xf32>>
    {pushes}
    dlc.register_callback %t0, end {{id = 9 : i64}} : !dlc.tu
  }} :
  dlc.compute_loop
  case 1 {{
    {case}
    dlc.yield
  }}
  {more}
  func.return
}}
"""
ROW_PUSHES = """
    dlc.register_callback %t0, ite {id = 1 : i64} : !dlc.tu
    dlc.register_operand %t0, ite, %b : !dlc.tu, !slc.stream<index>
    dlc.register_operand %t0, ite, %row : !dlc.tu, !slc.stream<memref<?xf32>>
"""
WEIGHTED_ROW_PUSHES = """
    dlc.register_callback %t0, ite {id = 1 : i64} : !dlc.tu
    dlc.register_operand %t0, ite, %b : !dlc.tu, !slc.stream<index>
    dlc.register_operand %t0, ite, %s : !dlc.tu, !slc.stream<f32>
    dlc.register_operand %t0, ite, %row : !dlc.tu, !slc.stream<memref<?xf32>>
"""
VECTOR_PUSHES = """
    dlc.register_callback %t1, ite {id = 1 : i64} : !dlc.tu
    dlc.register_operand %t1, ite, %b : !dlc.tu, !slc.stream<index>
    dlc.register_operand %t1, ite, %d : !dlc.tu, !slc.stream<index>
    dlc.register_operand %t1, ite, %v : !dlc.tu, !slc.stream<vector<4xf32>>
"""
SCALAR_CASE = """
    %pb = dlc.pop_operand : index
    %pd = dlc.pop_operand : index
    %pv = dlc.pop_operand : f32
    %a = memref.load %out[%pb, %pd] : memref<?x?xf32>
    %sum = arith.addf %a, %pv : f32
    memref.store %sum, %out[%pb, %pd] : memref<?x?xf32>
"""
VECTOR_CASE = """
    %pb = dlc.pop_operand : index
    %pd = dlc.pop_operand : index
    %pv = dlc.pop_operand : vector<4xf32>
    %m = slcvec.mask %pd %c0 %D %c1 : vector<4xi1>
    %a = vector.maskedload %out[%pb, %pd], %m, %zeros
        : memref<?x?xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
    %sum = arith.addf %a, %pv : vector<4xf32>
    vector.maskedstore %out[%pb, %pd], %m, %sum : memref<?x?xf32>, vector<4xi1>, vector<4xf32>
"""
ROW_CASE = """
    %pb = dlc.pop_operand : index
    %pr = dlc.pop_operand : memref<?xf32>
    scf.for %k = %c0 to %D step %c4 {
      %e = slcvec.from_buffer %pr[%k] : memref<?xf32>[index] -> vector<4xf32>
      %m = slcvec.mask %k %c0 %D %c1 : vector<4xi1>
      %a = vector.maskedload %out[%pb, %k], %m, %zeros
          : memref<?x?xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
      %sum = arith.addf %a, %e : vector<4xf32>
      vector.maskedstore %out[%pb, %k], %m, %sum : memref<?x?xf32>, vector<4xi1>, vector<4xf32>
    }
"""
SCALAR_ROW_CASE = """
    %pb = dlc.pop_operand : index
    %pr = dlc.pop_operand : memref<?xf32>
    scf.for %k = %c0 to %D step %c1 {
      %e = memref.load %pr[%k] : memref<?xf32>
      %a = memref.load %out[%pb, %k] : memref<?x?xf32>
      %sum = arith.addf %a, %e : f32
      memref.store %sum, %out[%pb, %k] : memref<?x?xf32>
    }
"""


def extract(
    case: str, pushes: str = ROW_PUSHES, *, before: str = "", more: str = ""
) -> dict[int, Kernel]:
    text = TEXT.format(case=case, pushes=pushes, before=before, more=more)
    module = Parser(make_context(), text).parse_module()
    module.verify()
    (loop,) = (op for op in module.walk() if isinstance(op, ComputeLoopOp))
    return extract_kernels(loop)


def accumulation(**changes: Any) -> Kernel:
    parameters: dict[str, Any] = {
        "output": "out",
        "value": 1,
        "key": {"operand": 0},
        "column": None,
        "weight": None,
        "updates": [],
    }
    return Kernel("accumulate", {**parameters, **changes})


def test_scalar_of_level_0() -> None:
    expected = accumulation(value=2, column={"operand": 1})
    assert extract(SCALAR_CASE, VECTOR_PUSHES) == {1: expected}


def test_vector_of_level_1() -> None:
    expected = accumulation(value=2, column={"operand": 1})
    assert extract(VECTOR_CASE, VECTOR_PUSHES) == {1: expected}


@pytest.mark.parametrize("case", [ROW_CASE, SCALAR_ROW_CASE, ROW_CASE.replace("to %D", "to %D2")])
def test_row_of_level_2(case: str) -> None:
    assert extract(case) == {1: accumulation()}


def test_operands_of_the_addition_may_be_swapped() -> None:
    assert extract(ROW_CASE.replace("addf %a, %e", "addf %e, %a")) == {1: accumulation()}


@pytest.mark.parametrize("first_value", [0, 4])
def test_row_and_variable_of_level_3(first_value: int) -> None:
    case = ROW_CASE.replace("%pb = dlc.pop_operand : index", "")
    case = case.replace("scf.for", "%pb = dlc.get_var {id = 2 : i64} : index\n scf.for")
    kernels = extract(
        case,
        ROW_PUSHES.replace("dlc.register_operand %t0, ite, %b : !dlc.tu, !slc.stream<index>", ""),
        before=f"dlc.set_var %c{first_value} {{id = 2 : i64}} : index",
        more="case 9 { dlc.increment_var {id = 2 : i64, step = 3 : i64} dlc.yield }",
    )
    variable = {"variable": 2, "initial": first_value}
    assert kernels == {
        1: accumulation(value=0, key=variable),
        9: Kernel("update", {"updates": [{**variable, "add": 3}]}),
    }


def test_updates_may_share_a_case_with_an_accumulation() -> None:
    case = ROW_CASE + "dlc.increment_var\n dlc.set_var %c4 {id = 1 : i64} : index"
    assert extract(case)[1].parameters["updates"] == [
        {"variable": 0, "initial": 0, "add": 1},
        {"variable": 1, "initial": 0, "set": 4},
    ]


@pytest.mark.parametrize("order", ["%x, %e", "%e, %x"])
def test_weight_multiplies_the_row(order: str) -> None:
    case = ROW_CASE.replace("%pr = dlc", "%pw = dlc.pop_operand : f32\n %pr = dlc").replace(
        "%sum = arith.addf %a, %e",
        "%x = vector.broadcast %pw : f32 to vector<4xf32>\n"
        f"%p = arith.mulf {order} : vector<4xf32>\n%sum = arith.addf %a, %p",
    )
    assert extract(case, WEIGHTED_ROW_PUSHES) == {1: accumulation(value=2, weight=1)}


def test_case_without_work_is_an_update_of_nothing() -> None:
    assert extract("") == {1: Kernel("update", {"updates": []})}


def swap(case: str, old: str, new: str) -> str:
    assert old in case
    return case.replace(old, new)


VECTOR_MASK = "%m = slcvec.mask %pd %c0 %D %c1"
ROW_MASK = "%m = slcvec.mask %k %c0 %D %c1"
SPLAT = "%pv = dlc.pop_operand : f32\n %x = vector.broadcast %pv : f32 to vector<4xf32>"
STORE = "memref.store %sum, %out[%pb, %pd] : memref<?x?xf32>"


@pytest.mark.parametrize(
    ("case", "pushes", "op", "rule"),
    [
        (
            swap(SCALAR_CASE, "arith.addf", "arith.subf"),
            VECTOR_PUSHES,
            "arith.subf",
            "part of an accumulation or an update of a variable",
        ),
        (
            swap(SCALAR_CASE, "addf %a, %pv", "addf %pv, %pv"),
            VECTOR_PUSHES,
            "arith.addf",
            "an element of an output plus an addend",
        ),
        (
            swap(SCALAR_CASE, "addf %a, %pv : f32", "mulf %a, %pv : f32"),
            VECTOR_PUSHES,
            "arith.mulf",
            "a popped scalar times an addend",
        ),
        (
            swap(SCALAR_CASE, STORE, "memref.store %sum, %out[%pd, %pb] : memref<?x?xf32>"),
            VECTOR_PUSHES,
            "memref.store",
            "of a sum to the element that was read for it",
        ),
        (
            swap(SCALAR_CASE, STORE, "memref.store %pv, %out[%pb, %pd] : memref<?x?xf32>"),
            VECTOR_PUSHES,
            "memref.store",
            "of a sum to the element that was read for it",
        ),
        (
            SCALAR_CASE + STORE,
            VECTOR_PUSHES,
            "memref.store",
            "the only accumulation of its case",
        ),
        (
            swap(
                swap(SCALAR_CASE, "%out[%pb, %pd] : memref<?x?xf32>", "%flat[%pb] : memref<?xf32>"),
                "x",
                "x",
            ),
            VECTOR_PUSHES,
            "memref.store",
            "into an output of 2 dimensions",
        ),
        (
            swap(SCALAR_CASE, "%out[%pb, %pd]", "%out[%c0, %pd]"),
            VECTOR_PUSHES,
            "memref.store",
            "at a popped index or a variable",
        ),
        (
            swap(VECTOR_CASE, VECTOR_MASK, "%m = slcvec.mask %pd %c1 %D %c1"),
            VECTOR_PUSHES,
            "slcvec.mask",
            "of lower bound 0 and element step 1",
        ),
        (
            swap(VECTOR_CASE, VECTOR_MASK, "%m = slcvec.mask %pd %c0 %E %c1"),
            VECTOR_PUSHES,
            "vector.maskedstore",
            "masked by the upper bound of its loop",
        ),
        (
            swap(VECTOR_CASE, VECTOR_MASK, "%m = slcvec.mask %pb %c0 %D %c1"),
            VECTOR_PUSHES,
            "vector.maskedstore",
            "masked by its own column",
        ),
        (
            swap(VECTOR_CASE, VECTOR_MASK, "%m = arith.constant dense<true>"),
            VECTOR_PUSHES,
            "vector.maskedload",
            "masked by an slcvec.mask of its case",
        ),
        (
            swap(ROW_CASE, ROW_MASK, "%m = slcvec.mask %k %c0 %E %c1"),
            ROW_PUSHES,
            "vector.maskedstore",
            "masked by the upper bound of its loop",
        ),
        (
            swap(ROW_CASE, "to %D step", "to %E step"),
            ROW_PUSHES,
            "scf.for",
            "over the whole row",
        ),
        (
            swap(ROW_CASE, "step %c4", "step %c1"),
            ROW_PUSHES,
            "scf.for",
            "of step 4, the lanes that it adds",
        ),
        (
            swap(ROW_CASE, "= %c0 to", "= %c1 to"),
            ROW_PUSHES,
            "scf.for",
            "the one loop over a row, from 0 and without carried values",
        ),
        (
            swap(ROW_CASE, "%pr[%k]", "%pr[%c0]"),
            ROW_PUSHES,
            "slcvec.from_buffer",
            "a read of a popped row at the variable of the loop over it",
        ),
        (
            swap(SCALAR_ROW_CASE, "%out[%pb, %k]", "%out[%k, %pb]"),
            ROW_PUSHES,
            "memref.store",
            "to the column of the row's element",
        ),
        (
            swap(
                swap(VECTOR_CASE, "%pv = dlc.pop_operand : vector<4xf32>", SPLAT),
                "addf %a, %pv",
                "addf %a, %x",
            ),
            VECTOR_PUSHES,
            "arith.addf",
            "an element of an output plus an addend",
        ),
        (
            swap(
                swap(VECTOR_CASE, "%pv = dlc.pop_operand : vector<4xf32>", SPLAT),
                "%sum = arith.addf %a, %pv",
                "%p = arith.mulf %x, %x : vector<4xf32>\n %sum = arith.addf %a, %p",
            ),
            VECTOR_PUSHES,
            "arith.mulf",
            "a popped scalar times an addend",
        ),
        (
            swap(
                SCALAR_CASE,
                "%a = memref",
                "%q = arith.index_cast %pb : index to i8\n %a = memref",
            ),
            VECTOR_PUSHES,
            "arith.index_cast",
            "part of an accumulation or an update of a variable",
        ),
        (
            swap(ROW_CASE, "%e = slcvec", "dlc.increment_var\n %e = slcvec"),
            ROW_PUSHES,
            "dlc.increment_var",
            "outside the loop over a row",
        ),
        (
            "dlc.increment_var\n %x = dlc.get_var : index",
            ROW_PUSHES,
            "dlc.get_var",
            "before the updates of its variable",
        ),
        (
            "%x = dlc.pop_operand : index\n dlc.set_var %x : index",
            ROW_PUSHES,
            "dlc.set_var",
            "of a constant",
        ),
    ],
)
def test_anything_else_names_the_op_and_the_case(
    case: str, pushes: str, op: str, rule: str
) -> None:
    with pytest.raises(
        CompileError,
        match=f"^'{re.escape(op)}' in case 1 must be {re.escape(rule)}, not ['\"].*['\"]$",
    ) as caught:
        extract(case, pushes)
    assert caught.value.node == op


def test_output_must_be_an_argument_of_the_function() -> None:
    before = "%mine = memref.alloc(%D, %D) : memref<?x?xf32>"
    rule = "to an argument of the function"
    with pytest.raises(CompileError, match=f"^'memref.store' in case 1 must be {rule}, not '.*'$"):
        extract(swap(SCALAR_CASE, "%out", "%mine"), VECTOR_PUSHES, before=before)


def test_first_value_must_be_a_constant() -> None:
    message = "first value of variable 0 must be a constant, not that of 'dlc.set_var %D : index'"
    with pytest.raises(CompileError, match=f"^{message}$"):
        extract("", before="dlc.set_var %D : index")


def test_case_must_be_pushed() -> None:
    message = "case 3 must be a token that the access program pushes, and isn't"
    with pytest.raises(CompileError, match=f"^{message}$"):
        extract("", more="case 3 { dlc.yield }")


def test_access_program_must_stand_above() -> None:
    text = "func.func @f() { dlc.compute_loop case 1 { dlc.yield } func.return }"
    module = Parser(make_context(), text).parse_module()
    (loop,) = (op for op in module.walk() if isinstance(op, ComputeLoopOp))
    message = "dlc.compute_loop must follow the dlc.configure_access_engine that pushes its tokens"
    with pytest.raises(CompileError, match=f"^{message}$"):
        extract_kernels(loop)
