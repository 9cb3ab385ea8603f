"""A user's own scf function: what the host must know of it, read off the IR."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import func, memref
from xdsl.dialects.builtin import (
    ArrayAttr,
    IndexType,
    IntegerType,
    MemRefType,
    ModuleOp,
    StringAttr,
    UnitAttr,
)
from xdsl.dialects.llvm import LLVMArrayType, LLVMStructType
from xdsl.ir import Attribute, BlockArgument, SSAValue
from xdsl.utils.hints import isa

from ember_hw.compiler.dialects.stream_types import memref_type
from ember_hw.compiler.element_dtypes import tensor_array
from ember_hw.compiler.program import Argument, JsonValue
from ember_hw.compiler.transforms.ir_facts import (
    ARGUMENT_NAMES,
    NOALIAS,
    RISING,
    argument_symbols,
    memref_root,
    refuse,
)
from ember_hw.errors import CompileError

#: Element types that the access unit and the execute side hold.
_ELEMENTS = ("f32", "f64", "f16", "bf16", "index", "i64", "i32", "i16", "i8")


@dataclass(frozen=True, eq=False)
class FunctionSpec:
    """What the host has to know of a function.

    Attributes
    ----------
    name : str
        Its name.
    inputs : dict of str to str
        Type of each argument that a run is given, by name, in order: all but tables.
    outputs : tuple of str
        Memrefs that it writes, in the order of the arguments.
    weights : mapping of str to array
        Arguments that belong to the program.
    rising : tuple of str
        Vectors whose elements the function says never fall.
    """

    name: str
    inputs: dict[str, str]
    outputs: tuple[str, ...]
    weights: Mapping[str, NDArray[Any]] = field(repr=False)
    rising: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """Name of the host's binding."""
        return "function"

    def model(self) -> dict[str, JsonValue]:
        """Return what the binding has to know, as JSON values."""
        return {
            "name": self.name,
            "input_names": list(self.inputs),
            "input_types": list(self.inputs.values()),
            "outputs": list(self.outputs),
            **({"rising": list(self.rising)} if self.rising else {}),
        }

    def tables(self) -> dict[str, NDArray[Any]]:
        """Return the arguments that belong to the program."""
        return dict(self.weights)


def read_function(module: ModuleOp, tables: Mapping[str, Any]) -> FunctionSpec:
    """Read the one function of a module, and give it the attributes that the compiler reads.

    The names of its arguments become `ember.args`, unless it has that. It gets `ember.noalias`:
    the host gives every memref that is written an array of its own. Its own `ember.rising` is
    checked: a list of names of vectors of integers that it doesn't write.

    Parameters
    ----------
    module : ModuleOp
        Verified scf; its function is changed in place.
    tables : mapping of str to array
        Arguments that belong to the program, by name.

    Raises
    ------
    CompileError
        There isn't one function, its arguments or results are of types that a host can't give, or
        there is no argument of a table's name.
    TypeError, ValueError
        A table isn't an array that fits its argument, or is written.
    """
    function = _the_function(module)
    symbols = _name_arguments(function)
    function.attributes[NOALIAS] = UnitAttr()
    _check_results(function)
    written = {memref_root(value) for value in _written(function)}
    outputs = tuple(symbol for value, symbol in symbols.items() if value in written)
    types = {symbol: str(value.type) for value, symbol in symbols.items()}
    for value, symbol in symbols.items():
        _check_type(function, symbol, value.type)
    for symbol in tables:
        if symbol not in types:
            rule = f"arguments of the function ({', '.join(types)})"
            refuse(function, "names of tables", rule, repr(symbol))
    rising = _rising(function, symbols, outputs)
    return FunctionSpec(
        name=function.sym_name.data,
        inputs={symbol: type_ for symbol, type_ in types.items() if symbol not in tables},
        outputs=outputs,
        weights={
            symbol: _table(Argument(symbol, types[symbol]), table, symbol in outputs)
            for symbol, table in tables.items()
        },
        rising=rising,
    )


