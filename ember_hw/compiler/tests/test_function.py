# pyright: basic
"""`compile_function`: what is read off a function, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch

from ember_hw.compiler import compile_function
from ember_hw.compiler.function import read_function
from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.pipeline import OPT_LEVELS
from ember_hw.compiler.program import Argument, Program
from ember_hw.compiler.tests.kernels import EB_SUM, FUSEDMM
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import CheckError, CompileError, UnsupportedError

GATHER = """
func.func @gather(%rows: memref<?xi32>, %x: memref<?x?xf32>, %y: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %rows, %c0 : memref<?xi32>
  %m = memref.dim %x, %c1 : memref<?x?xf32>
  scf.for %i = %c0 to %n step %c1 {
    %r32 = memref.load %rows[%i] : memref<?xi32>
    %r = arith.index_cast %r32 : i32 to index
    scf.for %j = %c0 to %m step %c1 {
      %v = memref.load %x[%r, %j] : memref<?x?xf32>
      memref.store %v, %y[%i, %j] : memref<?x?xf32>
    }
  }
  func.return
}
"""
TABLE = np.arange(20, dtype=np.float32).reshape(5, 4)


def test_names_come_from_the_text_and_outputs_from_the_stores() -> None:
    spec = read_function(parse_module(GATHER), {"x": TABLE})
    assert spec.kind == "function"
    assert spec.model() == {
        "name": "gather",
        "input_names": ["rows", "y"],
        "input_types": ["memref<?xi32>", "memref<?x?xf32>"],
        "outputs": ["y"],
    }
    assert spec.tables() == {"x": TABLE}


def test_arguments_without_a_name_are_numbered() -> None:
    text = 'builtin.module { "func.func"() <{function_type = (index) -> (), sym_name = "f"}> ({\n'
    text += "^bb0(%0: index):\n  func.return\n}) : () -> () }"
    assert read_function(parse_module(text), {}).inputs == {"arg0": "index"}


def test_a_program_says_what_it_is() -> None:
    program = compile_function(GATHER, tables={"x": torch.from_numpy(TABLE)}, name="mine")
    assert (program.name, program.opt_level, program.model["kind"]) == ("mine", 3, "function")
    assert program.arguments == (
        Argument("rows", "memref<?xi32>"),
        Argument("x", "memref<?x?xf32>"),
        Argument("y", "memref<?x?xf32>"),
    )
    assert np.shares_memory(program.tables["x"], TABLE)
    assert set(program.ir) == {"scf", "slc", "slcvec", "dlc", "au"}
    assert program.nests[0].microcode.get("row0", "length") == 16, "columns are a constant"


def test_a_module_is_not_changed() -> None:
    module = parse_module(GATHER)
    before = str(module)
    compile_function(module)
    assert str(module) == before


@pytest.mark.parametrize("opt_level", [0, 1])
def test_scratch_memory_is_an_argument_whose_size_the_host_computes(opt_level: int) -> None:
    program = compile_function(FUSEDMM.text, opt_level=opt_level)
    assert [nest.name for nest in program.nests] == ["kernel_0", "kernel_1"]
    assert program.arguments[-1] == Argument("scratch", "memref<?xf32>", "scratch", ("count",))
    assert program.host_code is not None


@pytest.mark.parametrize("opt_level", OPT_LEVELS)
def test_a_program_survives_its_file(opt_level: int, tmp_path: Any) -> None:
    program = compile_function(FUSEDMM.text, opt_level=opt_level)
    program.save(tmp_path / "f.ember")
    again = Program.load(tmp_path / "f.ember")
    assert [nest.code for nest in again.nests] == [nest.code for nest in program.nests]
    assert again.host_code == program.host_code
    assert again.arguments == program.arguments


@pytest.mark.parametrize("opt_level", OPT_LEVELS)
def test_a_function_checks_itself(opt_level: int) -> None:
    compile_function(GATHER, opt_level=opt_level, verify="every-pass")
    inputs = EB_SUM.arguments(3, 0)
    compile_function(EB_SUM.text, opt_level=opt_level, verify="every-pass", example_inputs=inputs)


def test_loops_without_a_unit_are_left_only_if_they_may_be() -> None:
    config = AcceleratorConfig(name="short", traversal_units=1)
    with pytest.raises(Exception, match=r"limit traversal_units"):
        compile_function(GATHER, opt_level=0, config=config)
    assert compile_function(GATHER, opt_level=0, config=config, may_leave_loops=True)


def refused(text: str, tables: Any = None) -> str:
    with pytest.raises(CompileError) as error:
        compile_function(text, tables=tables)
    return str(error.value)


WHERE = " (op 'func.func' in function 'gather')"


def test_text_that_does_not_parse_is_refused_with_its_place() -> None:
    with pytest.raises(CheckError, match=r"^<text>:3:\d+: "):
        compile_function(GATHER.replace("arith.constant 0", "arith.constnt 0"))


def test_a_module_has_one_function() -> None:
    second = "func.func @other() {\n  func.return\n}\n"
    assert refused(GATHER + second) == "module must define 1 function, not 2 (gather, other)"
    assert refused("builtin.module {}") == "module must define 1 function, not 0 (none)"


def test_names_are_distinct() -> None:
    text = GATHER.replace("xf32>) {", 'xf32>) attributes {ember.args = ["x", "y", "y"]} {')
    assert refused(text) == ("names in 'ember.args' must be distinct, not ['x', 'y', 'y']" + WHERE)


def test_vectors_that_never_fall_are_read_only_and_of_integers() -> None:
    def stated(value: str) -> str:
        return GATHER.replace("xf32>) {", f"xf32>) attributes {{ember.rising = {value}}} {{")

    spec = read_function(parse_module(stated('["rows"]')), {})
    assert (spec.rising, spec.model()["rising"]) == (("rows",), ["rows"])
    assert refused(stated('["x"]')) == (
        "names in 'ember.rising' must be vectors of integers that the function doesn't write "
        "(rows), not 'x'" + WHERE
    )
    assert refused(stated('"rows"')) == (
        "attribute 'ember.rising' must be a list of names of arguments, not \"rows\"" + WHERE
    )


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("%z: memref<f32>", "rank of argument 'z' must be at least 1, not 0"),
        (
            "%z: memref<?xf32, strided<[2]>>",
            "argument 'z' must be a memref whose last dimension is contiguous, not "
            "memref<?xf32, strided<[2]>>",
        ),
        (
            "%z: memref<?xf128>",
            "element type of 'z' must be one of f32, f64, f16, bf16, index, i64, i32, i16, i8, "
            "not f128",
        ),
        (
            "%z: f32",
            "argument 'z' must be a memref, an index, an integer or a struct of integers, not f32; "
            "pass it as memref<1xf32>",
        ),
        (
            "%z: !llvm.struct<(memref<?xf32>)>",
            "members of argument 'z' must be integers, not memref<?xf32>",
        ),
    ],
)
def test_arguments_that_no_host_can_give_are_refused(argument: str, message: str) -> None:
    assert refused(GATHER.replace("%rows:", f"{argument}, %rows:")) == message + WHERE


def test_results_are_memrefs_of_the_arguments() -> None:
    text = GATHER.replace("xf32>) {", "xf32>) -> index {").replace(
        "func.return", "func.return %n : index"
    )
    assert refused(text) == (
        "result must be a memref argument, or stored to one, not index" + WHERE
    )
    text = GATHER.replace("xf32>) {", "xf32>) -> memref<?x?xf32> {").replace(
        "func.return", "func.return %y : memref<?x?xf32>"
    )
    assert compile_function(text).model["outputs"] == ["y"]


def test_a_table_is_an_argument() -> None:
    assert refused(GATHER, {"z": TABLE}) == (
        "names of tables must be arguments of the function (rows, x, y), not 'z'" + WHERE
    )


@pytest.mark.parametrize(
    ("tables", "error", "message"),
    [
        (
            {"y": TABLE},
            ValueError,
            "table 'y' must be read only, and the function writes it",
        ),
        (
            {"x": [[1.0]]},
            TypeError,
            "table 'x' must be a NumPy array or a torch tensor, not list",
        ),
        (
            {"x": TABLE.astype(np.float64)},
            TypeError,
            "table 'x' must be of dtype float32, not float64",
        ),
        (
            {"x": TABLE[0]},
            ValueError,
            "table 'x' must be of a shape that fits memref<?x?xf32>, not (4,)",
        ),
    ],
)
def test_tables_fit_their_arguments(tables: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        compile_function(GATHER, tables=tables)


def test_a_table_is_memory() -> None:
    text = GATHER.replace("%rows:", "%k: index, %rows:")
    message = "table 'k' must be a memref of the function, not index"
    with pytest.raises(TypeError, match=f"^{message}$"):
        compile_function(text, tables={"k": TABLE})


def test_rows_of_integers_are_elements_at_level_0() -> None:
    text = GATHER.replace("f32", "i64")
    with pytest.raises(UnsupportedError) as error:
        compile_function(text, opt_level=2)
    assert str(error.value) == (
        "elements of the rows of 'x' must be f16, bf16, f32 or f64 at opt_level 2, not i64; "
        "compile with opt_level=0"
    )
    assert compile_function(text, opt_level=0)


def test_rows_of_a_table_are_as_long_as_microcode_can_say() -> None:
    with pytest.raises(UnsupportedError) as error:
        compile_function(GATHER, tables={"x": np.zeros((1, 16384), np.float32)})
    assert str(error.value) == (
        "embedding_dim of table 'x' must be at most 16383 at opt_level 3 on config 'default', "
        "not 16384; compile with opt_level=1"
    )


def test_a_size_that_the_host_cannot_compute_is_refused() -> None:
    text = GATHER.replace(
        "  scf.for %i",
        """  %some = arith.cmpi eq, %n, %m : index
  %size = scf.if %some -> (index) {
    scf.yield %n : index
  } else {
    scf.yield %m : index
  }
  %s = memref.alloc(%size) : memref<?xf32>
  scf.for %i""",
        1,
    )
    assert refused(text) == (
        "size of an allocation must be arithmetic on constants, arguments and dimensions, or the "
        "result of a host loop, not %size (op 'memref.alloc' in function 'gather')"
    )


@pytest.mark.parametrize(
    ("size", "rule"),
    [
        ("%big = arith.remsi %n, %c1 : index", None),
        (
            "%big = memref.load %rows2[%c0] : memref<?xindex>",
            "memory that sizes of allocations need must be read only, not rows2",
        ),
    ],
)
def test_sizes_of_scratch_memory(size: str, rule: str | None) -> None:
    text = f"""
func.func @gather(%rows2: memref<?xindex>, %x: memref<?xf32>, %y: memref<?xf32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  {size}
  %s = memref.alloc(%big) : memref<?xf32>
  scf.for %i = %c0 to %n step %c1 {{
    %v = memref.load %x[%i] : memref<?xf32>
    memref.store %v, %y[%i] : memref<?xf32>
    {"memref.store %i, %rows2[%i] : memref<?xindex>" if rule else ""}
  }}
  func.return
}}
"""
    if rule is None:
        assert compile_function(text, opt_level=0).host_code is not None
    else:
        assert rule in refused(text)
