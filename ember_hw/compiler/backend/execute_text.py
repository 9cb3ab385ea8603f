"""Execute code as text, for people: see the grammar in `execute_code`."""

from __future__ import annotations

from collections.abc import Iterator

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
    Pop,
    ReadRow,
    Scalar,
    SetVariable,
    Statement,
    Store,
)

__all__ = ["code_text", "statement_text"]


def code_text(code: ExecuteCode) -> str:
    """Return the code as text, a line for each statement."""
    types = code.types()
    lines: list[str] = []
    for memory in code.memories:
        written = " written" if memory.is_written else ""
        lines.append(f"memory {memory.symbol} : {memory.element}[{memory.rank}]{written}")
    for variable in code.variables:
        initial = "" if variable.initial is None else f" = {variable.initial}"
        lines.append(f"variable {variable.number} : {variable.type}{initial}")
    lines += ["entry:", *_block(code.entry, types, 1)]
    for case in code.cases:
        lines += [f"case {case.id}:", *_block(case.body, types, 1)]
    if code.end:
        lines += ["end:", *_block(code.end, types, 1)]
    return "\n".join(lines) + "\n"


def _block(statements: tuple[Statement, ...], types: dict[str, str], depth: int) -> Iterator[str]:
    for statement in statements:
        yield "  " * depth + statement_text(statement, types)
        match statement:
            case For():
                yield from _block(statement.body, types, depth + 1)
            case If():
                yield from _block(statement.then, types, depth + 1)
                if statement.otherwise:
                    yield "  " * depth + "else:"
                    yield from _block(statement.otherwise, types, depth + 1)
            case _:
                pass


def statement_text(statement: Statement, types: dict[str, str]) -> str:
    """Return one statement, without the statements in it."""
    match statement:
        case Store():
            return f"store {statement.value} to {_place(statement.symbol, statement.indices)}"
        case SetVariable():
            return f"variable {statement.number} = {statement.value}"
        case Increment():
            return f"variable {statement.number} += {statement.amount}"
        case For():
            carried = ", ".join(
                f"{c.argument} = {c.initial} then {c.following} give {c.result}"
                for c in statement.carried
            )
            head = f"for {statement.index} = {statement.lower} to {statement.upper}"
            head += f" step {statement.step}"
            return f"{head} carry {carried}:" if carried else f"{head}:"
        case If():
            merged = ", ".join(
                f"{m.name} = {m.if_true} else {m.if_false}" for m in statement.merged
            )
            return f"if {statement.condition}{f' give {merged}' if merged else ''}:"
        case Constant():
            expression = str(statement.value)
        case Extent():
            expression = f"extent {statement.symbol}, {statement.dimension}"
        case Scalar():
            expression = f"scalar {statement.symbol}"
        case Compute():
            expression = f"{statement.operation} {', '.join(statement.operands)}"
        case Load():
            expression = f"load {_place(statement.symbol, statement.indices)}"
        case Pop():
            expression = "pop"
        case ReadRow():
            expression = f"read {statement.row}[{statement.index}]"
        case GetVariable():
            expression = f"variable {statement.number}"
    return f"{statement.name} : {types[statement.name]} = {expression}"


def _place(symbol: str, indices: tuple[str, ...]) -> str:
    return f"{symbol}[{', '.join(indices)}]"
