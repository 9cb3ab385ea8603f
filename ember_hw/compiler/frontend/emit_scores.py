"""Writes scores of triples as loops in scf."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects import builtin

from ember_hw.compiler.frontend.emit import MATRIX, VECTOR, index_type, parse_function

_BINARY = {"add": "arith.addf", "sub": "arith.subf", "mul": "arith.mulf"}
_UNARY = {"neg": "arith.negf", "abs": "math.absf", "sqrt": "math.sqrt"}

_SCORES = """
  %D = memref.dim %{first}, %c1 : memref<?x?xf32>
  scf.for %k = %c0 to %N step %c1 {{
    {indices}
    %sum = scf.for %d = %c0 to %D step %c1 iter_args(%acc = %f0) -> (f32) {{
      {loads}
      {expression}
      %next = arith.addf %acc, %{value} : f32
      scf.yield %next : f32
    }}
    {after}
    memref.store %{result}, %out[%k] : memref<?xf32>
  }}
"""


class _Lines:
    """Lines of text, each of which defines a numbered value."""

    def __init__(self, prefix: str) -> None:
        self.lines: list[str] = []
        self.prefix = prefix
        self.known: dict[str, str] = {}

    def value(self, text: str) -> str:
        """Return the name of the value of an op, which is written once."""
        if text not in self.known:
            self.known[text] = f"{self.prefix}{len(self.known)}"
            self.lines.append(f"%{self.known[text]} = {text}")
        return self.known[text]

    def __str__(self) -> str:
        return "\n".join(self.lines)


def emit_scores(facts: Mapping[str, Any], symbols: Sequence[str]) -> builtin.ModuleOp:
    """Write ``out[k] = after(sum over d of expression(rows of triple k at d))``, as `@scores`.

    The function takes `idx0`, `idx1`, .., the tables, `out` and `N`, the number of triples. The sum
    starts at 0.0 and goes in the order of the columns.

    Parameters
    ----------
    facts : mapping
        `expression`, `leaves`, `after` and `index_dtypes`, as `match_scores` gives them.
    symbols : sequence of str
        The symbol of the table, or part of one, that each leaf reads.
    """
    indices = _Lines("r")
    rows: list[tuple[str, str]] = []
    for (_, lookup, *_), symbol in zip(facts["leaves"], symbols, strict=True):
        index = index_type(facts["index_dtypes"][lookup])
        loaded = indices.value(f"memref.load %idx{lookup}[%k] : memref<?x{index}>")
        rows.append((symbol, indices.value(f"arith.index_cast %{loaded} : {index} to index")))
    loads = _Lines("x")
    leaves = [
        loads.value(f"memref.load %{symbol}[%{row}, %d] : memref<?x?xf32>") for symbol, row in rows
    ]
    expression = _Lines("v")
    value = _write(facts["expression"], leaves, expression)
    after = _Lines("g")
    result = "sum"
    for step in facts["after"]:
        result = after.value(f"{_UNARY[step]} %{result} : f32")
    tables = list(dict.fromkeys(symbol for symbol, _ in rows))
    body = _SCORES.format(
        first=tables[0],
        indices=indices,
        loads=loads,
        expression=expression,
        value=value,
        after=after,
        result=result,
    )
    lookups = [
        (f"idx{number}", f"memref<?x{index_type(dtype)}>")
        for number, dtype in enumerate(facts["index_dtypes"])
    ]
    parameters = [
        *lookups,
        *((symbol, MATRIX) for symbol in tables),
        ("out", VECTOR),
        ("N", "index"),
    ]
    return parse_function("scores", parameters, body)


def _write(expression: Sequence[Any], leaves: Sequence[str], lines: _Lines) -> str:
    """Write an expression, operands first; return the name of its value."""
    name: Any = expression[0]
    operands: Any = expression[1:]
    if name == "row":
        return leaves[int(operands[0])]
    values = [_write(operand, leaves, lines) for operand in operands]
    if name == "square":
        values = values * 2
    if name in _UNARY:
        return lines.value(f"{_UNARY[name]} %{values[0]} : f32")
    op = "arith.mulf" if name == "square" else _BINARY[name]
    return lines.value(f"{op} %{values[0]}, %{values[1]} : f32")
