"""Names, folded addresses, next values, and every refusal."""

from __future__ import annotations

import re

import pytest
from xdsl.dialects.func import FuncOp

from ember_hw.compiler.backend.allocate import allocate, allocate_all
from ember_hw.compiler.dialects.au import ProgramOp
from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.pipeline import run_pipeline
from ember_hw.compiler.tests.kernels import EB_MULTI, EB_SUM, FUSEDMM, SPMM
from ember_hw.errors import CompileError


def function_of(text: str) -> FuncOp:
    (function,) = (op for op in parse_module(text).ops if isinstance(op, FuncOp))
    return function


def lower(text: str, opt_level: int, lanes: int = 8) -> FuncOp:
    module = parse_module(text)
    run_pipeline(module, opt_level, lanes)
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    return function


def records(function: FuncOp, sizes: dict[str, tuple[int, int]] | None = None) -> list[str]:
    program = allocate(function, "small", sizes)
    program.verify()
    return lines_of(program)


def lines_of(program: ProgramOp) -> list[str]:
    """Return the program's records but for its arguments."""
    return [line.strip() for line in str(program).splitlines()[1:-1] if "au.arg" not in line]


HEAD = [
    "au.tu t0 = 0 to a0 step 1",
    "au.mem s0 on t0 = a1[t0] : index",
    "au.next s1 on t0 = s0",
    "au.tu t1 under t0 = s0 to s1 step 1",
    "au.mem s2 on t1 = a2[t1] : i64",
]
BAG_SUM = {
    0: [
        "au.tu t2 under t1 = 0 to 20 step 1",
        "au.mem s3 on t2 = a3[s2 * a4 + t2] : f32",
        "au.push t2 ite id 1 (t0, t2, s3)",
    ],
    1: [
        "au.tu t2 under t1 = 0 to 20 step 8",
        "au.row r0 on t2 = a3[s2 * a4 + t2] len 8 clip t2 to 20 : f32",
        "au.push t2 ite id 1 (t0, t2, r0)",
    ],
    2: ["au.row r0 on t1 = a3[s2 * a4] len 20 : f32", "au.push t1 ite id 1 (t0, r0)"],
    3: [
        "au.row r0 on t1 = a3[s2 * a4] len 20 : f32",
        "au.push t1 ite id 1 (r0)",
        "au.push t1 end id 2 ()",
    ],
}


@pytest.mark.parametrize("opt_level", BAG_SUM)
def test_bag_sum(opt_level: int) -> None:
    assert records(lower(EB_SUM.text, opt_level), {"tab": (7, 20)}) == [*HEAD, *BAG_SUM[opt_level]]


def test_arguments_are_named_by_their_symbols() -> None:
    program = str(allocate(lower(EB_SUM.text, 3), "small"))
    assert re.findall(r"au\.arg (\w+) \"(.*)\" : (.*)", program) == [
        ("a0", "B", "index"),
        ("a1", "off", "memref<?xindex>"),
        ("a2", "idx", "memref<?xi64>"),
        ("a3", "tab", "memref<?x?xf32>"),
        ("a4", "tab.dim1", "index"),
        ("a5", "tab.pitch", "index"),
    ]
    assert program.startswith('au.program @kernel target "small" {')


def test_number_of_rows_has_its_own_symbol() -> None:
    text = EB_SUM.text.replace("%b = %c0 to %B", "%b = %c0 to %R").replace(
        "  %D =", "  %R = memref.dim %out, %c0 : !T\n  %D ="
    )
    assert '"out.rows"' in str(allocate(lower(text, 3), "small"))


def test_weights_are_a_second_stream_of_the_lookup() -> None:
    assert "au.mem s3 on t1 = a3[t1] : f32" in records(lower(SPMM.text, 3))


def test_arithmetic_outside_addresses_takes_the_alu() -> None:
    lines = records(lower(EB_MULTI.text, 3))
    assert [line for line in lines if "alu" in line or "au.next" in line] == [
        "au.alu s1 on t0 = mul t0, a2",
        "au.next s3 on t1 = s2",
        "au.alu s5 on t2 = add s4, s0",
    ]
    # The sum of own value and value from above goes into the address, its successor into a pair.
    assert "au.mem s2 on t1 = a3[s1 * 1 + t1] : index" in lines


