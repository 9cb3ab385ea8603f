"""Meaning of the host's `arith` and `math` ops, on scalars and lane by lane on vectors."""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, Operation

from ember_hw.compiler.dialects.quantized import DequantizeOp
from ember_hw.compiler.float_math import exp
from ember_hw.compiler.interpreters.frame import Frame, Handlers, Lowering, Step
from ember_hw.compiler.interpreters.values import (
    Array,
    as_vector,
    constant,
    dtype_of,
    integer_width,
    wrap_to,
)
from ember_hw.errors import UnsupportedError

__all__ = [
    "ARITHMETIC",
    "FLOAT_COMPARE",
    "INTEGER_COMPARE",
    "divide_signed",
    "fused_multiply_add",
    "maximum",
    "maximum_number",
    "minimum",
    "minimum_number",
]

ARITHMETIC = Handlers()


def divide_signed(a: Any, b: Any) -> Any:
    """Quotient rounded to zero; a zero divisor raises ZeroDivisionError."""
    quotient: Any = _floor_divide(a, b)
    is_too_small: Any = (quotient * b != a) & ((a < 0) != (b < 0))
    return quotient + is_too_small


def _floor_divide(a: Any, b: Any) -> Any:
    if np.any(np.equal(b, 0)):
        raise ZeroDivisionError("divisor must be other than 0, not 0")
    return a // b


def _ceil_divide(a: Any, b: Any) -> Any:
    return -_floor_divide(-a, b)


def _remainder_signed(a: Any, b: Any) -> Any:
    return a - divide_signed(a, b) * b


def maximum(a: Any, b: Any) -> Any:
    """Larger float: NaN if one is NaN, and +0.0 of zeros of both signs."""
    larger: Array = np.array(np.maximum(a, b))
    np.copyto(larger, a + b, where=(a == 0) & (b == 0))
    return larger[()]


def minimum(a: Any, b: Any) -> Any:
    """Smaller float: NaN if one is NaN, and -0.0 of zeros of both signs."""
    return -maximum(-a, -b)


def maximum_number(a: Any, b: Any) -> Any:
    """Larger float, like `maximum`; the other one if one is NaN."""
    larger: Array = np.array(maximum(a, b))
    np.copyto(larger, b, where=a != a)
    np.copyto(larger, a, where=b != b)
    return larger[()]


def minimum_number(a: Any, b: Any) -> Any:
    """Smaller float, like `minimum`; the other one if one is NaN."""
    return -maximum_number(-a, -b)


def fused_multiply_add(a: Any, b: Any, c: Any) -> Any:
    """Return `a * b + c` with one rounding, of NumPy floats or arrays of them."""
    if np.ndim(a):
        lanes = [fused_multiply_add(*lane) for lane in zip(a, b, c, strict=True)]
        return np.array(lanes, a.dtype)
    rounded = a * b + c
    if not np.isfinite([a, b, c]).all():
        return rounded
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if exact == 0:
        return rounded
    # Candidates around the exact value; ties go to the even one, as its last bit is 0.
    try:
        middle = type(a)(float(exact))
    except OverflowError:
        return rounded
    if not np.isfinite(middle):
        return middle
    around = (np.nextafter(middle, type(a)(-np.inf)), middle, np.nextafter(middle, type(a)(np.inf)))
    finite = [value for value in around if np.isfinite(value)]
    nearest = min(abs(Fraction(float(value)) - exact) for value in finite)
    ties = [value for value in finite if abs(Fraction(float(value)) - exact) == nearest]
    return min(ties, key=lambda value: int(value.view(f"u{value.itemsize}")) & 1)


def _ordered(a: Any, b: Any) -> Any:
    return (a == a) & (b == b)


