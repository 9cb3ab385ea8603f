"""Values that every case of execute code shares: names, constants, what a launch brings."""

from __future__ import annotations

import re
from typing import cast

from xdsl.dialects import arith, func, llvm, math, memref
from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    VectorType,
)
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from ember_hw.compiler.backend.execute_code import (
    Compute,
    Constant,
    Extent,
    Load,
    Scalar,
    Statement,
)
from ember_hw.compiler.backend.execute_operations import (
    F32_ONLY,
    FLOAT_BINARY,
    FLOAT_CASTS,
    FLOAT_UNARY,
    FLOATS,
    HALVES,
    INTEGER_BINARY,
    INTEGERS,
)
from ember_hw.compiler.dialects import slcvec
from ember_hw.compiler.dialects.quantized import QuantizedType
from ember_hw.compiler.transforms.ir_facts import argument_symbols, constant

__all__ = ["HostValues", "Names", "computation", "memory_symbols", "scalar_type", "type_name"]


class Names:
    """Names that are given once each."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def new(self, hint: str) -> str:
        """Return the hint, or the hint with the next free number."""
        base = re.sub(r"\W", "_", hint, flags=re.ASCII)
        if not base[:1].isalpha():
            base = "v" + base
        name, number = base, 1
        while name in self._taken:
            name, number = f"{base}_{number}", number + 1
        self._taken.add(name)
        return name


def scalar_type(type_: Attribute) -> str | None:
    """Return the name of a scalar type in execute code; None for any other."""
    match type_:
        case IndexType():
            return "index"
        case IntegerType():
            name = f"i{type_.bitwidth}"
            return name if name in INTEGERS else None
        case Float16Type():
            return "f16"
        case BFloat16Type():
            return "bf16"
        case Float32Type():
            return "f32"
        case Float64Type():
            return "f64"
        case _:
            return None


def type_name(type_: Attribute) -> str | None:
    """Return the name of a type: a vector or memref of one dimension is a row; None if none."""
    if isinstance(type_, VectorType | MemRefType):
        shaped = cast("VectorType[Attribute] | MemRefType[Attribute]", type_)
        kind = shaped.element_type
        element = kind.format.name if isinstance(kind, QuantizedType) else scalar_type(kind)
        return f"row<{element}>" if element and shaped.get_num_dims() == 1 else None
    return scalar_type(type_)


def memory_symbols(function: func.FuncOp) -> dict[SSAValue, str]:
    """Return the symbol of each memref: of arguments, and `scratch`, `scratch_1`, .. of allocs."""
    symbols = {
        value: name
        for value, name in argument_symbols(function).items()
        if isinstance(value.type, MemRefType)
    }
    return symbols | allocations(function)


def allocations(function: func.FuncOp) -> dict[SSAValue, str]:
    """Return the symbol of each memref that a function allocates."""
    ops = [op for op in function.body.block.ops if isinstance(op, memref.AllocOp | memref.AllocaOp)]
    if not ops:
        return {}
    names = Names()
    for name in argument_symbols(function).values():
        names.new(name)
    return {op.memref: names.new("scratch") for op in ops}


def computation(op: Operation) -> tuple[str, str] | None:
    """Return the operation and the scalar type of an op on scalars or, lane by lane, on vectors."""
    if len(op.results) != 1:
        return None
    result = op.results[0].type
    if isinstance(result, VectorType):
        result = cast("VectorType[Attribute]", result).element_type
    type_ = scalar_type(result)
    if type_ is None:
        return None
    match op:
        case arith.CmpiOp():
            return f"cmpi_{arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]}", type_
        case arith.CmpfOp():
            return f"cmpf_{arith.CMPF_COMPARISON_OPERATIONS[op.predicate.value.data]}", type_
        case slcvec.CompareOp():
            element = cast("VectorType[Attribute]", op.lhs.type).element_type
            kind = "cmpf" if scalar_type(element) in FLOATS else "cmpi"
            return f"{kind}_{op.predicate.data}", type_
        case arith.SelectOp() | slcvec.SelectOp():
            return "select", type_
        case arith.IndexCastOp() | arith.ExtSIOp() | arith.TruncIOp():
            return "convert", type_
        case arith.ExtUIOp():
            return "extui", type_
        case arith.SIToFPOp():
            return "sitofp", type_
        case arith.FPToSIOp():
            return "fptosi", type_
        case arith.ExtFOp() | arith.TruncFOp():
            return _float_cast(op, type_)
        case math.FmaOp():
            return ("fma", type_) if type_ == "f32" else None
        case _:
            dialect, _, name = op.name.partition(".")
            known = (*FLOAT_BINARY, *FLOAT_UNARY, *INTEGER_BINARY)
            is_known = dialect in ("arith", "math") and name in known
            is_known = is_known and (type_ == "f32" or name not in F32_ONLY)
            return (name, type_) if is_known and type_ not in HALVES else None


def _float_cast(op: arith.ExtFOp | arith.TruncFOp, type_: str) -> tuple[str, str] | None:
    """Return a cast between floats; None of those that execute code doesn't have."""
    source = op.input.type
    if isinstance(source, VectorType):
        source = cast("VectorType[Attribute]", source).element_type
    name = "extf" if isinstance(op, arith.ExtFOp) else "truncf"
    return (name, type_) if (scalar_type(source), type_) in FLOAT_CASTS[name] else None