def _rising(
    function: func.FuncOp, symbols: Mapping[SSAValue, str], outputs: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the vectors that the function says never fall; the host holds it to that."""
    stated = function.attributes.get(RISING)
    if stated is None:
        return ()
    if not isa(stated, ArrayAttr[StringAttr]):
        refuse(function, f"attribute {RISING!r}", "a list of names of arguments", stated)
    vectors = [
        symbol
        for value, symbol in symbols.items()
        if isinstance(value.type, MemRefType)
        and memref_type(value).get_num_dims() == 1
        and isinstance(memref_type(value).element_type, IndexType | IntegerType)
        and symbol not in outputs
    ]
    names = [name.data for name in stated.data]
    for name in names:
        if name not in vectors:
            rule = f"vectors of integers that the function doesn't write ({', '.join(vectors)})"
            refuse(function, f"names in {RISING!r}", rule, repr(name))
    return tuple(names)


def _the_function(module: ModuleOp) -> func.FuncOp:
    functions = [op for op in module.ops if isinstance(op, func.FuncOp) and not op.is_declaration]
    if len(functions) != 1:
        found = ", ".join(op.sym_name.data for op in functions) or "none"
        raise CompileError(f"module must define 1 function, not {len(functions)} ({found})")
    return functions[0]


def _name_arguments(function: func.FuncOp) -> dict[SSAValue, str]:
    """Return the symbol of each argument; where the function has none, from names in the text."""
    if ARGUMENT_NAMES not in function.attributes:
        names = [arg.name_hint or f"arg{arg.index}" for arg in function.body.block.args]
        function.attributes[ARGUMENT_NAMES] = ArrayAttr([StringAttr(name) for name in names])
    symbols = argument_symbols(function)
    names = list(symbols.values())
    if len(set(names)) != len(names):
        refuse(function, f"names in {ARGUMENT_NAMES!r}", "distinct", names)
    return symbols


def _written(function: func.FuncOp) -> list[SSAValue]:
    values: list[SSAValue] = []
    for op in function.walk():
        if isinstance(op, memref.StoreOp):
            values.append(op.memref)
        elif isinstance(op, memref.CopyOp):
            values.append(op.destination)
    return values


def _check_results(function: func.FuncOp) -> None:
    """Allow what a run returns anyway: memrefs of the arguments."""
    end = function.body.block.last_op
    for value in end.operands if end is not None else ():
        if not isinstance(value, BlockArgument) or not isinstance(value.type, MemRefType):
            refuse(function, "result", "a memref argument, or stored to one", str(value.type))


def _check_type(function: func.FuncOp, symbol: str, type_: Attribute) -> None:
    match type_:
        case MemRefType():
            if not type_.get_num_dims():
                refuse(function, f"rank of argument {symbol!r}", "at least 1", 0)
            strides = type_.get_strides()
            if strides is None or not strides or strides[-1] != 1:
                rule = "a memref whose last dimension is contiguous"
                refuse(function, f"argument {symbol!r}", rule, str(type_))
            if str(type_.element_type) not in _ELEMENTS:
                rule = f"one of {', '.join(_ELEMENTS)}"
                refuse(function, f"element type of {symbol!r}", rule, str(type_.element_type))
        case IndexType() | IntegerType():
            pass
        case LLVMStructType():
            for member in type_.types.data:
                _check_member(function, symbol, member)
        case LLVMArrayType():
            _check_member(function, symbol, type_.type)
        case _:
            rule = "a memref, an index, an integer or a struct of integers"
            refuse(function, f"argument {symbol!r}", rule, f"{type_}; pass it as memref<1x{type_}>")


def _check_member(function: func.FuncOp, symbol: str, type_: Attribute) -> None:
    text = str(type_)
    if isinstance(type_, MemRefType):
        refuse(function, f"members of argument {symbol!r}", "integers", text)
    _check_type(function, symbol, type_)


def _table(argument: Argument, table: Any, is_written: bool) -> NDArray[Any]:
    """Return a table as an array of the program; torch tensors share their memory."""
    what = f"table {argument.symbol!r}"
    if not argument.is_memory:
        raise TypeError(f"{what} must be a memref of the function, not {argument.type}")
    if is_written:
        raise ValueError(f"{what} must be read only, and the function writes it")
    if hasattr(table, "detach"):  # torch isn't imported for this
        table = tensor_array(table)
    if not isinstance(table, np.ndarray):
        kind = type(table).__name__
        raise TypeError(f"{what} must be a NumPy array or a torch tensor, not {kind}")
    array = cast("NDArray[Any]", table)
    if array.dtype != argument.dtype:
        raise TypeError(f"{what} must be of dtype {argument.dtype}, not {array.dtype}")
    if not argument.fits(array.shape):
        raise ValueError(f"{what} must be of a shape that fits {argument.type}, not {array.shape}")
    return array
