"""Runs a small function written in a test."""

from __future__ import annotations

import re
from typing import Any

from xdsl.parser import Parser

from ember_hw.compiler.dialects import make_context
from ember_hw.compiler.interpreters import InterpreterResult, interpret


def run(text: str, *arguments: Any, **options: Any) -> InterpreterResult:
    """Run the function `f` of a text."""
    module = Parser(make_context(), text).parse_module()
    module.verify()
    return interpret(module, "f", arguments, **options)


def evaluate(op: str, operands: str, result: str, *arguments: Any) -> Any:
    """Evaluate one op on arguments %a, %b, .. of the operand types."""
    types = operands.split(" ") if operands else []
    names = [f"%{letter}: {type_}" for letter, type_ in zip("abcd", types, strict=False)]
    text = f"""
    func.func @f({", ".join(names)}) -> {result} {{
      %r = {op}
      func.return %r : {result}
    }}"""
    (value,) = run(text, *arguments).results
    return value


def whole(message: str) -> str:
    """Return the pattern that matches this message and nothing around it."""
    return f"^{re.escape(message)}$"
