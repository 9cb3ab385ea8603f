"""Scratch memory of a function, and the code that the host runs to learn its sizes."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation, SSAValue

from ember_hw.compiler.backend.execute_code import ExecuteCode, Load, Memory, Statement, walk
from ember_hw.compiler.backend.extract_code import Extraction
from ember_hw.compiler.backend.extract_values import memory_symbols
from ember_hw.compiler.dialects.dlc import ComputeLoopOp
from ember_hw.compiler.program import Argument, Extent
from ember_hw.compiler.transforms.ir_facts import constant, refuse, value_name


@dataclass(frozen=True)
class Scratch:
    """What a function allocates.

    Attributes
    ----------
    arguments : tuple of Argument
        Of role scratch; `extents` are numbers, or names that the code defines.
    code : ExecuteCode, optional
        Only its entry: loops over index arrays and arithmetic.
    """

    arguments: tuple[Argument, ...] = ()
    code: ExecuteCode | None = None


def extract_scratch(function: func.FuncOp) -> Scratch:
    """Return the memory that a function at dlc allocates.

    Parameters
    ----------
    function : FuncOp
        Allocations stand at function level; their sizes are constants, arguments, dimensions,
        arithmetic on these, or results of loops with the attribute `ember.host`.

    Raises
    ------
    CompileError
        A size is something else, or needs memory that the function writes.
    """
    allocations = [
        op for op in function.body.block.ops if isinstance(op, memref.AllocOp | memref.AllocaOp)
    ]
    if not allocations:
        return Scratch()
    symbols = memory_symbols(function)
    loop = next(op for op in function.body.block.ops if isinstance(op, ComputeLoopOp))
    host = _Host(Extraction(loop))
    arguments: list[Argument] = []
    for op in allocations:
        sizes = iter(op.dynamic_sizes)
        type_ = op.memref.type
        shape = tuple(
            host.extent(op, next(sizes)) if extent == DYNAMIC_INDEX else extent
            for extent in type_.get_shape()
        )
        arguments.append(Argument(symbols[op.memref], str(type_), "scratch", shape))
    return Scratch(tuple(arguments), host.code(function))


class _Host:
    """The statements that the sizes need."""

    def __init__(self, extraction: Extraction) -> None:
        self._extraction = extraction
        self._loops: list[Statement] = []

    def extent(self, op: Operation, value: SSAValue) -> Extent:
        known, loop, extraction = constant(value), value.owner, self._extraction
        if known is not None:
            return known
        if isinstance(loop, scf.ForOp):
            if value not in extraction.values:
                self._loops += extraction.statement(loop)
            return extraction.values[value]
        name = extraction.host.value(value)
        if name is None:
            rule = "arithmetic on constants, arguments and dimensions, or the result of a host loop"
            refuse(op, "size of an allocation", rule, value_name(value))
        return name

    def code(self, function: func.FuncOp) -> ExecuteCode | None:
        extraction = self._extraction
        extraction.host.close()
        memories = {**extraction.host.memories, **extraction.used}
        entry = (*extraction.host.statements, *self._loops)
        loaded = {statement.symbol for statement in walk(entry) if isinstance(statement, Load)}
        for op in function.walk():
            if isinstance(op, memref.StoreOp):
                found = extraction.host.memory(op.memref)
                if found is not None and found[0] in loaded:
                    refuse(op, "memory that sizes of allocations need", "read only", found[0])
        if not entry:
            return None
        return ExecuteCode(
            memories=tuple(Memory(symbol, *kind) for symbol, kind in memories.items()), entry=entry
        )
