from __future__ import annotations

import json
import re
from typing import Any

import pytest

from ember_hw.compiler.backend.execute_code import (
    Carried,
    Case,
    Compute,
    Constant,
    ExecuteCode,
    Extent,
    For,
    GetVariable,
    If,
    Increment,
    Load,
    Memory,
    Merged,
    Pop,
    ReadRow,
    Scalar,
    SetVariable,
    Statement,
    Store,
    Variable,
)
from ember_hw.errors import ProgramError

MEMORIES = (Memory("out", "f32", 2, True), Memory("tab", "f32", 1))
VARIABLES = (Variable(0, "index", "c0"), Variable(1, "row<f32>"), Variable(2, "f32"))
ENTRY = (
    Constant("c0", "index", 0),
    Constant("f0", "f32", float("-inf")),
    Constant("yes", "i1", 1),
    Extent("D", "out", 1),
    Scalar("n", "N"),
)
BODY: tuple[Statement, ...] = (
    Pop("b", "index"),
    Pop("row", "row<f32>"),
    SetVariable(1, "row"),
    GetVariable("kept", 1),
    For(
        "d", "c0", "D", "n",
        (
            ReadRow("x", "kept", "d"),
            Compute("sum", "f32", "addf", ("acc", "x")),
            Store("out", ("b", "d"), "sum"),
        ),
        (Carried("acc", "f0", "sum", "total"),),
    ),
    If(
        "yes",
        (Load("y", "tab", ("b",)), Increment(0, 1)),
        (SetVariable(2, "total"),),
        (Merged("either", "y", "f0"),),
    ),
)  # fmt: skip
CODE = ExecuteCode(
    MEMORIES, VARIABLES, ENTRY, (Case(1, BODY),), (GetVariable("last", 2),), no_alias=True
)


def test_code_is_printed_a_line_a_statement() -> None:
    assert str(CODE) == (
        """\
memory out : f32[2] written
memory tab : f32[1]
variable 0 : index = c0
variable 1 : row<f32>
variable 2 : f32
entry:
  c0 : index = 0
  f0 : f32 = -inf
  yes : i1 = 1
  D : index = extent out, 1
  n : index = scalar N
case 1:
  b : index = pop
  row : row<f32> = pop
  variable 1 = row
  kept : row<f32> = variable 1
  for d = c0 to D step n carry acc = f0 then sum give total:
    x : f32 = read kept[d]
    sum : f32 = addf acc, x
    store sum to out[b, d]
  if yes give either = y else f0:
    y : f32 = load tab[b]
    variable 0 += 1
  else:
    variable 2 = total
end:
  last : f32 = variable 2
"""
    )


def test_code_survives_json() -> None:
    assert ExecuteCode.from_json(json.loads(json.dumps(CODE.to_json()))) == CODE


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "execute code must be an object of kind 'ExecuteCode', not []"),
        ({"kind": "Kode"}, "kind of execute code must be one of .*, not 'Kode'"),
        (
            {"kind": "Memory", "symbol": "a"},
            "members of execute code 'Memory' must fit: .*missing 2 required.*",
        ),
        (
            {"kind": "ExecuteCode", "entry": [3]},
            "statement must be one of execute code, not 3 .*",
        ),
    ],
)
def test_json_that_is_no_code_is_refused(value: Any, message: str) -> None:
    with pytest.raises(ProgramError, match=f"^{message.replace('[]', '.*')}$"):
        ExecuteCode.from_json(value)


def refused(
    *body: Statement,
    entry: tuple[Statement, ...] = (),
    end: tuple[Statement, ...] = (),
    **parts: Any,
) -> str:
    parts = {"memories": MEMORIES, "variables": VARIABLES, **parts}
    with pytest.raises(ProgramError) as raised:
        ExecuteCode(entry=(*ENTRY, *entry), cases=(Case(1, body),), end=end, **parts)
    return str(raised.value)


