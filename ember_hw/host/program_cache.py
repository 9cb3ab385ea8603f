"""Programs of operations, built once for each shape class.

A shape class is what a program depends on: the loops of the operation, the columns of its tables
(of one for many tables nothing of them), opt level and config. The number of lookups, of bags and
of rows of a table is no part of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from ember_hw.compiler.build import build
from ember_hw.compiler.frontend.embedding_bag import EmbeddingBagSpec
from ember_hw.compiler.frontend.emit_operation import emit_scf
from ember_hw.compiler.frontend.tables import TablesSpec
from ember_hw.compiler.program import Program
from ember_hw.config import AcceleratorConfig

__all__ = ["forget_programs", "program_of", "programs_built"]

_programs: dict[tuple[Any, ...], Program] = {}
_built = 0


def program_of(spec: Any, opt_level: int, config: AcceleratorConfig) -> Program:
    """Build a program, or take that of another operation of the same shape class.

    Parameters
    ----------
    spec : EmbeddingBagSpec, OperationSpec or TablesSpec
        The operation, with its tables.
    opt_level : int
        0 to 3.
    config : AcceleratorConfig
        The access unit.

    Raises
    ------
    EmberError
        It can't become a program for the config.
    """
    global _built
    tables: dict[str, NDArray[Any]] = spec.tables()
    columns = tuple(
        (symbol, table.shape[1], table.dtype.str)
        for symbol, table in tables.items()
        if spec.kind != "tables"
    )
    key = spec.kind, _loops(spec), columns, opt_level, config
    if key not in _programs:
        _programs[key] = build(emit_scf(spec), spec, opt_level=opt_level, config=config)
        _built += 1
    model = {"kind": spec.kind, **spec.model()}
    return replace(_programs[key], model=model, tables=tables)


def _loops(spec: Any) -> object:
    """Return what tells the loops of an operation from others; for bags without writing them."""
    if isinstance(spec, EmbeddingBagSpec):
        columns = spec.embedding_dim if spec.types.is_quantized else None  # bytes don't tell them
        return spec.mode, spec.index_dtype.name, spec.weights_name is not None, spec.types, columns
    if isinstance(spec, TablesSpec):
        return spec.mode, spec.index_dtype, spec.is_weighted, spec.types
    return str(emit_scf(spec))


def programs_built() -> int:
    """Return how many programs this process has built for shape classes, forgotten ones too."""
    return _built


def forget_programs() -> None:
    """Build the program of each shape class anew from now on."""
    _programs.clear()
