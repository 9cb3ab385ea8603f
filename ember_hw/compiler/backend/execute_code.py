"""The execute side's code: the cases of a `dlc.compute_loop` as small typed statement trees.

The code is scalar: a loop over the lanes of vectors is a loop over elements, so neither vectors nor
masks are left and a fold is a loop that carries a value. `extract_code` makes it from `dlc`; the
host makes C or NumPy calls of it (`ember_hw.host.execution`).

Types are `index` (64 bits), `i1`, `i8`, `i16`, `i32`, `i64`, `f16`, `bf16`, `f32`, `f64`, and
``row<f32>`` (or of another float), a row of the row queue. What is read of a quantised row,
``row<q8f32>``, is the f32 that its code, scale and bias say; no variable keeps one. `f16` and
`bf16` are stored, moved and converted; nothing is computed in them. Scalars of the queues have 32
bits: no f64 is popped. A name is defined once in the whole code and above its use. The grammar, as
`str` prints it:

```text
code      = memory* variable* "entry:" statement* case* "end:" statement*
memory    = "memory" SYMBOL ":" TYPE "[" RANK "]" ["written"]
variable  = "variable" NUMBER ":" TYPE ["=" NAME]
case      = "case" ID ":" statement*
statement = NAME ":" TYPE "=" expression
          | "store" NAME "to" SYMBOL "[" names "]"
          | "variable" NUMBER "=" NAME          | "variable" NUMBER "+=" INTEGER
          | "for" NAME "=" NAME "to" NAME "step" NAME ["carry" carried] ":" statement*
          | "if" NAME ["give" merged] ":" statement* ["else:" statement*]
carried   = NAME "=" NAME "then" NAME "give" NAME ("," ..)
merged    = NAME "=" NAME "else" NAME ("," ..)
expression = LITERAL | OPERATION names | "extent" SYMBOL "," DIMENSION | "scalar" SYMBOL
          | "load" SYMBOL "[" names "]" | "read" ROW "[" NAME "]" | "pop" | "variable" NUMBER
```

`entry` runs once before the first token, `end` once after the last. A loop's carried value is its
initial one in the first iteration, then what `then` names; `give` names it behind the loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from ember_hw.compiler.quantized_rows import FORMATS
from ember_hw.errors import ProgramError

__all__ = [
    "Carried",
    "Case",
    "Compute",
    "Constant",
    "ExecuteCode",
    "Extent",
    "For",
    "GetVariable",
    "If",
    "Increment",
    "Load",
    "Memory",
    "Merged",
    "Pop",
    "ReadRow",
    "Scalar",
    "SetVariable",
    "Statement",
    "Store",
    "Variable",
    "defines",
    "is_row",
    "read_type",
    "reads",
    "row_element",
    "walk",
]


@dataclass(frozen=True)
class Memory:
    """A memref argument, or scratch memory, that the code reads or writes."""

    symbol: str
    element: str
    rank: int
    is_written: bool = False


@dataclass(frozen=True)
class Variable:
    """A register of the execute side, kept from token to token.

    `initial` names a value of `entry`; None leaves it without a value until a token sets it.
    """

    number: int
    type: str
    initial: str | None = None


@dataclass(frozen=True)
class Constant:
    """A constant."""

    name: str
    type: str
    value: int | float


@dataclass(frozen=True)
class Extent:
    """The size of one dimension of a memory; an index."""

    name: str
    symbol: str
    dimension: int


@dataclass(frozen=True)
class Scalar:
    """An index argument of the function."""

    name: str
    symbol: str


@dataclass(frozen=True)
class Compute:
    """An operation on values, see `execute_operations`."""

    name: str
    type: str
    operation: str
    operands: tuple[str, ...]


@dataclass(frozen=True)
class Load:
    """An element of a memory."""

    name: str
    symbol: str
    indices: tuple[str, ...]


@dataclass(frozen=True)
class Store:
    """A write of one element of a memory."""

    symbol: str
    indices: tuple[str, ...]
    value: str


@dataclass(frozen=True)
class Pop:
    """The case's next operand; pops stand first in their case."""

    name: str
    type: str


@dataclass(frozen=True)
class ReadRow:
    """An element of a popped or kept row."""

    name: str
    row: str
    index: str


@dataclass(frozen=True)
class GetVariable:
    """The value that a variable has now."""

    name: str
    number: int


@dataclass(frozen=True)
class SetVariable:
    """A new value of a variable; of a row variable, a row that this case has popped."""

    number: int
    value: str


@dataclass(frozen=True)
class Increment:
    """An addition of a constant to an integer variable."""

    number: int
    amount: int


