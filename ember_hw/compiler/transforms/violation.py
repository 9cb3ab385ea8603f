"""What a soundness check reports: a rule that IR breaks, with the op and its place."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Operation


@dataclass(frozen=True)
class Violation:
    """
    A broken rule.

    Parameters
    ----------
    op : Operation
        The op that breaks it.
    message : str
        "<thing> must be <rule>, not <found>".
    """

    op: Operation
    message: str

    def __str__(self) -> str:
        return f"{describe(self.op)}: {self.message}"


def describe(op: Operation) -> str:
    """Return an op's name, result and place in the text: `'slc.for' (%r, k.mlir:12:4)`."""
    details: list[str] = []
    if op.results and op.results[0].name_hint:
        details.append(f"%{op.results[0].name_hint}")
    if isinstance(op.location, FileLineColLoc):
        location = op.location
        details.append(f"{location.filename.data}:{location.line.data}:{location.column.data}")
    return f"'{op.name}' ({', '.join(details)})" if details else f"'{op.name}'"
