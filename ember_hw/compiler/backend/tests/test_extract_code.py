from __future__ import annotations

import re

import pytest

from ember_hw.compiler.backend.execute_code import ExecuteCode
from ember_hw.compiler.backend.extract_code import extract_code
from ember_hw.compiler.dialects.dlc import ComputeLoopOp
from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.pipeline import OPT_LEVELS, run_pipeline
from ember_hw.compiler.tests.kernels import FUSEDMM, KERNELS, Kernel
from ember_hw.errors import CompileError

TEXT = """
func.func @f(%n: index, %tab: memref<?x?xf32>, %out: memref<?x?xf32>, %flat: memref<?xf32>)
    attributes {{ember.args = ["n", "tab", "out", "flat"]{noalias}}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %f0 = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : vector<4xf32>
  %D = memref.dim %tab, %c1 : memref<?x?xf32>
  %z = slc.to_stream %c0 : index to !slc.stream<index>
  {before}
  dlc.configure_access_engine {{
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
  }} :
  dlc.compute_loop
  case 1 {{
    {case}
    dlc.yield
  }}
  {after}
  func.return
}}
"""
ROW = "%b = dlc.pop_operand : index  %row = dlc.pop_operand : memref<?xf32>"
VECTOR = "%b = dlc.pop_operand : index  %v = dlc.pop_operand : vector<4xf32>"
MASK = "%m = slcvec.mask %b %c0 %D %c1 : vector<4xi1>"
LOAD = (
    "%a = vector.maskedload %out[%b, %b], %m, %zeros "
    ": memref<?x?xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>"
)


def code_of(case: str, before: str = "", after: str = "", noalias: str = "") -> ExecuteCode:
    text = TEXT.format(case=case, before=before, after=after, noalias=noalias)
    module = parse_module(text)
    (loop,) = (op for op in module.walk() if isinstance(op, ComputeLoopOp))
    return extract_code(loop)


@pytest.mark.parametrize("opt_level", OPT_LEVELS)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_every_kernel_has_code_at_every_level(kernel: Kernel, opt_level: int) -> None:
    module = parse_module(kernel.text)
    run_pipeline(module, opt_level, 4, hardware=True)
    loops = [op for op in module.walk() if isinstance(op, ComputeLoopOp)]
    for code in map(extract_code, loops):
        assert ExecuteCode.from_json(code.to_json()) == code


def test_rows_and_folds_are_loops_over_elements() -> None:
    module = parse_module(FUSEDMM.text)
    run_pipeline(module, 3, 4, hardware=True)
    (loop,) = (op for op in module.walk() if isinstance(op, ComputeLoopOp))
    text = str(extract_code(loop))
    assert "\n  for d = c0 to D step c1 carry acc = f0 then n give dot:\n" in text
    assert "\n  variable 0 += 1\n  variable 1 = row\n" in text
    assert "vector" not in text


def test_a_popped_vector_is_a_row_whose_lanes_the_mask_bounds() -> None:
    store = "vector.maskedstore %out[%b, %b], %m, %v : memref<?x?xf32>, vector<4xi1>, vector<4xf32>"
    with pytest.raises(
        CompileError,
        match=r"^'vector.maskedstore' in case 1 must be of the lanes of its mask, not '.*'$",
    ):
        code_of(f"{VECTOR} {MASK} {store}")
    store = store.replace("[%b, %b]", "[%c0, %b]")
    text = str(code_of(f"{VECTOR} {MASK} {store}"))
    assert text.endswith(
        """\
case 1:
  b : index = pop
  v : row<f32> = pop
  below : index = subi c0, b
  first : index = maxsi below, c0
  room : index = subi D, b
  count : index = minsi room, c4
  for lane = first to count step c1:
    b_1 : index = addi b, lane
    v_1 : f32 = read v[lane]
    store v_1 to out[c0, b_1]
"""
    )


