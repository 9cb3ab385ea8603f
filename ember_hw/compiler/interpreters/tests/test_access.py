"""The access side: which events push what, and programs without a meaning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_hw.compiler.interpreters import InterpreterResult
from ember_hw.compiler.interpreters.tests.evaluate import run, whole
from ember_hw.errors import CheckError

_INDEX = "!slc.stream<index>"


def program(access: str, cases: dict[int, str]) -> str:
    """Return a function f(%n, %m, %x, %log) around an access region and cases."""
    regions = "\n".join(f"case {token} {{ {body} dlc.yield }}" for token, body in cases.items())
    return f"""
    func.func @f(%n: index, %m: index, %x: memref<?xindex>, %log: memref<?xindex>) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %z = slc.to_stream %c0 : index to {_INDEX}
      %u = slc.to_stream %c1 : index to {_INDEX}
      %ns = slc.to_stream %n : index to {_INDEX}
      %ms = slc.to_stream %m : index to {_INDEX}
      dlc.set_var %c0 : index
      dlc.configure_access_engine {{ {access} }} :
      dlc.compute_loop
      {regions}
      func.return
    }}"""


def unit(
    name: str, upper: str, under: int | None = None, lower: str = "%z", step: str = "%u"
) -> str:
    parent = "" if under is None else f" {{under = {under} : i64}}"
    return f"""
    %{name} = dlc.new_tu %z to {upper} step {step}{parent} : {_INDEX} into !dlc.tu
    %{name}v = dlc.get_ind_var %{name} : {_INDEX}
    """


def push(name: str, event: str, token: int, *streams: str) -> str:
    operands = "\n".join(
        f"dlc.register_operand %{name}, {event}, {stream} : !dlc.tu, {_INDEX}" for stream in streams
    )
    return f"dlc.register_callback %{name}, {event} {{id = {token} : i64}} : !dlc.tu\n{operands}\n"


def note(token: int, operands: int = 0) -> str:
    """Return the body of a case that logs its token and its operands."""
    pops = "\n".join(f"%p{i} = dlc.pop_operand : index" for i in range(operands))
    stores = "\n".join(
        f"""
        %a{i} = dlc.get_var : index
        memref.store {value}, %log[%a{i}] : memref<?xindex>
        dlc.increment_var
        """
        for i, value in enumerate(["%t", *(f"%p{i}" for i in range(operands))])
    )
    return f"%t = arith.constant {token} : index\n{pops}\n{stores}"


def log_of(text: str, n: int = 2, m: int = 2, x: Any = ()) -> list[int]:
    log = np.full(100, -1, np.int64)
    run(text, n, m, np.array(x, np.int64), log)
    return log[log != -1].tolist()


def launch(access: str, cases: dict[int, str] | None = None) -> InterpreterResult:
    return run(
        program(access, {1: note(1)} if cases is None else cases),
        2,
        2,
        np.zeros(4, np.int64),
        np.zeros(100, np.int64),
    )


NEST = program(
    unit("t", "%ns")
    + push("t", "beg", 1)
    + push("t", "ite", 2, "%tv")
    + push("t", "end", 3)
    + unit("s", "%ms", under=0)
    + push("s", "beg", 4, "%tv")
    + push("s", "ite", 5, "%tv", "%sv")
    + push("s", "end", 6, "%tv"),
    {1: note(1), 2: note(2, 1), 3: note(3), 4: note(4, 1), 5: note(5, 2), 6: note(6, 1)},
)


def test_events_come_in_the_order_of_the_walk() -> None:
    inner = [[2, i, 4, i, 5, i, 0, 5, i, 1, 6, i] for i in range(2)]
    assert log_of(NEST) == [1, *inner[0], *inner[1], 3]


def test_empty_loop_begins_and_ends() -> None:
    assert log_of(NEST, n=0) == [1, 3]
    assert log_of(NEST, n=1, m=0) == [1, 2, 0, 4, 0, 6, 0, 3]


def test_sibling_units_run_one_after_the_other() -> None:
    text = program(
        unit("t", "%ns")
        + unit("s", "%ms", under=0)
        + unit("r", "%ms", under=0)
        + push("s", "ite", 1, "%sv")
        + push("r", "ite", 2, "%rv"),
        {1: note(1, 1), 2: note(2, 1)},
    )
    assert log_of(text, n=2, m=2) == [1, 0, 1, 1, 2, 0, 2, 1] * 2


def test_absent_parent_is_the_unit_before() -> None:
    text = program(
        unit("t", "%ns") + unit("s", "%ms") + push("s", "end", 1, "%tv"), {1: note(1, 1)}
    )
    assert log_of(text) == [1, 0, 1, 1]


def test_stream_is_loaded_once_an_iteration_of_its_unit() -> None:
    # x[t] is out of bounds for t >= 2: no iteration of the source, no load.
    load = f"%s0 = slc.mem_stream %x[%tv] : memref<?xindex>[{_INDEX}] into {_INDEX}\n"
    text = program(unit("t", "%ns") + load + push("t", "ite", 1, "%s0"), {1: note(1, 1)})
    assert log_of(text, n=2, x=[7, 8]) == [1, 7, 1, 8]
    message = "position of slc.mem_stream must be inside the memref's shape (2,), not (2,)"
    with pytest.raises(IndexError, match=whole(message)):
        log_of(text, n=3, x=[7, 8])


def test_stream_of_constants_is_loaded_at_the_start() -> None:
    load = f"%s0 = slc.mem_stream %x[%u] : memref<?xindex>[{_INDEX}] into {_INDEX}\n"
    text = program(load + unit("t", "%s0") + push("t", "ite", 1, "%tv"), {1: note(1, 1)})
    assert log_of(text, x=[7, 2]) == [1, 0, 1, 1]


ROWS = """
func.func @f(%tab: memref<?x?xf32>, %r: index, %D: index, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  dlc.configure_access_engine {
    %t = dlc.new_tu %c0 to %c1 step %c1 : index into !dlc.tu
    %i = dlc.get_ind_var %t : !slc.stream<index>
    %k = slc.alu_stream<add> %i, %r : !slc.stream<index>, index -> !slc.stream<index>
    %row = dlc.row_stream %tab[%k] len %D : memref<?x?xf32>[!slc.stream<index>], index
      into !slc.stream<memref<?xf32>>
    dlc.register_callback %t, ite {id = 1 : i64} : !dlc.tu
    dlc.register_operand %t, ite, %row : !dlc.tu, !slc.stream<memref<?xf32>>
  } :
  dlc.compute_loop
  case 1 {
    %v = dlc.pop_operand : memref<?xf32>
    scf.for %d = %c0 to %D step %c1 {
      %e = memref.load %v[%d] : memref<?xf32>
      memref.store %e, %y[%d] : memref<?xf32>
    }
    dlc.yield
  }
  func.return
}"""


@pytest.mark.parametrize(("length", "width", "entries"), [(5, 2, 3), (5, None, 5), (4, 4, 1)])
def test_row_is_as_many_entries_as_it_has_vectors(
    length: int, width: int | None, entries: int
) -> None:
    table, target = np.arange(15, dtype=np.float32).reshape(3, 5), np.zeros(5, np.float32)

    result = run(ROWS, table, 1, length, target, vector_length=width)

    assert target.tolist() == [*range(5, 5 + length), *[0] * (5 - length)]
    assert result.counts.data_entries == entries


def test_empty_row_is_one_entry() -> None:
    result = run(ROWS, np.zeros((1, 5), np.float32), 0, 0, np.zeros(1, np.float32))
    assert result.counts.data_entries == 1


@pytest.mark.parametrize(("row", "length"), [(3, 5), (-1, 5), (0, 6)])
def test_row_outside_is_refused(row: int, length: int) -> None:
    message = (
        f"position of dlc.row_stream of length {length} must be inside the memref's shape (3, 5), "
        f"not ({row}, 0)"
    )
    with pytest.raises(IndexError, match=whole(message)):
        run(ROWS, np.zeros((3, 5), np.float32), row, length, np.zeros(9, np.float32))


def test_operand_without_a_callback_is_refused() -> None:
    operand = f"dlc.register_operand %t, ite, %tv : !dlc.tu, {_INDEX}"
    message = "operands of event ite of unit 0 must come with a callback on it, not alone"
    with pytest.raises(CheckError, match=whole(message)):
        launch(unit("t", "%ns") + operand)


def test_second_callback_of_an_event_is_refused() -> None:
    message = "event ite of unit 0 must have one callback, not 2"
    with pytest.raises(CheckError, match=whole(message)):
        launch(unit("t", "%ns") + push("t", "ite", 1) + push("t", "ite", 2))


def test_access_program_without_a_unit_is_refused() -> None:
    with pytest.raises(CheckError, match=whole("access program must have one root unit, not 0")):
        launch("")


@pytest.mark.parametrize("under", [1, 5, -1])
def test_parent_that_is_not_before_the_unit_is_refused(under: int) -> None:
    message = f"parent of unit 1 must be a unit before it, not {under}"
    with pytest.raises(CheckError, match=whole(message)):
        launch(unit("t", "%ns") + unit("s", "%ns", under=under))


def test_parent_of_the_root_is_refused() -> None:
    with pytest.raises(CheckError, match=whole("parent of unit 0 must be a unit before it, not 0")):
        launch(unit("t", "%ns", under=0))


def test_operand_of_a_unit_below_is_refused() -> None:
    message = (
        "operand of event ite of unit 0 must be a stream of the unit it is read on or of one "
        "above, not of unit 1"
    )
    with pytest.raises(CheckError, match=whole(message)):
        launch(unit("t", "%ns") + unit("s", "%ns", under=0) + push("t", "ite", 1, "%sv"))


@pytest.mark.parametrize("event", ["beg", "end"])
def test_operand_of_the_unit_itself_at_its_ends_is_refused(event: str) -> None:
    message = (
        f"operand of event {event} of unit 0 must be a stream of the unit it is read on or of one "
        "above, not of unit 0"
    )
    with pytest.raises(CheckError, match=whole(message)):
        launch(unit("t", "%ns") + push("t", event, 1, "%tv"))


def test_bound_of_a_sibling_is_refused() -> None:
    message = (
        "bound of unit 2 must be a stream of the unit it is read on or of one above, not of unit 1"
    )
    with pytest.raises(CheckError, match=whole(message)):
        launch(unit("t", "%ns") + unit("s", "%ns", under=0) + unit("r", "%sv", under=0))


def test_stream_of_two_siblings_is_refused() -> None:
    stream = f"%a = slc.alu_stream<add> %sv, %rv : {_INDEX}, {_INDEX} -> {_INDEX}"
    message = (
        "operands of slc.alu_stream must be streams of units below one another, "
        "not of units 1 and 2"
    )
    with pytest.raises(CheckError, match=whole(message)):
        launch(unit("t", "%ns") + unit("s", "%ns", under=0) + unit("r", "%ns", under=0) + stream)


def test_unit_with_a_step_of_zero_is_refused() -> None:
    with pytest.raises(CheckError, match=whole("step of dlc.new_tu must be at least 1, not 0")):
        launch(unit("t", "%ns", step="%z"))