class HostValues:
    """Constants and function-level values, as statements of the code's entry.

    Parameters
    ----------
    function : FuncOp
        With the attribute `ember.args`.
    names : Names
        Of the whole code.

    Attributes
    ----------
    statements : list of statements
        The entry so far, with what has been asked for and what that needs.
    memories : dict of str to (str, int)
        Element type and rank of each memory that the entry reads.
    """

    def __init__(self, function: func.FuncOp, names: Names) -> None:
        self.statements: list[Statement] = []
        self.memories: dict[str, tuple[str, int]] = {}
        self._names = names
        self._arguments = argument_symbols(function)
        self._memories = memory_symbols(function)
        self._values: dict[SSAValue, str] = {}
        self._constants: dict[tuple[str, str], str] = {}
        self._extents: dict[tuple[str, int], str] = {}

    def close(self) -> None:
        """Put constants in front, where a reader looks for them."""
        self.statements.sort(key=lambda statement: not isinstance(statement, Constant))

    def constant(self, type_: str, value: float, hint: str = "c") -> str:
        """Return the name of a constant."""
        key = type_, repr(value)
        if key not in self._constants:
            if isinstance(value, int):
                hint = f"c{value}" if value >= 0 else f"minus{-value}"
            elif value.is_integer():
                hint = f"f{int(value)}" if value >= 0 else f"minus_f{-int(value)}"
            name = self._names.new(hint)
            self._constants[key] = name
            self.statements.append(Constant(name, type_, value))
        return self._constants[key]

    def literal(self, value: SSAValue) -> str | None:
        """Return the name of a constant op's value, or of the one value in all its lanes."""
        owner = value.owner
        if not isinstance(owner, arith.ConstantOp):
            return None
        attribute = owner.value
        if isinstance(attribute, DenseIntOrFPElementsAttr):
            dense = cast("DenseIntOrFPElementsAttr[IndexType]", attribute)
            type_, values = scalar_type(dense.get_element_type()), set(dense.get_values())
            if type_ is None or len(values) != 1:
                return None
            return self.constant(type_, _fit(type_, values.pop()))
        type_ = scalar_type(value.type)
        if type_ is None or not isinstance(attribute, IntegerAttr | FloatAttr):
            return None
        return self.constant(type_, _fit(type_, attribute.value.data), value.name_hint or "c")

    def memory(self, value: SSAValue) -> tuple[str, str, int] | None:
        """Return symbol, element type and rank of a memref; None if it isn't a whole memory."""
        while isinstance(value.owner, memref.CastOp):
            value = value.owner.source
        symbol = self._memories.get(value)
        if symbol is None:
            return None
        type_ = cast("MemRefType[Attribute]", value.type)
        element = scalar_type(type_.element_type)
        return (symbol, element, type_.get_num_dims()) if element else None

    def value(self, value: SSAValue) -> str | None:
        """Return the name of a function-level value; None if the entry can't compute it."""
        if value in self._values:
            return self._values[value]
        name = self.literal(value) or self._compute(value)
        if name is not None:
            self._values[value] = name
        return name

    def _compute(self, value: SSAValue) -> str | None:
        if isinstance(value, BlockArgument):
            symbol = self._arguments.get(value)
            if symbol is None or scalar_type(value.type) not in INTEGERS:
                return None
            return self._scalar(symbol, value)
        op = value.owner
        match op:
            case memref.DimOp():
                memory, dimension = self.memory(op.source), constant(op.index)
                if memory is None or dimension is None:
                    return None
                symbol, element, rank = memory
                self.memories[symbol] = element, rank
                if (symbol, dimension) not in self._extents:
                    name = self._names.new(value.name_hint or f"{symbol}_{dimension}")
                    self._extents[symbol, dimension] = name
                    self.statements.append(Extent(name, symbol, dimension))
                return self._extents[symbol, dimension]
            case llvm.ExtractValueOp():
                symbol = self._arguments.get(op.container)
                if symbol is None or scalar_type(value.type) not in INTEGERS:
                    return None
                places = (str(place) for place in op.position.get_values())
                return self._scalar(".".join((symbol, *places)), value)
            case memref.LoadOp():
                memory = self.memory(op.memref)
                indices = [self.value(index) for index in op.indices]
                if memory is None or None in indices:
                    return None
                symbol, element, rank = memory
                self.memories[symbol] = element, rank
                name = self._names.new(value.name_hint or "v")
                self.statements.append(Load(name, symbol, tuple(i for i in indices if i)))
                return name
            case Operation() if (found := computation(op)) is not None:
                operands = [self.value(operand) for operand in op.operands]
                if None in operands:
                    return None
                name = self._names.new(value.name_hint or "v")
                named = tuple(operand for operand in operands if operand)
                self.statements.append(Compute(name, found[1], found[0], named))
                return name
            case _:
                return None

    def _scalar(self, symbol: str, value: SSAValue) -> str:
        name = self._names.new(symbol)
        self.statements.append(Scalar(name, symbol))
        type_ = scalar_type(value.type)
        if type_ == "index" or type_ is None:
            return name
        narrow = self._names.new(symbol)
        self.statements.append(Compute(narrow, type_, "convert", (name,)))
        return narrow


def _fit(type_: str, value: float) -> int | float:
    """Return a constant as execute code holds it: integers signed, i1 as 0 or 1."""
    if type_ in FLOATS or type_ in HALVES:
        return float(value)
    if type_ == "i1":
        return int(value) & 1
    width = 64 if type_ == "index" else int(type_[1:])
    half = 1 << (width - 1)
    return (int(value) + half) % (1 << width) - half
