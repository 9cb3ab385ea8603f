"""A small call of a function that stays inside its arrays: what self-checks run it on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.llvm import LLVMArrayType, LLVMStructType
from xdsl.ir import Attribute

from ember_hw.compiler.element_dtypes import is_float
from ember_hw.compiler.interpreters import interpret
from ember_hw.compiler.interpreters.values import dtype_of
from ember_hw.compiler.transforms.ir_facts import argument_symbols
from ember_hw.errors import CompileError

#: Sizes that are tried: of dimensions but the last, and numbers.
_EXTENTS, _NUMBERS = (12, 24, 48), (3, 2, 1)
#: Integer arrays hold 0, 1, 4, 6, 7, 10, .. up to this: as row pointers groups of several sizes,
#: at the end empty ones.
_LARGEST = 7


def find_example(module: ModuleOp, tables: Mapping[str, NDArray[Any]], seed: int) -> dict[str, Any]:
    """Return arguments for the one function of a module, by symbol.

    Parameters
    ----------
    module : ModuleOp
        Verified scf; it is run.
    tables : mapping of str to array
        Arguments that are given.
    seed : int
        Makes the floats.

    Raises
    ------
    CompileError
        No sizes that were tried keep every access inside its array.
    """
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    for example in _examples(function, tables, seed):
        try:
            interpret(module, function.sym_name.data, list(copied(example, tables).values()))
        except (IndexError, ZeroDivisionError):
            continue
        return example
    raise CompileError(
        f"example_inputs of function {function.sym_name.data!r} must be given for "
        "verify='every-pass': no small request was found that stays inside its arrays"
    )


def copied(arguments: Mapping[str, Any], shared: Collection[str] = ()) -> dict[str, Any]:
    """Return arguments with arrays of their own, which a run may write, but those shared."""
    return {
        symbol: value.copy() if isinstance(value, np.ndarray) and symbol not in shared else value
        for symbol, value in arguments.items()
    }


def _examples(
    function: FuncOp, tables: Mapping[str, NDArray[Any]], seed: int
) -> Iterator[dict[str, Any]]:
    columns = [table.shape[-1] for table in tables.values()]
    for extent in _EXTENTS:
        for number in _NUMBERS:
            random = np.random.default_rng(seed)
            last = max([extent, *columns])
            yield {
                symbol: tables[symbol]
                if symbol in tables
                else _value(value.type, (extent, last), number, random)
                for value, symbol in argument_symbols(function).items()
            }


def _value(
    type_: Attribute, extents: tuple[int, int], number: int, random: np.random.Generator
) -> Any:
    match type_:
        case MemRefType():
            sizes = list(type_.get_shape())
            places = [extents[0]] * (len(sizes) - 1) + [extents[len(sizes) > 1]]
            shape = [
                place if size == DYNAMIC_INDEX else size
                for size, place in zip(sizes, places, strict=True)
            ]
            dtype = dtype_of(type_.element_type)
            if is_float(dtype):
                return random.standard_normal(shape).astype(dtype)
            steps = np.arange(shape[-1])
            values = np.minimum(2 * steps - (steps % 3 == 1), _LARGEST)
            return np.broadcast_to(values, shape).astype(dtype)
        case LLVMStructType():
            return tuple(_value(member, extents, number, random) for member in type_.types.data)
        case LLVMArrayType():
            return (number,) * type_.size.data
        case _:
            return number