def test_a_value_that_is_pushed_takes_the_alu_and_the_pair_none() -> None:
    lines = records(lower(EB_MULTI.text, 2))
    assert "au.alu s2 on t1 = add s1, t1" in lines
    assert "au.mem s3 on t1 = a3[s1 * 1 + t1] : index" in lines
    assert "au.mem s4 on t1 = a3[s1 * 1 + t1 + 1] : index" in lines


@pytest.mark.parametrize("factors", ["%three, %j2", "%j2, %three"])
def test_constants_fold_into_an_address(factors: str) -> None:
    address = f"""
      %three = arith.constant 3 : index
      %j2 = arith.subi %j, %c1 : index
      %j3 = arith.muli {factors} : index
      %j4 = arith.addi %c1, %j3 : index
      %i = memref.load %idx[%j4]"""
    text = EB_SUM.text.replace("      %i = memref.load %idx[%j]", address)
    assert "au.mem s2 on t1 = a2[t1 * 3 + -2] : i64" in records(lower(text, 3))


def test_a_next_value_needs_a_free_alu() -> None:
    text = EB_SUM.text.replace("%c0 to %D step", "%b1 to %D step")
    lines = records(lower(text, 0))
    assert "au.alu s0 on t0 = add t0, 1" in lines
    assert "au.mem s2 on t0 = a1[t0 + 1] : index" in lines