IN_CASE = "(case 1 of execute code)"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            (Compute("v", "f32", "addf", ("f0", "w")),),
            f"name must be defined above its use, not 'w' {IN_CASE}",
        ),
        ((Constant("c0", "index", 1),), f"name must be defined once, not 'c0' {IN_CASE}"),
        ((Constant("1", "index", 1),), f"name must be an identifier, not '1' {IN_CASE}"),
        (
            (Load("v", "tab", ("f0",)),),
            f"type of 'f0' must be index, not 'f32' {IN_CASE}",
        ),
        ((Load("v", "bat", ()),), f"symbol must be one of out, tab, not 'bat' {IN_CASE}"),
        (
            (Load("v", "tab", ("c0", "c0")),),
            f"number of indices of 'tab' must be 1, not 2 {IN_CASE}",
        ),
        (
            (Store("tab", ("c0",), "f0"),),
            f"memory stored to must be one that is declared as written, not 'tab' {IN_CASE}",
        ),
        ((Extent("v", "tab", 1),), f"dimension of 'tab' must be from 0 to 0, not 1 {IN_CASE}"),
        ((Constant("v", "f32", 1),), f"value of 'v' must be f32, not 1 {IN_CASE}"),
        (
            (Compute("v", "f32", "addi", ("f0", "f0")),),
            "operation of 'v' must be one on values of its types, not 'addi of f32, f32 to f32' "
            f"{IN_CASE}",
        ),
        (
            (Compute("v", "f32", "sinh", ("f0",)),),
            f"operation of 'v' must be a known one, not 'sinh' {IN_CASE}",
        ),
        (
            (GetVariable("v", 2), Pop("b", "index")),
            f"pop must be among the first statements of a case, not 'b' {IN_CASE}",
        ),
        (
            (Pop("v", "f64"),),
            f"type of 'v' must be an integer, f16, bf16, f32 or a row, not 'f64' {IN_CASE}",
        ),
        ((ReadRow("v", "f0", "c0"),), f"type of 'f0' must be a row, not 'f32' {IN_CASE}"),
        ((GetVariable("v", 9),), f"variable must be a declared one, not 9 {IN_CASE}"),
        (
            (Pop("r", "row<f32>"), GetVariable("v", 1), SetVariable(1, "v")),
            f"value of row variable 1 must be a row that its case pops, not 'v' {IN_CASE}",
        ),
        (
            (Increment(2, 1),),
            f"type of incremented variable 2 must be an integer's, not 'f32' {IN_CASE}",
        ),
    ],
)
def test_statement_that_breaks_a_rule_is_refused(body: tuple[Statement, ...], message: str) -> None:
    assert refused(*body) == message


def test_declarations_that_break_a_rule_are_refused() -> None:
    place = "(entry of execute code)"
    assert refused(memories=(*MEMORIES, MEMORIES[0])) == (
        "symbols of memories must be distinct, not ['out', 'tab', 'out']"
    )
    assert refused(memories=(Memory("a", "f7", 1),), variables=()).startswith(
        "memory 'a' must be of a scalar type, not Memory("
    )
    assert refused(variables=(Variable(0, "f7"),)) == (
        f"type of variable 0 must be a scalar or a row, not 'f7' {place}"
    )
    assert refused(variables=(Variable(0, "row<f32>", "c0"),)) == (
        "type of variable 0 must be a scalar or, without initial value, a row, "
        f"not 'row<f32>' {place}"
    )


def test_names_of_a_case_end_with_it() -> None:
    message = "name must be defined above its use, not 'v' (end of execute code)"
    assert (
        refused(Constant("v", "index", 1), end=(Increment(0, 1), Load("w", "tab", ("v",))))
        == message
    )


def test_case_that_isn_t_there_is_refused() -> None:
    message = "token must be a case of the execute code (1), not 2"
    with pytest.raises(ProgramError, match=f"^{re.escape(message)}$"):
        CODE.case(2)
