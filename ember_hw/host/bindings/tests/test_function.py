# pyright: basic
from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from ember_hw.compiler import compile_function
from ember_hw.compiler.program import Program
from ember_hw.compiler.tests.kernels import EB_SUM
from ember_hw.errors import ProgramError
from ember_hw.host.bindings import binding_of
from ember_hw.host.bindings.function import reference, request
from ember_hw.host.device import open_device

TWO_OUTPUTS = """
func.func @split(%rows: memref<?xindex>, %x: memref<?x2xf32>, %a: memref<?xf32>,
                 %b: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %r = memref.load %rows[%i] : memref<?xindex>
    %v = memref.load %x[%r, %c0] : memref<?x2xf32>
    %w = memref.load %x[%r, %c1] : memref<?x2xf32>
    memref.store %v, %a[%i] : memref<?xf32>
    memref.store %w, %b[%i] : memref<?xf32>
  }
  func.return
}
"""


@pytest.fixture(scope="module")
def program() -> Program:
    return compile_function(TWO_OUTPUTS, opt_level=0)


def inputs(**changes: Any) -> dict[str, Any]:
    values = {
        "rows": np.array([2, 0, 1]),
        "x": np.arange(6, dtype=np.float32).reshape(3, 2),
        "a": np.full(4, 7, np.float32),
        "b": np.zeros(3, np.float32),
        "n": 3,
    }
    return values | changes


def run(program: Program, given: Any) -> Any:
    with open_device("interpreter") as device:
        return device.run(program, given)


def test_written_arrays_come_back_as_new_ones_in_order(program: Program) -> None:
    given = inputs()
    a, b = run(program, given)
    assert a.tolist() == [4, 0, 2, 7], "what isn't written is as given"
    assert b.tolist() == [5, 1, 3]
    assert given["a"].tolist() == [7, 7, 7, 7]
    assert not given["b"].any()


def test_arguments_are_taken_in_order_too(program: Program) -> None:
    a, _ = run(program, tuple(inputs().values()))
    assert a.tolist() == [4, 0, 2, 7]


def test_torch_outputs_give_torch_back(program: Program) -> None:
    tensors = {name: torch.from_numpy(v) for name, v in inputs().items() if name != "n"}
    a, b = run(program, inputs(**tensors))
    assert isinstance(a, torch.Tensor)
    assert b.tolist() == [5, 1, 3]


def test_torch_tensors_of_bfloat16_come_and_go() -> None:
    text = TWO_OUTPUTS.replace("f32", "bf16")
    tensors = {name: torch.from_numpy(v) for name, v in inputs().items() if name != "n"}
    tensors |= {name: tensors[name].bfloat16() for name in ("x", "a", "b")}
    a, b = run(compile_function(text, opt_level=0), inputs(**tensors))
    assert a.dtype is b.dtype is torch.bfloat16
    assert (a.tolist(), b.tolist()) == ([4, 0, 2, 7], [5, 1, 3])


def test_strided_and_read_only_inputs_are_the_same_as_their_copy(program: Program) -> None:
    wide = np.arange(24, dtype=np.float32).reshape(3, 8)[:, ::4]
    wide.flags.writeable = False
    a, b = run(program, inputs(x=wide, a=np.zeros(8, np.float32)[::2]))
    assert (a.tolist(), b.tolist()) == ([16, 0, 8, 0], [20, 4, 12])


def test_reference_is_what_scf_does(program: Program) -> None:
    given = inputs()
    for found, wanted in zip(run(program, given), reference(program, given), strict=True):
        assert found.tolist() == wanted.tolist()
    assert not given["b"].any()


def test_lookups_of_a_function_are_not_known(program: Program) -> None:
    told: list[tuple[int, int | None, int | None]] = []
    with open_device("interpreter") as device:
        device.run(program, inputs(), progress=lambda *values: told.append(values))
        assert device.report.lookups is None
        assert "lookups                 unknown\n" in str(device.report)
    assert told[-1] == (3, None, None)


def test_an_index_outside_an_array_is_a_fault(program: Program) -> None:
    with pytest.raises(Exception, match="STREAM_OUT_OF_BOUNDS"):
        run(program, inputs(rows=np.array([0, 1, 3])))


def test_tables_are_no_inputs() -> None:
    program = compile_function(TWO_OUTPUTS, opt_level=0, tables={"x": inputs()["x"]})
    given = inputs()
    del given["x"]
    assert run(program, given)[0].tolist() == [4, 0, 2, 7]
    with pytest.raises(ProgramError, match=r"must be \(rows, a, b, n\), not 'x'$"):
        run(program, inputs())


def test_members_of_a_struct_are_numbers() -> None:
    text = TWO_OUTPUTS.replace(
        "%n: index) {", "%s: !llvm.struct<(i64, array<1 x i64>)>) {"
    ).replace(
        "  scf.for",
        '  %n64 = "llvm.extractvalue"(%s) <{position = array<i64: 1, 0>}> : '
        "(!llvm.struct<(i64, array<1 x i64>)>) -> i64\n"
        "  %n = arith.index_cast %n64 : i64 to index\n  scf.for",
        1,
    )
    program = compile_function(text, opt_level=0)
    given = inputs(s=(9, (2,)))
    del given["n"]
    a, _ = run(program, given)
    assert a.tolist() == [4, 0, 7, 7]
    message = (
        "s must be nested tuples of numbers for !llvm.struct<(i64, !llvm.array<1 x i64>)>, not int"
    )
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        run(program, {**given, "s": 3})


OF = "of program 'split'"


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"rows": [2, 0, 1]},
            TypeError,
            f"rows {OF} must be a NumPy array or a torch tensor, not list",
        ),
        (
            {"rows": np.array([2], np.int32)},
            TypeError,
            f"rows {OF} must be of dtype int64 for memref<?xindex>, not int32",
        ),
        (
            {"x": np.zeros((3, 3), np.float32)},
            ValueError,
            f"x {OF} must be of a shape that fits memref<?x2xf32>, not (3, 3)",
        ),
        (
            {"b": np.zeros((3, 1), np.float32)},
            ValueError,
            f"b {OF} must be of a shape that fits memref<?xf32>, not (3, 1)",
        ),
        ({"n": 3.0}, TypeError, "n must be an integer for index, not float"),
        (
            {"n": 2**31},
            ValueError,
            "n must be from -2147483648 to 2147483647, the access unit's values, not 2147483648",
        ),
        (
            {"z": 1},
            ProgramError,
            f"inputs {OF} must be (rows, x, a, b, n), not 'z'",
        ),
    ],
)
def test_inputs_that_do_not_fit_are_refused(
    program: Program, changes: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        request(program, inputs(**changes))


def test_an_input_that_is_missing_is_named(program: Program) -> None:
    given = inputs()
    del given["n"]
    message = f"inputs {OF} must be (rows, x, a, b, n), and 'n' must not be left out"
    with pytest.raises(ProgramError, match=f"^{re.escape(message)}$"):
        request(program, given)


def test_every_output_is_checked_before_a_run_changes_anything() -> None:
    kernel = compile_function(EB_SUM.text)
    given = EB_SUM.arguments(3, 0)
    assert binding_of(kernel).request(kernel, given).outputs["out"].shape == (6, 3)


def test_a_kind_without_a_binding_is_refused() -> None:
    program = compile_function(TWO_OUTPUTS, opt_level=0)
    other = replace(program, model={"kind": "sort"})
    message = r"^kind of program 'split' must be one of .*function.*, not 'sort'$"
    with pytest.raises(ProgramError, match=message):
        binding_of(other)
