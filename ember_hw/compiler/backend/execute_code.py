"""The execute side's code: the cases of a `dlc.compute_loop` as small typed statement trees.

The code is scalar: a loop over the lanes of vectors is a loop over elements, so neither vectors nor
masks are left and a fold is a loop that carries a value. `extract_code` makes it from `dlc`; the
host makes C or NumPy calls of it (`ember_hw.host.execution`).

Types are `index` (64 bits), `i1`, `i8`, `i16`, `i32`, `i64`, `f32` and `row<f32>`, a row of the row
queue. A name is defined once in the whole code and above its use. The grammar, as `str` prints it:

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
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from ember_hw.compiler.backend.execute_operations import FLOATS, INTEGERS, check_operation
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
    "is_row",
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
        _Verifier(self).run()

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
        return _Verifier(self).run()

    def to_json(self) -> dict[str, Any]:
        """Return the code as JSON values; `from_json` reads them."""
        encoded: dict[str, Any] = _encode(self)
        return encoded

    @staticmethod
    def from_json(value: Any) -> ExecuteCode:
        """Return the code that `to_json` wrote; ProgramError if it isn't code."""
        decoded: Any = _decode(value)
        if not isinstance(decoded, ExecuteCode):
            raise ProgramError(
                f"execute code must be an object of kind 'ExecuteCode', not {value!r}"
            )
        return decoded


def is_row(type_: str) -> bool:
    """Whether a type is a row's."""
    return type_.startswith("row<")


def row_element(type_: str) -> str:
    """Return the element type of a row's type."""
    return type_[4:-1]


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


_SCALARS = (*INTEGERS, *FLOATS)