@dataclass(frozen=True)
class Carried:
    """A value that a loop hands from iteration to iteration."""

    argument: str
    initial: str
    following: str
    result: str


@dataclass(frozen=True)
class For:
    """A loop over an index; the step must be at least 1 when it runs."""

    index: str
    lower: str
    upper: str
    step: str
    body: tuple[Statement, ...]
    carried: tuple[Carried, ...] = ()


@dataclass(frozen=True)
class Merged:
    """A value that either branch of an `If` gives."""

    name: str
    if_true: str
    if_false: str


@dataclass(frozen=True)
class If:
    """One of two branches."""

    condition: str
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()
    merged: tuple[Merged, ...] = ()


Statement: TypeAlias = (
    Constant
    | Extent
    | Scalar
    | Compute
    | Load
    | Store
    | Pop
    | ReadRow
    | GetVariable
    | SetVariable
    | Increment
    | For
    | If
)


@dataclass(frozen=True)
class Case:
    """What one control token runs."""

    id: int
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class ExecuteCode:
    """The execute side of one nest.

    Parameters
    ----------
    memories : tuple of Memory
        What `entry`, the cases and `end` read or write.
    variables : tuple of Variable
        Registers of the execute side.
    entry : tuple of statements
        Run once at the beginning; each case may use its names.
    cases : tuple of Case
        By token.
    end : tuple of statements
        Run once behind the last token.
    no_alias : bool
        Whether distinct memories are known not to overlap.

    Raises
    ------
    ProgramError
        A statement breaks a rule: a name that isn't defined above its use or is defined twice, a
        wrong type, a symbol or variable that isn't declared.
    """

    memories: tuple[Memory, ...] = ()
    variables: tuple[Variable, ...] = ()
    entry: tuple[Statement, ...] = ()
    cases: tuple[Case, ...] = ()
    end: tuple[Statement, ...] = ()
    no_alias: bool = False

    def __post_init__(self) -> None:
        self.types()

    def __str__(self) -> str:
        from ember_hw.compiler.backend.execute_text import code_text

        return code_text(self)

    def case(self, number: int) -> Case:
        """Return the case of a token; ProgramError if there is none."""
        for case in self.cases:
            if case.id == number:
                return case
        raise ProgramError(
            f"token must be a case of the execute code "
            f"({', '.join(str(case.id) for case in self.cases) or 'none'}), not {number!r}"
        )

    def types(self) -> dict[str, str]:
        """Return the type of each name."""
        from ember_hw.compiler.backend.execute_verify import verify

        return verify(self)

    def to_json(self) -> dict[str, Any]:
        """Return the code as JSON values; `from_json` reads them."""
        from ember_hw.compiler.backend.execute_json import encode

        return encode(self)

    @staticmethod
    def from_json(value: Any) -> ExecuteCode:
        """Return the code that `to_json` wrote; ProgramError if it isn't code."""
        from ember_hw.compiler.backend.execute_json import decode

        return decode(value)


def is_row(type_: str) -> bool:
    """Whether a type is a row's."""
    return type_.startswith("row<")


def row_element(type_: str) -> str:
    """Return the element type of a row's type."""
    return type_[4:-1]


def read_type(type_: str) -> str:
    """Return the type of what is read of a row: a number, where the row is of codes."""
    element = row_element(type_)
    return "f32" if element in FORMATS else element


def walk(statements: tuple[Statement, ...]) -> Iterator[Statement]:
    """Yield statements in text order, those of bodies behind the statement that holds them."""
    for statement in statements:
        yield statement
        match statement:
            case For():
                yield from walk(statement.body)
            case If():
                yield from walk(statement.then)
                yield from walk(statement.otherwise)
            case _:
                pass


def reads(statement: Statement) -> tuple[str, ...]:
    """Return the names that a statement itself reads, not the statements in it."""
    match statement:
        case Compute():
            return statement.operands
        case Load():
            return statement.indices
        case Store():
            return (*statement.indices, statement.value)
        case ReadRow():
            return (statement.row, statement.index)
        case SetVariable():
            return (statement.value,)
        case For():
            carried = [name for c in statement.carried for name in (c.initial, c.following)]
            return (statement.lower, statement.upper, statement.step, *carried)
        case If():
            merged = [name for m in statement.merged for name in (m.if_true, m.if_false)]
            return (statement.condition, *merged)
        case _:
            return ()


def defines(statement: Statement) -> tuple[str, ...]:
    """Return the names that a statement itself defines."""
    match statement:
        case Store() | SetVariable() | Increment():
            return ()
        case For():
            carried = [name for c in statement.carried for name in (c.argument, c.result)]
            return (statement.index, *carried)
        case If():
            return tuple(merged.name for merged in statement.merged)
        case _:
            return (statement.name,)