def test_what_stands_behind_the_loop_is_the_end() -> None:
    code = code_of(
        "%v = dlc.pop_operand : f32  dlc.set_var %v : f32",
        "dlc.set_var %f0 : f32",
        "%r = dlc.get_var : f32  memref.store %r, %flat[%c2] : memref<?xf32>",
    )
    assert str(code).endswith("end:\n  r : f32 = variable 0\n  store r to flat[c2]\n")
    assert code.variables[0].initial == "f0"


def test_host_values_are_computed_in_the_entry() -> None:
    before = "%k = arith.addi %n, %c2 : index  %x = memref.load %flat[%k] : memref<?xf32>"
    code = code_of("memref.store %x, %out[%c0, %k] : memref<?x?xf32>", before)
    assert "  k : index = addi n, c2\n  x : f32 = load flat[k]\n" in str(code)


@pytest.mark.parametrize(
    ("case", "op", "rule"),
    [
        ("%x = math.log %f0 : f32", "math.log", "an operation of execute code"),
        (
            "%x = dlc.pop_operand : f128",
            "dlc.pop_operand",
            "of index, i1, i8, i16, i32, i64, f16, bf16, f32, f64 or a row of them",
        ),
        (
            "%x = memref.alloc() : memref<4xf32>  memref.store %f0, %x[%c0] : memref<4xf32>",
            "memref.alloc",
            "an operation of execute code",
        ),
        (
            "%r = dlc.get_var : memref<?xf32>  dlc.set_var %r {id = 1 : i64} : memref<?xf32>",
            "dlc.set_var",
            "of a row that its case pops",
        ),
        (
            f"{ROW} scf.for %d = %c0 to %D step %c2 {{ %x = slcvec.from_buffer %row[%d] "
            ": memref<?xf32>[index] -> vector<4xf32> }",
            "scf.for",
            "of one vector a step",
        ),
        (
            f"{ROW} scf.for %d = %c0 to %D step %c4 {{ %x = slcvec.from_buffer %row[%b] "
            ": memref<?xf32>[index] -> vector<4xf32> }",
            "slcvec.from_buffer",
            "of the lanes of its loop",
        ),
        (
            f"{ROW} scf.for %d = %c0 to %D step %c4 {{ %x = slcvec.from_buffer %row[%d] "
            ": memref<?xf32>[index] -> vector<4xf32>  "
            "memref.store %f0, %flat[%d] : memref<?xf32> }",
            "memref.store",
            "outside a loop over vectors",
        ),
        (
            f"{ROW} scf.for %d = %c0 to %D step %c4 {{ "
            "%m = slcvec.mask %d %c0 %n %c1 : vector<4xi1> }",
            "slcvec.mask",
            "masked by the bounds of its loop",
        ),
        (
            f"{ROW} %x = scf.for %d = %c0 to %D step %c4 iter_args(%a = %c0) -> (index) {{ "
            "%v = slcvec.from_buffer %row[%d] : memref<?xf32>[index] -> vector<4xf32>  "
            "%y = arith.addi %a, %c4 : index  scf.yield %y : index }",
            "scf.for",
            "one that carries folds of its vectors only",
        ),
        (
            f"{VECTOR} %x = vector.reduction <add>, %v : vector<4xf32> into f32",
            "vector.reduction",
            "an operation of execute code",
        ),
        (
            f"{VECTOR} {MASK} {LOAD} memref.store %f0, %out[%c0, %c0] : memref<?x?xf32>  "
            "%s = slcvec.fold<add> %f0, %a mask %m : f32, vector<4xf32>, vector<4xi1>",
            "vector.maskedload",
            "used before its memory is written",
        ),
    ],
)
def test_anything_else_names_the_op_and_the_case(case: str, op: str, rule: str) -> None:
    message = f"^'{re.escape(op)}' in case 1 must be {re.escape(rule)}, not ['\"].*['\"]$"
    with pytest.raises(CompileError, match=message):
        code_of(case)


def test_effects_above_the_first_access_program_are_refused() -> None:
    message = "^'memref.store' in entry must be behind the first access program, not '.*'$"
    with pytest.raises(CompileError, match=message):
        code_of("", "memref.store %f0, %flat[%c0] : memref<?xf32>")
