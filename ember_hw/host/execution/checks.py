"""What execute code must hold while it runs, as statements of their own: both engines obey them.

`with_checks` puts a check at each statement that could go wrong: an index outside a memory or a
row, a divisor of 0, a step below 1, a row that no token has set. Of an access in a loop, the check
of an index that is the loop's variable, plain or plus a value from outside, and of one from outside
stands before the loop, and counts if the loop runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from ember_hw.compiler.backend.execute_code import (
    Compute,
    Constant,
    ExecuteCode,
    For,
    GetVariable,
    If,
    Load,
    ReadRow,
    Statement,
    Store,
    defines,
    is_row,
    walk,
)

__all__ = [
    "Bound",
    "Check",
    "Checked",
    "CheckedCode",
    "ConvertCheck",
    "DivisorCheck",
    "IndexCheck",
    "RangeCheck",
    "RowCheck",
    "StepCheck",
    "with_checks",
]

_DIVISIONS = ("divsi", "floordivsi", "ceildivsi", "remsi")


@dataclass(frozen=True)
class Bound:
    """What an index must be below: a dimension of a memory, or the elements of a row."""

    name: str
    dimension: int | None

    @property
    def is_row(self) -> bool:
        """Whether it is a row's."""
        return self.dimension is None

    def __str__(self) -> str:
        if self.is_row:
            return f"index into row {self.name!r}"
        return f"index {self.dimension} into argument {self.name!r}"


@dataclass(frozen=True)
class IndexCheck:
    """`index` must be from 0 to below the bound; with a guard, if `guard[0] < guard[1]`."""

    number: int
    bound: Bound
    index: str
    guard: tuple[str, str] | None = None


@dataclass(frozen=True)
class RangeCheck:
    """So must `offset` plus each value of a loop's variable."""

    number: int
    bound: Bound
    lower: str
    upper: str
    step: str
    offset: str | None = None


@dataclass(frozen=True)
class DivisorCheck:
    """A divisor must not be 0."""

    number: int
    divisor: str


@dataclass(frozen=True)
class StepCheck:
    """A step must be at least 1."""

    number: int
    step: str


@dataclass(frozen=True)
class RowCheck:
    """A row variable must have been set; stands behind the statement that gets it."""

    number: int
    row: str


@dataclass(frozen=True)
class ConvertCheck:
    """A float that becomes an integer must fit 64 bits."""

    number: int
    value: str


Check: TypeAlias = IndexCheck | RangeCheck | DivisorCheck | StepCheck | RowCheck | ConvertCheck
#: A statement or a check before one; bodies of statements hold checks, too.
Checked: TypeAlias = Statement | Check


@dataclass(frozen=True)
class CheckedCode:
    """Execute code with its checks.

    Attributes
    ----------
    code : ExecuteCode
        Without them.
    types : dict of str to str
        Of each name.
    entry, end : tuple
        Statements and checks.
    cases : dict of int to tuple
        Likewise, by token.
    errors : tuple of callable
        By number of the check: text of the error from the value found and the limit.
    """

    code: ExecuteCode
    types: dict[str, str]
    entry: tuple[Checked, ...]
    cases: dict[int, tuple[Checked, ...]]
    end: tuple[Checked, ...]
    errors: tuple[Callable[[int, int], str], ...]


def with_checks(code: ExecuteCode) -> CheckedCode:
    """Return the code with a check before each statement that could go wrong."""
    builder = _Builder(code)
    entry = builder.block(code.entry, "entry")
    cases = {case.id: builder.block(case.body, f"case {case.id}") for case in code.cases}
    end = builder.block(code.end, "end")
    return CheckedCode(code, builder.types, entry, cases, end, tuple(builder.errors))


