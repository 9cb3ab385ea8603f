"""Operations of execute code on NumPy arrays, bit for bit those of the interpreters and of C."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from ember_hw.compiler.element_dtypes import ELEMENT_DTYPES
from ember_hw.compiler.float_math import exp, fused_multiply_add

__all__ = ["DTYPES", "Values", "compute", "maximum", "minimum", "wrap"]

#: An array of values, or one NumPy scalar for all tokens.
Values: TypeAlias = Any

#: What values and memories are held in, by type.
DTYPES = ELEMENT_DTYPES


def _where(condition: Values, if_true: Values, if_false: Values) -> Values:
    chosen = np.asarray(cast(Any, np.where(condition, if_true, if_false)))
    return chosen[()]


def maximum(a: Values, b: Values) -> Values:
    """Return the larger floats: NaN if one is NaN, +0.0 of zeros of both signs."""
    larger: Values = np.maximum(a, b)
    return _where((larger == 0) & (a == b), a + b, larger)


def minimum(a: Values, b: Values) -> Values:
    """Return the smaller floats: NaN if one is NaN, -0.0 of zeros of both signs."""
    return -maximum(-a, -b)


def _maxnum(a: Values, b: Values) -> Values:
    return _where(b != b, a, _where(a != a, b, maximum(a, b)))


def _minnum(a: Values, b: Values) -> Values:
    return -_maxnum(-a, -b)


def _divisor(b: Values) -> Values:
    return _where(b == 0, b.dtype.type(1), b)  # a check has refused 0 where it counts


def _floor(a: Values, b: Values) -> Values:
    return a // _divisor(b)


def _divide(a: Values, b: Values) -> Values:
    b = _divisor(b)
    quotient = a // b
    return quotient + ((quotient * b != a) & ((a < 0) != (b < 0)))


def _ceil(a: Values, b: Values) -> Values:
    b = _divisor(b)
    quotient = a // b
    return quotient + (quotient * b != a)


_FLOAT_UNARY: dict[str, Callable[[Values], Values]] = {
    "negf": np.negative,
    "absf": np.abs,
    "ceil": np.ceil,
    "floor": np.floor,
    "trunc": np.trunc,
    "roundeven": np.rint,
    "sqrt": np.sqrt,
    "rsqrt": lambda a: np.float32(1) / np.sqrt(a),
    "exp": exp,
}
_BINARY: dict[str, Callable[[Values, Values], Values]] = {
    "addf": np.add,
    "subf": np.subtract,
    "mulf": np.multiply,
    "divf": np.divide,
    "maximumf": maximum,
    "minimumf": minimum,
    "maxnumf": _maxnum,
    "minnumf": _minnum,
    "copysign": np.copysign,
    "addi": np.add,
    "subi": np.subtract,
    "muli": np.multiply,
    "divsi": _divide,
    "floordivsi": _floor,
    "ceildivsi": _ceil,
    "remsi": lambda a, b: a - _divide(a, b) * _divisor(b),
    "maxsi": np.maximum,
    "minsi": np.minimum,
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
}
_COMPARE: dict[str, Callable[[Values, Values], Values]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_FLOAT_COMPARE: dict[str, Callable[[Values, Values], Values]] = {
    "false": lambda a, b: (a != a) & (a == a) & (b == b),
    "oeq": np.equal,
    "ogt": np.greater,
    "oge": np.greater_equal,
    "olt": np.less,
    "ole": np.less_equal,
    "one": lambda a, b: (a < b) | (a > b),
    "ord": lambda a, b: (a == a) & (b == b),
    "ueq": lambda a, b: ~((a < b) | (a > b)),
    "ugt": lambda a, b: ~(a <= b),
    "uge": lambda a, b: ~(a < b),
    "ult": lambda a, b: ~(a >= b),
    "ule": lambda a, b: ~(a > b),
    "une": np.not_equal,
    "uno": lambda a, b: (a != a) | (b != b),
    "true": lambda a, b: (a == a) | (a != a) | (b == b),
}


def wrap(type_: str, values: Values) -> Values:
    """Bring integers into the range of a type."""
    return np.asarray(values).astype(DTYPES[type_])[()]


def compute(operation: str, type_: str, operands: Sequence[Values]) -> Values:
    """Return an operation on values.

    Parameters
    ----------
    operation, type_ : str
        As in `Compute`.
    operands : sequence of arrays
        NumPy scalars or arrays that can be broadcast, of the operands' dtypes.
    """
    name, _, predicate = operation.partition("_")
    with np.errstate(all="ignore"):
        match name:
            case "select":
                return _where(*operands)
            case "fma":
                return fused_multiply_add(*operands)
            case "cmpf":
                return _FLOAT_COMPARE[predicate](*operands)
            case "cmpi":
                return _compare_integers(predicate, *operands)
            case "convert":
                (value,) = operands
                if value.dtype == np.bool_:
                    value = -value.astype(np.int64)
                return _to_integer(type_, value)
            case "extui":
                (value,) = operands
                if value.dtype != np.bool_:
                    value = value.view(f"u{value.dtype.itemsize}")
                return _to_integer(type_, value)
            case "sitofp":
                (value,) = operands
                if value.dtype == np.bool_:
                    value = -value.astype(np.int64)
                return value.astype(DTYPES[type_])
            case "extf" | "truncf":
                return operands[0].astype(DTYPES[type_])
            case "fptosi":
                return _to_integer(type_, operands[0].astype(np.int64))
            case _ if name in _FLOAT_UNARY:
                return _FLOAT_UNARY[name](operands[0])
            case _:
                found = _BINARY[name](*operands)
                return found if found.dtype == DTYPES[type_] else found.astype(DTYPES[type_])


def _to_integer(type_: str, value: Values) -> Values:
    if type_ == "i1":
        return (value & 1).astype(np.bool_)
    return value.astype(DTYPES[type_])


def _compare_integers(predicate: str, a: Values, b: Values) -> Values:
    compare = _COMPARE[predicate[-2:]]
    if a.dtype == np.bool_:
        return compare(b, a) if predicate[0] == "s" else compare(a, b)  # a signed true is -1
    if predicate[0] == "u":
        unsigned = f"u{a.dtype.itemsize}"
        a, b = a.view(unsigned), b.view(unsigned)
    return compare(a, b)