class _Verifier:
    """Checks code statement by statement."""

    def __init__(self, code: ExecuteCode) -> None:
        self.code = code
        self.types: dict[str, str] = {}
        self.visible: set[str] = set()
        self.place = "entry"
        self.memories = {memory.symbol: memory for memory in code.memories}
        self.variables = {variable.number: variable for variable in code.variables}
        self.popping = False
        self.popped: set[str] = set()

    def run(self) -> dict[str, str]:
        for what, known, given in (
            ("symbols of memories", self.memories, [m.symbol for m in self.code.memories]),
            ("numbers of variables", self.variables, [v.number for v in self.code.variables]),
            ("case ids", {c.id for c in self.code.cases}, [c.id for c in self.code.cases]),
        ):
            if len(known) != len(given):
                raise ProgramError(f"{what} must be distinct, not {given!r}")
        for memory in self.code.memories:
            if memory.element not in _SCALARS or memory.rank < 0:
                self.refuse(f"memory {memory.symbol!r}", "of a scalar type", memory)
        self.block(self.code.entry)
        for variable in self.code.variables:
            self.variable(variable)
        for case in self.code.cases:
            self.place, self.popping = f"case {case.id}", True
            self.popped = set()
            self.inner(case.body)
        self.place, self.popping = "end", False
        self.inner(self.code.end)
        return self.types

    def refuse(self, what: str, rule: str, found: object) -> None:
        raise ProgramError(f"{what} must be {rule}, not {found!r} ({self.place} of execute code)")

    def variable(self, variable: Variable) -> None:
        what = f"type of variable {variable.number}"
        if is_row(variable.type):
            if row_element(variable.type) not in _SCALARS or variable.initial is not None:
                self.refuse(what, "a scalar or, without initial value, a row", variable.type)
        elif variable.type not in _SCALARS:
            self.refuse(what, "a scalar or a row", variable.type)
        if variable.initial is not None:
            self.use(variable.initial, variable.type)

    def inner(self, statements: tuple[Statement, ...]) -> None:
        outer = set(self.visible)
        self.block(statements)
        self.visible = outer

    def define(self, name: str, type_: str) -> None:
        if not name.isidentifier() or not name.isascii():
            self.refuse("name", "an identifier", name)
        if name in self.types:
            self.refuse("name", "defined once", name)
        self.types[name] = type_
        self.visible.add(name)

    def use(self, name: str, *legal: str) -> str:
        if name not in self.visible:
            self.refuse("name", "defined above its use", name)
        type_ = self.types[name]
        if legal and type_ not in legal:
            self.refuse(f"type of {name!r}", " or ".join(legal), type_)
        return type_

    def memory(self, symbol: str, indices: tuple[str, ...] | None = None) -> Memory:
        memory = self.memories.get(symbol)
        if memory is None:
            self.refuse("symbol", f"one of {', '.join(self.memories) or 'no memories'}", symbol)
        assert memory is not None, "refused above"
        if indices is not None:
            if len(indices) != memory.rank:
                self.refuse(f"number of indices of {symbol!r}", str(memory.rank), len(indices))
            for index in indices:
                self.use(index, "index")
        return memory

    def number(self, number: int) -> Variable:
        variable = self.variables.get(number)
        if variable is None:
            self.refuse("variable", "a declared one", number)
        assert variable is not None, "refused above"
        return variable

    def block(self, statements: tuple[Statement, ...]) -> None:
        for statement in statements:
            self.popping = self.popping and isinstance(statement, Pop | Constant)
            self.statement(statement)

    def statement(self, statement: Statement) -> None:
        match statement:
            case Constant():
                is_right = int if statement.type in INTEGERS else float
                if statement.type not in _SCALARS or not isinstance(statement.value, is_right):
                    self.refuse(f"value of {statement.name!r}", statement.type, statement.value)
                self.define(statement.name, statement.type)
            case Extent():
                rank = self.memory(statement.symbol).rank
                if not 0 <= statement.dimension < rank:
                    what = f"dimension of {statement.symbol!r}"
                    self.refuse(what, f"from 0 to {rank - 1}", statement.dimension)
                self.define(statement.name, "index")
            case Scalar():
                self.define(statement.name, "index")
            case Compute():
                types = tuple(self.use(operand) for operand in statement.operands)
                problem = check_operation(statement.operation, statement.type, types)
                if problem is not None:
                    self.refuse(f"operation of {statement.name!r}", *problem)
                self.define(statement.name, statement.type)
            case Load():
                memory = self.memory(statement.symbol, statement.indices)
                self.define(statement.name, memory.element)
            case Store():
                memory = self.memory(statement.symbol, statement.indices)
                if not memory.is_written:
                    self.refuse(
                        "memory stored to", "one that is declared as written", memory.symbol
                    )
                self.use(statement.value, memory.element)
            case Pop():
                if not self.popping:
                    self.refuse("pop", "among the first statements of a case", statement.name)
                if is_row(statement.type):
                    self.popped.add(statement.name)
                elif statement.type not in _SCALARS:
                    self.refuse(f"type of {statement.name!r}", "a scalar or a row", statement.type)
                self.define(statement.name, statement.type)
            case ReadRow():
                row = self.use(statement.row)
                self.use(statement.index, "index")
                if not is_row(row):
                    self.refuse(f"type of {statement.row!r}", "a row", row)
                self.define(statement.name, row_element(row))
            case GetVariable():
                self.define(statement.name, self.number(statement.number).type)
            case SetVariable():
                variable = self.number(statement.number)
                self.use(statement.value, variable.type)
                if is_row(variable.type) and statement.value not in self.popped:
                    what = f"value of row variable {statement.number}"
                    self.refuse(what, "a row that its case pops", statement.value)
            case Increment():
                type_ = self.number(statement.number).type
                if type_ not in INTEGERS or type_ == "i1":
                    what = f"type of incremented variable {statement.number}"
                    self.refuse(what, "an integer's", type_)
            case For():
                self.loop(statement)
            case If():
                self.use(statement.condition, "i1")
                self.branches(statement)

    def loop(self, loop: For) -> None:
        for bound in (loop.lower, loop.upper, loop.step):
            self.use(bound, "index")
        types = [self.use(carried.initial) for carried in loop.carried]
        outer = set(self.visible)
        self.define(loop.index, "index")
        for carried, type_ in zip(loop.carried, types, strict=True):
            self.define(carried.argument, type_)
        self.block(loop.body)
        for carried, type_ in zip(loop.carried, types, strict=True):
            self.use(carried.following, type_)
        self.visible = outer
        for carried, type_ in zip(loop.carried, types, strict=True):
            self.define(carried.result, type_)

    def branches(self, statement: If) -> None:
        types: list[str] = []
        outer = set(self.visible)
        self.block(statement.then)
        types = [self.use(merged.if_true) for merged in statement.merged]
        self.visible = set(outer)
        self.block(statement.otherwise)
        for merged, type_ in zip(statement.merged, types, strict=True):
            self.use(merged.if_false, type_)
        self.visible = outer
        for merged, type_ in zip(statement.merged, types, strict=True):
            self.define(merged.name, type_)


_KINDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        Memory,
        Variable,
        Constant,
        Extent,
        Scalar,
        Compute,
        Load,
        Store,
        Pop,
        ReadRow,
        GetVariable,
        SetVariable,
        Increment,
        Carried,
        For,
        Merged,
        If,
        Case,
        ExecuteCode,
    )
}


def _encode(value: Any) -> Any:
    if isinstance(value, float):
        return {"float": value.hex()}  # JSON has neither infinity nor NaN
    if isinstance(value, tuple):
        return [_encode(item) for item in value]
    if type(value).__name__ in _KINDS:
        members = {field.name: _encode(getattr(value, field.name)) for field in fields(value)}
        return {"kind": type(value).__name__, **members}
    return value


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_decode(item) for item in value)
    if not isinstance(value, dict):
        return value
    members = dict(value)
    if set(members) == {"float"}:
        return float.fromhex(members["float"])
    kind = members.pop("kind", None)
    if kind not in _KINDS:
        raise ProgramError(f"kind of execute code must be one of {', '.join(_KINDS)}, not {kind!r}")
    try:
        return _KINDS[kind](**{name: _decode(item) for name, item in members.items()})
    except TypeError as error:
        raise ProgramError(f"members of execute code {kind!r} must fit: {error}") from error