ENGINE = """
!S = memref<?xf32, strided<[?], offset: ?>>
func.func @f(%m: memref<?xf32>, %t: memref<?x?xf32>, %q: memref<?x?x?xf32>, %n: index)
    attributes {ember.args = ["m", "t", "q", "n"]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = memref.subview %m[%c1][%n][%c1] : memref<?xf32> to !S
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    BODY
  } :
  dlc.compute_loop
  func.return
}
"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "%t1 = dlc.new_tu %c0 to %n step %c1 {under = 0 : i64} : index into !dlc.tu\n"
            "%t2 = dlc.new_tu %c0 to %n step %c1 {under = 0 : i64} : index into !dlc.tu",
            "unit t2 must be the only unit under t0 (loops side by side need opt_level 2 to become "
            "rows), not a second one (op 'dlc.new_tu' in function 'f')",
        ),
        (
            "%t1 = dlc.new_tu %c0 to %n step %n : index into !dlc.tu",
            "step of unit t1 must be a positive constant, not %n (op 'dlc.new_tu' in function 'f')",
        ),
        (
            "%a = slc.alu_stream<div> %i, %c1 : !slc.stream<index>, index -> !slc.stream<index>\n"
            "dlc.register_callback %t0, ite {id = 1 : i64} : !dlc.tu\n"
            "dlc.register_operand %t0, ite, %a : !dlc.tu, !slc.stream<index>",
            "operation of the access unit must be add, sub or mul, not div (op 'slc.alu_stream' "
            "in function 'f')",
        ),
        (
            "%a = slcvec.mem_stream %t[%i, %c0] : memref<?x?xf32>[!slc.stream<index>, index] "
            "into !slc.stream<vector<4xf32>>",
            "last index of a vector stream must be the induction variable of the innermost unit, "
            "not 0 (op 'slcvec.mem_stream' in function 'f')",
        ),
        (
            "%t1 = dlc.new_tu %c1 to %n step %c1 : index into !dlc.tu\n"
            "%j = dlc.get_ind_var %t1 : !slc.stream<index>\n"
            "%a = slcvec.mem_stream %t[%c0, %j] : memref<?x?xf32>[index, !slc.stream<index>] "
            "into !slc.stream<vector<8xf32>>",
            "lower bound of a unit that reads vectors must be a constant multiple of 8, where a "
            "part of a row can begin, not 1 (op 'slcvec.mem_stream' in function 'f')",
        ),
        (
            "%a = slc.mem_stream %s[%i] : !S[!slc.stream<index>] into !slc.stream<f32>",
            "memref %s of the access unit must be an argument of the function, or allocated by it, "
            "not 'memref.subview' (op 'slc.mem_stream' in function 'f')",
        ),
        (
            "%a = slcvec.broadcast %i : !slc.stream<index> to !slc.stream<vector<4xindex>>",
            "op of an access program must be one with a form in the access unit, not "
            "'slcvec.broadcast' (op 'slcvec.broadcast' in function 'f')",
        ),
    ],
)
def test_what_the_access_unit_cannot_say_is_refused(body: str, message: str) -> None:
    function = function_of(ENGINE.replace("BODY", body))
    with pytest.raises(CompileError, match=f"^{re.escape(message)}$"):
        allocate_all(function, "small")


def test_memory_of_more_dimensions_is_addressed_by_row_number() -> None:
    stream = "!slc.stream<index>"
    body = (
        f"%a = slc.mem_stream %q[%i, %n, %i] : memref<?x?x?xf32>[{stream}, index, {stream}] into "
        "!slc.stream<f32>\n"
        f"%b = dlc.row_stream %q[%i, %i] len %n : memref<?x?x?xf32>[{stream}, {stream}], index "
        "into !slc.stream<memref<?xf32>>\n"
        "%d = dlc.row_stream %m[] len %n : memref<?xf32>[], index into "
        "!slc.stream<memref<?xf32>>"
    )
    (program,) = allocate_all(function_of(ENGINE.replace("BODY", body)), "small")
    assert [line for line in lines_of(program) if "alu" in line or "[" in line] == [
        "au.alu s0 on t0 = mul t0, a2",
        "au.alu s1 on t0 = add s0, a0",
        "au.mem s2 on t0 = a1[s1 * a3 + t0] : f32",
        "au.alu s3 on t0 = mul t0, a2",
        "au.alu s4 on t0 = add s3, t0",
        "au.row r0 on t0 = a1[s4 * a3] len a0 : f32",
        "au.row r1 on t0 = a4[0 * 131072] len a0 : f32",
    ]


def test_each_access_program_of_a_function_has_its_own_names() -> None:
    module = parse_module(FUSEDMM.text)
    run_pipeline(module, 0, 4, hardware=True)
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    programs = allocate_all(function, "small")
    assert [program.sym_name.data for program in programs] == ["kernel_0", "kernel_1"]
    for program in programs:
        program.verify()


VIEW = "  %s = memref.subview %m[%c1][%n][%c1] : memref<?xf32> to !S\n"
HOST = ENGINE.replace("BODY", "dlc.yield").replace(VIEW, "")
LOAD = "%a = slc.mem_stream %x[%i] : memref<?xf32>[!slc.stream<index>] into !slc.stream<f32>"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            HOST.replace(
                "  dlc.configure", "  %x = memref.alloc(%n) : memref<?xf32>\n  dlc.configure"
            ),
            "host code around an access program must be constants and dims, not 'memref.alloc' (op "
            "'memref.alloc' in function 'f')",
        ),
        (
            "func.func @f() {\n  func.return\n}",
            "number of access programs of a function must be 1, not 0 (op 'func.func' in function "
            "'f')",
        ),
        (
            HOST.replace("ember.args", "args"),
            "attribute 'ember.args' must be a name for each argument, not None (op 'func.func' in "
            "function 'f')",
        ),
        (
            HOST.replace("%c0 to %n step", "%c0 to %k step").replace(
                "  dlc.configure", "  %k = memref.dim %m, %n : memref<?xf32>\n  dlc.configure"
            ),
            "operand %k must be a stream, a constant, an argument or a dimension of one, not a "
            "value of 'memref.dim' (op 'dlc.new_tu' in function 'f')",
        ),
    ],
)
def test_host_code_around_the_access_program_is_refused(text: str, message: str) -> None:
    with pytest.raises(CompileError, match=f"^{re.escape(message)}$"):
        allocate(function_of(text), "small")