class _Builder:
    """Numbers the checks and writes their errors."""

    def __init__(self, code: ExecuteCode) -> None:
        self.code = code
        self.types = code.types()
        self.constants = {s.name: s.value for s in code.entry if isinstance(s, Constant)}
        self.errors: list[Callable[[int, int], str]] = []
        self.place = ""

    def block(self, statements: tuple[Statement, ...], place: str) -> tuple[Checked, ...]:
        self.place = place
        return tuple(self._block(statements, None))

    def _number(self, text: Callable[[int, int], str]) -> int:
        place = self.place
        self.errors.append(lambda value, limit: f"{text(value, limit)} ({place})")
        return len(self.errors) - 1

    def _bound(self, bound: Bound) -> int:
        return self._number(lambda value, limit: f"{bound} must be in [0, {limit}), not {value}")

    def _block(
        self, statements: tuple[Statement, ...], hoisted: set[tuple[Bound, str]] | None
    ) -> list[Checked]:
        result: list[Checked] = []
        seen: set[tuple[Bound, str]] = set()
        for statement in statements:
            for bound, index in _accesses(statement):
                key = bound, index
                if key not in seen and (hoisted is None or key not in hoisted):
                    result.append(IndexCheck(self._bound(bound), bound, index))
                seen.add(key)
            result += self._checked(statement)
        return result

    def _checked(self, statement: Statement) -> list[Checked]:
        match statement:
            case For():
                return self._loop(statement)
            case If():
                then = tuple(self._block(statement.then, None))
                otherwise = tuple(self._block(statement.otherwise, None))
                return [replace(statement, then=then, otherwise=otherwise)]  # pyright: ignore[reportArgumentType] -- bodies hold checks, see Checked
            case Compute() if statement.operation in _DIVISIONS:
                divisor = statement.operands[1]
                if self.constants.get(divisor):
                    return [statement]
                number = self._number(lambda value, _: f"divisor must be other than 0, not {value}")
                return [DivisorCheck(number, divisor), statement]
            case Compute() if statement.operation == "fptosi":
                number = self._number(
                    lambda _, __: "float that becomes an integer must fit 64 bits, and doesn't"
                )
                return [ConvertCheck(number, statement.operands[0]), statement]
            case GetVariable() if is_row(self.types[statement.name]):
                variable = statement.number
                number = self._number(
                    lambda _, __: f"variable {variable} must be set before it is read, and isn't"
                )
                return [statement, RowCheck(number, statement.name)]
            case _:
                return [statement]

    def _loop(self, loop: For) -> list[Checked]:
        checks: list[Checked] = []
        step = self.constants.get(loop.step)
        if step is None or step < 1:
            number = self._number(
                lambda value, _: f"step of a loop must be at least 1, not {value}"
            )
            checks.append(StepCheck(number, loop.step))
        inside = {name for inner in walk((loop,)) for name in defines(inner)}
        offsets = _offsets(loop, inside)
        hoisted: set[tuple[Bound, str]] = set()
        for statement in loop.body:
            for bound, index in _accesses(statement):
                is_inner_row = bound.is_row and bound.name in inside
                if (bound, index) in hoisted or is_inner_row:
                    continue
                if index not in inside:
                    guard = loop.lower, loop.upper
                    checks.append(IndexCheck(self._bound(bound), bound, index, guard))
                elif index in offsets:
                    number, bounds = self._bound(bound), (loop.lower, loop.upper, loop.step)
                    checks.append(RangeCheck(number, bound, *bounds, offsets[index]))
                else:
                    continue
                hoisted.add((bound, index))
        body = tuple(self._block(loop.body, hoisted))
        return [*checks, replace(loop, body=body)]  # pyright: ignore[reportArgumentType] -- bodies hold checks, see Checked


def _accesses(statement: Statement) -> list[tuple[Bound, str]]:
    """Return each bound that a statement's indices must obey, with the index."""
    match statement:
        case Load() | Store():
            indices = enumerate(statement.indices)
            return [(Bound(statement.symbol, position), index) for position, index in indices]
        case ReadRow():
            return [(Bound(statement.row, None), statement.index)]
        case _:
            return []


def _offsets(loop: For, inside: set[str]) -> dict[str, str | None]:
    """Return the names that are a loop's variable plus a value from outside, with that value."""
    offsets: dict[str, str | None] = {loop.index: None}
    for statement in loop.body:
        if isinstance(statement, Compute) and statement.operation == "addi":
            for variable, other in (statement.operands, statement.operands[::-1]):
                if variable == loop.index and other not in inside and statement.type == "index":
                    offsets[statement.name] = other
    return offsets