def _not(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: np.logical_not(compare(a, b))


def _differs_ordered(a: Any, b: Any) -> Any:
    return (a < b) | (a > b)


_BITWISE: dict[type[Operation], Callable[[Any, Any], Any]] = {
    arith.AndIOp: lambda a, b: a & b,
    arith.OrIOp: lambda a, b: a | b,
    arith.XOrIOp: lambda a, b: a ^ b,
}

_INTEGER_BINARY: dict[type[Operation], Callable[[Any, Any], Any]] = {
    **_BITWISE,
    arith.AddiOp: operator.add,
    arith.SubiOp: operator.sub,
    arith.MuliOp: operator.mul,
    arith.DivSIOp: divide_signed,
    arith.FloorDivSIOp: _floor_divide,
    arith.CeilDivSIOp: _ceil_divide,
    arith.RemSIOp: _remainder_signed,
    arith.MaxSIOp: max,
    arith.MinSIOp: min,
    arith.ShLIOp: lambda a, b: a << b,
    arith.ShRSIOp: lambda a, b: a >> b,
}

_ON_INTEGER_VECTORS: dict[type[Operation], Callable[[Any, Any], Any]] = {
    **_INTEGER_BINARY,
    arith.MaxSIOp: np.maximum,
    arith.MinSIOp: np.minimum,
}

_FLOAT_BINARY: dict[type[Operation], Callable[[Any, Any], Any]] = {
    arith.AddfOp: operator.add,
    arith.SubfOp: operator.sub,
    arith.MulfOp: operator.mul,
    arith.DivfOp: lambda a, b: a / b,
    arith.MaximumfOp: maximum,
    arith.MinimumfOp: minimum,
    arith.MaxnumfOp: maximum_number,
    arith.MinnumfOp: minimum_number,
    math.PowFOp: np.power,
    math.CopySignOp: np.copysign,
    math.Atan2Op: np.arctan2,
}

_FLOAT_UNARY: dict[type[Operation], Callable[[Any], Any]] = {
    arith.NegfOp: operator.neg,
    math.AbsFOp: np.abs,
    math.AtanOp: np.arctan,
    math.CeilOp: np.ceil,
    math.CosOp: np.cos,
    math.Exp2Op: np.exp2,
    math.ExpM1Op: np.expm1,
    math.ExpOp: exp,
    math.FloorOp: np.floor,
    math.Log10Op: np.log10,
    math.Log1pOp: np.log1p,
    math.Log2Op: np.log2,
    math.LogOp: np.log,
    math.RoundEvenOp: np.rint,
    math.RsqrtOp: lambda a: 1 / np.sqrt(a),
    math.SinOp: np.sin,
    math.SqrtOp: np.sqrt,
    math.TanhOp: np.tanh,
    math.TruncOp: np.trunc,
}

INTEGER_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}

FLOAT_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "false": lambda a, b: (a != a) & (a == a),
    "oeq": operator.eq,
    "ogt": operator.gt,
    "oge": operator.ge,
    "olt": operator.lt,
    "ole": operator.le,
    "one": _differs_ordered,
    "ord": _ordered,
    "ueq": _not(_differs_ordered),
    "ugt": _not(operator.le),
    "uge": _not(operator.lt),
    "ult": _not(operator.ge),
    "ule": _not(operator.gt),
    "une": operator.ne,
    "uno": _not(_ordered),
    "true": lambda a, b: (a != a) | (a == a),
}


def _binary(op: Operation, lowering: Lowering, compute: Callable[[Any, Any], Any]) -> Step:
    (lhs, rhs), target = lowering.slots(op.operands), lowering.slot(op.results[0])

    def run(frame: Frame) -> None:
        frame[target] = compute(frame[lhs], frame[rhs])

    return run


def _unary(op: Operation, lowering: Lowering, compute: Callable[[Any], Any]) -> Step:
    source, target = lowering.slot(op.operands[0]), lowering.slot(op.results[0])

    def run(frame: Frame) -> None:
        frame[target] = compute(frame[source])

    return run


@ARITHMETIC.register(arith.ConstantOp)
def _constant(op: arith.ConstantOp, lowering: Lowering) -> None:
    lowering.preset(lowering.slot(op.result), constant(op.value))


@ARITHMETIC.register(*_INTEGER_BINARY)
def _integer_binary(op: Operation, lowering: Lowering) -> Step:
    type_ = op.results[0].type
    vector = as_vector(type_)
    element = type_ if vector is None else vector.element_type
    if element == i1 and type(op) not in _BITWISE:
        raise UnsupportedError(
            f"type of {op.name} must be other than i1 to be interpreted, not {type_}", node=op.name
        )
    if vector is not None:
        return _binary(op, lowering, _ON_INTEGER_VECTORS[type(op)])
    compute = _INTEGER_BINARY[type(op)]
    if integer_width(type_) is None:
        return _binary(op, lowering, compute)
    wrap = wrap_to(type_)
    return _binary(op, lowering, lambda a, b: wrap(compute(a, b)))


