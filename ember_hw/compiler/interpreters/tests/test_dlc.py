"""The execute side: cases, pops and variables, and programs without a meaning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_hw.compiler.interpreters import Schedule
from ember_hw.compiler.interpreters.tests import bag_texts
from ember_hw.compiler.interpreters.tests.evaluate import run, whole
from ember_hw.errors import CheckError


def function(access: str, loop: str) -> str:
    return f"""
    func.func @f(%n: index, %y: memref<?xf32>) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %f1 = arith.constant 1.0 : f32
      {access}
      {loop}
      func.return
    }}"""


ACCESS = """
dlc.configure_access_engine {
  %t = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
  %i = dlc.get_ind_var %t : !slc.stream<index>
  dlc.register_callback %t, ite {id = 1 : i64} : !dlc.tu
  dlc.register_operand %t, ite, %i : !dlc.tu, !slc.stream<index>
} :
"""
ADD_ONE = """
  %a = memref.load %y[%p] : memref<?xf32>
  %s = arith.addf %a, %f1 : f32
  memref.store %s, %y[%p] : memref<?xf32>
"""
LOOP = f"dlc.compute_loop case 1 {{ %p = dlc.pop_operand : index {ADD_ONE} dlc.yield }}"


def launch(access: str, loop: str, n: int = 3) -> list[float]:
    target = np.zeros(4, np.float32)
    run(function(access, loop), n, target)
    return target.tolist()


def test_case_runs_once_a_token() -> None:
    assert launch(ACCESS, LOOP) == [1, 1, 1, 0]


def test_pairs_run_in_order_with_a_drain_between_them() -> None:
    second = ACCESS.replace("%t", "%t2").replace("%i", "%i2")
    double = LOOP.replace("arith.addf %a, %f1", "arith.addf %a, %a")
    assert launch(ACCESS + LOOP + second, double) == [2, 2, 2, 0]


def test_pop_of_another_type_is_refused() -> None:
    message = "type popped in case 1 must be the type pushed index, not i64"
    with pytest.raises(CheckError, match=whole(message)):
        launch(ACCESS, "dlc.compute_loop case 1 { %p = dlc.pop_operand : i64 dlc.yield }")


def test_token_without_a_case_is_refused() -> None:
    message = "token must be a case of the compute loop (2, 7), not 1"
    with pytest.raises(CheckError, match=whole(message)):
        launch(ACCESS, "dlc.compute_loop case 2 { dlc.yield } case 7 { dlc.yield }")


def test_token_of_a_loop_without_cases_is_refused() -> None:
    message = "token must be a case of the compute loop (none), not 1"
    with pytest.raises(CheckError, match=whole(message)):
        launch(ACCESS, "dlc.compute_loop")


@pytest.mark.parametrize("schedule", [Schedule.AHEAD, Schedule.LOCKSTEP], ids=["ahead", "lockstep"])
def test_operand_that_is_not_popped_is_refused(schedule: Schedule) -> None:
    text = function(ACCESS, "dlc.compute_loop case 1 { dlc.yield }")
    message = "data queue must be empty at done, not hold 1 entries"
    with pytest.raises(CheckError, match=whole(message)):
        run(text, 1, np.zeros(1, np.float32), schedule=schedule)


def test_operand_that_is_not_pushed_is_refused() -> None:
    access = "\n".join(line for line in ACCESS.splitlines() if "register_operand" not in line)
    message = (
        "execute side must find an entry in the data queue, not wait for ever because the access "
        "program has ended"
    )
    with pytest.raises(CheckError, match=whole(message)):
        launch(access, LOOP)


def test_pop_inside_a_loop_is_refused() -> None:
    loop = """
    dlc.compute_loop case 1 {
      scf.for %k = %c0 to %c1 step %c1 { %p = dlc.pop_operand : index }
      dlc.yield
    }"""
    message = "dlc.pop_operand must be a direct child of a case, not of scf.for"
    with pytest.raises(CheckError, match=whole(message)):
        launch(ACCESS, loop)


def test_pop_after_a_loop_is_refused() -> None:
    loop = """
    dlc.compute_loop case 1 {
      scf.for %k = %c0 to %c1 step %c1 { }
      %p = dlc.pop_operand : index
      dlc.yield
    }"""
    message = "pops of case 1 must stand before every op that has a region, not behind one"
    with pytest.raises(CheckError, match=whole(message)):
        launch(ACCESS, loop)


def test_compute_loop_without_an_access_program_is_refused() -> None:
    message = "compute loop must follow an access program, not stand alone"
    with pytest.raises(CheckError, match=whole(message)):
        launch("", LOOP)


def test_access_program_without_a_compute_loop_is_refused() -> None:
    message = "access program must be followed by its compute loop, not by another"
    with pytest.raises(CheckError, match=whole(message)):
        launch(ACCESS + ACCESS.replace("%t", "%t2").replace("%i", "%i2"), LOOP)
    message = "access program must be followed by its compute loop, not by the function's end"
    with pytest.raises(CheckError, match=whole(message)):
        launch(ACCESS, "")


def test_results_of_a_compute_loop_are_refused() -> None:
    loop = LOOP.replace("dlc.compute_loop", "%r = dlc.compute_loop -> index")
    message = "number of results of a compute loop must be 0, not 1"
    with pytest.raises(CheckError, match=whole(message)):
        launch(ACCESS, loop)


def test_variables_live_from_token_to_token() -> None:
    loop = """
    dlc.compute_loop case 1 {
      %q = dlc.pop_operand : index
      %p = dlc.get_var {id = 4 : i64} : index
      dlc.increment_var {id = 4 : i64, step = 2 : i64}
    """
    start = "dlc.set_var %c1 {id = 4 : i64} : index"
    assert launch(start + ACCESS, loop + ADD_ONE + "}", n=2) == [0, 1, 0, 1]


@pytest.mark.parametrize(
    "op", ["%v = dlc.get_var {id = 4 : i64} : index", "dlc.increment_var {id = 4 : i64}"]
)
def test_variable_that_was_never_set_is_refused(op: str) -> None:
    message = "variable must be set before it is read, not variable 4"
    with pytest.raises(CheckError, match=whole(message)):
        launch("", op)


def test_row_is_copied_into_a_variable() -> None:
    text = """
    func.func @f(%m: memref<?xf32>) -> f32 {
      %c0 = arith.constant 0 : index
      %two = arith.constant 2.0 : f32
      dlc.set_var %m : memref<?xf32>
      memref.store %two, %m[%c0] : memref<?xf32>
      %v = dlc.get_var : memref<?xf32>
      %r = memref.load %v[%c0] : memref<?xf32>
      func.return %r : f32
    }"""
    assert run(text, np.ones(1, np.float32)).results == (1,)


def run_mutant(old: str, new: str) -> Any:
    assert old in bag_texts.DLC_O0
    module = bag_texts.DLC_O0.replace(old, new, 1).replace("@eb_sum", "@f")
    offsets, indices = np.array([0, 2, 3]), np.array([0, 1, 1])
    table, out = np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros((2, 3), np.float32)
    run(module, offsets, indices, table, out, 2)
    return out


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "dlc.register_operand %t2, ite, %v : !dlc.tu, !slc.stream<f32>",
            "",
            "type popped in case 1 must be the type pushed index, not f32",
        ),
        (
            "%vv = dlc.pop_operand : f32",
            "%vw = dlc.pop_operand : f64\n    %vv = arith.truncf %vw : f64 to f32",
            "type popped in case 1 must be the type pushed f32, not f64",
        ),
        (
            "dlc.register_callback %t2, ite {id = 1 : i64}",
            "dlc.register_callback %t2, end {id = 1 : i64}",
            "operands of event ite of unit 2 must come with a callback on it, not alone",
        ),
    ],
    ids=["dropped_operand", "other_type", "other_event"],
)
def test_mutant_is_refused(old: str, new: str, message: str) -> None:
    assert run_mutant("%b", "%b").tolist() == [[3, 5, 7], [3, 4, 5]]
    with pytest.raises(CheckError, match=whole(message)):
        run_mutant(old, new)
