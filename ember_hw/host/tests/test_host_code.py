from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from ember_hw.compiler.backend.execute_code import (
    Carried,
    Compute,
    Constant,
    ExecuteCode,
    Extent,
    For,
    Load,
    Memory,
    Scalar,
    Statement,
)
from ember_hw.errors import ProgramError
from ember_hw.host.host_code import run_host_code

OFFSETS = np.array([0, 3, 3, 7])
ARRAYS = {"off": OFFSETS}
ZERO, ONE = Constant("c0", "index", 0), Constant("c1", "index", 1)


def run(*statements: Statement, **scalars: int) -> dict[str, int]:
    code = ExecuteCode((Memory("off", "index", 1),), entry=(ZERO, ONE, *statements))
    return run_host_code(code, ARRAYS, scalars)


def binary(operation: str, left: int, right: int) -> int:
    operands = Constant("a", "index", left), Constant("b", "index", right)
    return run(*operands, Compute("v", "index", operation, ("a", "b")))["v"]


@pytest.mark.parametrize(
    ("operation", "left", "right", "expected"),
    [
        ("addi", 2, 3, 5),
        ("subi", 2, 3, -1),
        ("muli", 2, 3, 6),
        ("divsi", -7, 2, -3),
        ("divsi", 7, 2, 3),
        ("floordivsi", -7, 2, -4),
        ("ceildivsi", 7, 2, 4),
        ("remsi", -7, 2, -1),
        ("remsi", 7, -2, 1),
        ("andi", 6, 3, 2),
        ("ori", 6, 3, 7),
        ("xori", 6, 3, 5),
        ("maxsi", 2, 3, 3),
        ("minsi", 2, 3, 2),
    ],
)
def test_arithmetic(operation: str, left: int, right: int, expected: int) -> None:
    assert binary(operation, left, right) == expected


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("eq", [2, 1, 2]),
        ("ne", [1, 2, 1]),
        ("slt", [1, 2, 2]),
        ("sle", [1, 1, 2]),
        ("sgt", [2, 2, 1]),
        ("sge", [2, 1, 1]),
    ],
)
def test_comparison_and_selection(predicate: str, expected: list[int]) -> None:
    two, found = Constant("two", "index", 2), list[int]()
    for left in (0, 1, 2):
        found.append(
            run(
                two,
                Constant("a", "index", left),
                Compute("holds", "i1", f"cmpi_{predicate}", ("a", "c1")),
                Compute("v", "index", "select", ("holds", "c1", "two")),
            )["v"]
        )
    assert found == expected


def counting(lower: str, upper: str, name: str = "p", initial: str = "n") -> For:
    """A loop that counts its turns."""
    add = Compute(f"{name}_more", "index", "addi", (f"{name}_n", "c1"))
    carried = Carried(f"{name}_n", initial, f"{name}_more", f"{name}_count")
    return For(name, lower, upper, "c1", (add,), (carried,))


def test_loops_count_what_index_arrays_say() -> None:
    body = (
        Compute("i1", "index", "addi", ("i", "c1")),
        Load("s", "off", ("i",)),
        Load("e", "off", ("i1",)),
        counting("s", "e"),
    )
    loop = For("i", "c0", "N", "c1", body, (Carried("n", "c0", "p_count", "count"),))
    values = run(Scalar("N", "N"), Extent("rows", "off", 0), loop, N=3)
    assert (values["count"], values["rows"], values["N"]) == (7, 4, 3)


def test_a_loop_without_turns_hands_on_what_it_gets() -> None:
    assert run(counting("c1", "c0", initial="c1"))["p_count"] == 1


def test_values_of_memory_are_converted() -> None:
    values = run(Load("s", "off", ("c1",)), Compute("w", "i32", "convert", ("s",)))
    assert values["w"] == 3


def refused(*statements: Statement) -> str:
    with pytest.raises(ProgramError) as error:
        run(*statements)
    return str(error.value)


def test_a_load_outside_its_array_is_refused() -> None:
    far: Any = Constant("far", "index", 4)
    assert refused(far, Load("s", "off", ("far",))) == (
        "position of a load of 'off' by the host must be inside its shape (4,), not (4,)"
    )


def test_other_code_is_refused() -> None:
    message = refused(Constant("f", "f32", 1.0))
    assert re.match(
        r"host code must be of loops, loads and arithmetic on integers, not Constant\(", message
    )
