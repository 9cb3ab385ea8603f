"""The rules of execute code: names defined once and above their use, types that fit."""

from __future__ import annotations

from ember_hw.compiler.backend.execute_code import (
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
    Pop,
    ReadRow,
    Scalar,
    SetVariable,
    Statement,
    Store,
    Variable,
    is_row,
    read_type,
    row_element,
)
from ember_hw.compiler.backend.execute_operations import (
    FLOATS,
    HALVES,
    INTEGERS,
    check_operation,
)
from ember_hw.errors import ProgramError

__all__ = ["verify"]

_SCALARS = (*INTEGERS, *FLOATS, *HALVES)
#: Scalars that a bundle can hold.
_POPPED = (*INTEGERS, *HALVES, "f32")


def verify(code: ExecuteCode) -> dict[str, str]:
    """Return the type of each name; ProgramError if a statement breaks a rule."""
    return _Verifier(code).run()


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
                kind = int if statement.type in INTEGERS else float
                if statement.type not in _SCALARS or type(statement.value) is not kind:
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
                elif statement.type not in _POPPED:
                    rule = "an integer, f16, bf16, f32 or a row"
                    self.refuse(f"type of {statement.name!r}", rule, statement.type)
                self.define(statement.name, statement.type)
            case ReadRow():
                row = self.use(statement.row)
                self.use(statement.index, "index")
                if not is_row(row):
                    self.refuse(f"type of {statement.row!r}", "a row", row)
                self.define(statement.name, read_type(row))
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
            case _:  # pyright: ignore[reportUnnecessaryComparison] -- what JSON brings has any type
                self.refuse("statement", "one of execute code", statement)

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
