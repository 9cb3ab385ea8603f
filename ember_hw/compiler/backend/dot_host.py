"""The host's part of a nest whose rows are summed across: its code, with sums in place of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ember_hw.compiler.backend.dot_match import Dot
from ember_hw.compiler.backend.execute_code import (
    Case,
    ExecuteCode,
    GetVariable,
    Pop,
    ReadRow,
    SetVariable,
    Statement,
    is_row,
)
from ember_hw.compiler.backend.reduce_host import unpooled_host
from ember_hw.compiler.dialects.au_program import AccessProgram
from ember_hw.compiler.nest import Callback, Nest, Operand

__all__ = ["dot_host"]


def dot_host(program: AccessProgram, nest: Nest, dot: Dot) -> Nest:
    """Return the host's part: all loops, and all of the code but the loop that folds rows.

    A result is a row of one number, which the case of the loop takes in place of its first row, and
    reads in place of the loop.
    """
    assert nest.code is not None
    part = unpooled_host(program, nest)
    callbacks = tuple(_without_rows(callback, dot) for callback in part.callbacks)
    return replace(part, callbacks=callbacks, code=_summed_code(nest.code, dot))


def _without_rows(callback: Callback, dot: Dot) -> Callback:
    """Return a callback that takes no rows, but one result where rows were folded."""
    operands: list[Operand] = []
    takes_result = callback.id == dot.callback.id
    for operand in callback.operands:
        if operand.kind != "row":
            operands.append(operand)
        elif takes_result:
            operands.append(Operand("row", 0, "f32"))
            takes_result = False
    return replace(callback, operands=tuple(operands))


def _summed_code(code: ExecuteCode, dot: Dot) -> ExecuteCode:
    types = code.types()
    cases = tuple(Case(case.id, tuple(_statements(case, types, dot))) for case in code.cases)
    variables = tuple(v for v in code.variables if not is_row(v.type))
    return replace(code, cases=cases, variables=variables)


def _statements(case: Case, types: dict[str, str], dot: Dot) -> Iterator[Statement]:
    """Yield the statements of a case without rows; in place of the loop, what reads its result."""
    result: str | None = None
    for statement in case.body:
        match statement:
            case Pop(name, type_) if is_row(type_):
                if case.id == dot.callback.id and result is None:
                    result = name
                    yield Pop(name, "row<f32>")
            case GetVariable(name) if is_row(types[name]):
                pass
            case SetVariable(_, value) if is_row(types[value]):
                pass
            case _ if statement == dot.loop:
                assert result is not None
                (carried,) = dot.loop.carried
                yield ReadRow(carried.result, result, dot.loop.lower)  # which is 0
            case _:
                yield statement
