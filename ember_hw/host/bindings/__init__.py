"""Bindings: from a user's call to the arrays of a program, one module for each kind of program.

A program says its kind in ``model["kind"]``; devices know nothing else of what it computes. To add
a kind, write a module with the functions of `Binding` and name it in `BINDINGS`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

from ember_hw.compiler.program import Program
from ember_hw.errors import ProgramError
from ember_hw.host.bindings.request import Binding, Output, Request

__all__ = ["BINDINGS", "Binding", "Output", "Request", "binding_of"]

#: Module of each kind. Imported when a program of the kind is first used.
BINDINGS: dict[str, str] = {
    "aggregation": "ember_hw.host.bindings.aggregation",
    "block_attention": "ember_hw.host.bindings.block_attention",
    "embedding": "ember_hw.host.bindings.embedding",
    "embedding_bag": "ember_hw.host.bindings.embedding_bag",
    "function": "ember_hw.host.bindings.function",
    "fusedmm": "ember_hw.host.bindings.fusedmm",
    "scores": "ember_hw.host.bindings.scores",
    "spmm": "ember_hw.host.bindings.spmm",
    "tables": "ember_hw.host.bindings.tables",
}


def binding_of(program: Program) -> Binding:
    """Return the binding of a program.

    Raises
    ------
    ProgramError
        The program has no kind, or one that no binding is for.
    """
    kind: Any = program.model.get("kind")
    if kind not in BINDINGS:
        raise ProgramError(
            f"kind of program {program.name!r} must be one of {', '.join(BINDINGS)}, not {kind!r}"
        )
    return cast(Binding, import_module(BINDINGS[kind]))
