"""Element types on the way to the execute side: what rows may hold, and what bundles can't."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import Float64Type, ModuleOp
from xdsl.dialects.func import FuncOp

from ember_hw.compiler.backend.assemble import Assembly
from ember_hw.compiler.backend.execute_operations import FLOATS, HALVES
from ember_hw.compiler.dialects.slc import MemStreamOp
from ember_hw.compiler.dialects.stream_types import head_type
from ember_hw.compiler.element_dtypes import ELEMENT_DTYPES
from ember_hw.compiler.interpreters.values import as_memref
from ember_hw.compiler.quantized_rows import FORMATS
from ember_hw.compiler.transforms.ir_facts import argument_symbols, memref_root, value_name
from ember_hw.errors import UnsupportedError

__all__ = ["check_row_elements", "check_stream_elements", "narrowest_float_bytes"]


def narrowest_float_bytes(module: ModuleOp) -> int:
    """Return the bytes of the narrowest float in memrefs of a module's arguments; 4 without one."""
    memrefs = [
        as_memref(value.type)
        for function in module.ops
        if isinstance(function, FuncOp) and not function.is_declaration
        for value in function.body.block.args
    ]
    elements = [str(memref.element_type) for memref in memrefs if memref is not None]
    sizes = [ELEMENT_DTYPES[name].itemsize for name in elements if name in (*HALVES, *FLOATS)]
    return min(sizes, default=4)


def check_stream_elements(function: FuncOp, opt_level: int, remarks: Sequence[str]) -> None:
    """Refuse elements of f64 that the access unit would send one by one: its values have 32 bits.

    Parameters
    ----------
    function : FuncOp
        At dlc.
    opt_level : int
        0 to 3.
    remarks : sequence of str
        What passes left as it was, and why.

    Raises
    ------
    UnsupportedError
        There are such elements.
    """
    symbols = argument_symbols(function)
    for op in function.walk():
        if not isinstance(op, MemStreamOp) or not isinstance(
            head_type(op.result.type), Float64Type
        ):
            continue
        root = memref_root(op.memref)
        remedy = "compile with opt_level=3, which sends rows"
        if opt_level > 1:
            remedy = f"no row carries them: {'; '.join(remarks)}"
        raise UnsupportedError(
            f"elements of {symbols.get(root, value_name(root))!r} must have at most 32 bits where "
            f"they are sent one by one, as at opt_level {opt_level}, not f64; {remedy}",
            node=op.name,
        )


def check_row_elements(assembly: Assembly, opt_level: int) -> None:
    """Refuse rows that the execute side can't read; elements sent one by one may be integers.

    Raises
    ------
    UnsupportedError
        There are such rows.
    """
    for callback in assembly.callbacks:
        for operand in callback.operands:
            if operand.kind == "row" and operand.dtype not in (*HALVES, *FLOATS, *FORMATS):
                raise UnsupportedError(
                    f"elements of the rows of {operand.symbol!r} must be "
                    f"{', '.join(HALVES)}, {' or '.join(FLOATS)} at opt_level {opt_level}, "
                    f"not {operand.dtype}; compile with opt_level=0"
                )