@ARITHMETIC.register(*_FLOAT_BINARY)
def _float_binary(op: Operation, lowering: Lowering) -> Step:
    return _binary(op, lowering, _FLOAT_BINARY[type(op)])


@ARITHMETIC.register(*_FLOAT_UNARY)
def _float_unary(op: Operation, lowering: Lowering) -> Step:
    return _unary(op, lowering, _FLOAT_UNARY[type(op)])


def _as_unsigned(type_: Attribute) -> Callable[[int], int]:
    """Return the function that reads a signed value of this type as unsigned."""
    mask = (1 << (integer_width(type_) or 64)) - 1
    return lambda value: value & mask


@ARITHMETIC.register(math.FmaOp)
def _fma(op: math.FmaOp, lowering: Lowering) -> Step:
    (a, b, c), target = lowering.slots(op.operands), lowering.slot(op.result)

    def run(frame: Frame) -> None:
        frame[target] = fused_multiply_add(frame[a], frame[b], frame[c])

    return run


@ARITHMETIC.register(arith.CmpiOp)
def _compare_integers(op: arith.CmpiOp, lowering: Lowering) -> Step:
    name = arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]
    compare = INTEGER_COMPARE[name[-2:]]
    if name[0] == "u":
        unsigned = _as_unsigned(op.lhs.type)
        return _binary(op, lowering, lambda a, b: compare(unsigned(a), unsigned(b)))
    if op.lhs.type == i1:
        # A signed i1 is 0 or -1, so its order is that of bools reversed.
        return _binary(op, lowering, lambda a, b: compare(b, a))
    return _binary(op, lowering, compare)


@ARITHMETIC.register(arith.CmpfOp)
def _compare_floats(op: arith.CmpfOp, lowering: Lowering) -> Step:
    compare = FLOAT_COMPARE[arith.CMPF_COMPARISON_OPERATIONS[op.predicate.value.data]]
    return _binary(op, lowering, lambda a, b: bool(compare(a, b)))


@ARITHMETIC.register(arith.SelectOp)
def _select(op: arith.SelectOp, lowering: Lowering) -> Step:
    condition, if_true, if_false = lowering.slots(op.operands)
    target = lowering.slot(op.result)

    def run(frame: Frame) -> None:
        frame[target] = frame[if_true if frame[condition] else if_false]

    return run


# xDSL's verifiers allow integer casts and comparisons on scalars only.
@ARITHMETIC.register(arith.IndexCastOp, arith.ExtSIOp, arith.TruncIOp)
def _cast_integer(op: Operation, lowering: Lowering) -> Step:
    wrap = wrap_to(op.results[0].type)
    if op.operands[0].type == i1:
        return _unary(op, lowering, lambda value: wrap(-int(value)))
    return _unary(op, lowering, wrap)


@ARITHMETIC.register(arith.ExtUIOp)
def _extend_unsigned(op: arith.ExtUIOp, lowering: Lowering) -> Step:
    unsigned, wrap = _as_unsigned(op.input.type), wrap_to(op.result.type)
    return _unary(op, lowering, lambda value: wrap(int(unsigned(value))))


@ARITHMETIC.register(arith.SIToFPOp)
def _signed_to_float(op: arith.SIToFPOp, lowering: Lowering) -> Step:
    convert = dtype_of(op.result.type).type
    sign = -1 if op.input.type == i1 else 1
    # np.float32(int) rounds twice, by way of float64; an int64 scalar is rounded once.
    return _unary(op, lowering, lambda value: np.int64(sign * value).astype(convert))


@ARITHMETIC.register(arith.FPToSIOp)
def _float_to_signed(op: arith.FPToSIOp, lowering: Lowering) -> Step:
    wrap = wrap_to(op.result.type)
    return _unary(op, lowering, lambda value: wrap(int(value)))


@ARITHMETIC.register(DequantizeOp)
def _dequantize(op: DequantizeOp, lowering: Lowering) -> Step:
    def number(element: Any) -> Any:
        product = element["scale"] * element["code"].astype(np.float32)
        return product + element["bias"]

    return _unary(op, lowering, number)


@ARITHMETIC.register(arith.ExtFOp, arith.TruncFOp)
def _cast_float(op: Operation, lowering: Lowering) -> Step:
    target = op.results[0].type
    if (vector := as_vector(target)) is not None:
        dtype = dtype_of(vector.element_type)
        return _unary(op, lowering, lambda value: value.astype(dtype))
    return _unary(op, lowering, dtype_of(target).type)
