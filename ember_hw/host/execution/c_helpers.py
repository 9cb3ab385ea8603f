"""What generated C uses: helpers for operations that C spells otherwise, and types."""

from __future__ import annotations

import numpy as np

from ember_hw.compiler.backend.execute_operations import HALVES
from ember_hw.compiler.element_dtypes import ELEMENT_DTYPES
from ember_hw.compiler.float_math import EXP_C
from ember_hw.compiler.quantized_rows import FORMATS
from ember_hw.host.execution.c_halves import HALF_C, half_cast
from ember_hw.host.execution.c_quantized import QUANTIZED_C

__all__ = ["C_TYPES", "HELPERS", "RESERVED", "expression", "literal"]

#: C types by type of execute code.
C_TYPES = {
    "index": "int64_t",
    "i64": "int64_t",
    "i32": "int32_t",
    "i16": "int16_t",
    "i8": "int8_t",
    "i1": "bool",
    "f16": "uint16_t",  # its bits: not every C compiler has a type for it
    "bf16": "uint16_t",
    "f32": "float",
    "f64": "double",
    **dict.fromkeys(FORMATS, "uint8_t"),  # the bytes of a row
}

_LARGER_AND_SMALLER = """
/* Larger TYPE: NaN if one is NaN, +0.0 of zeros of both signs. */
static inline TYPE ember_maximum_TYPE(TYPE a, TYPE b)
{
    TYPE larger = a > b ? a : b;
    larger = a == 0 && b == 0 ? a + b : larger;
    larger = a == a ? larger : a;
    return b == b ? larger : b;
}

static inline TYPE ember_minimum_TYPE(TYPE a, TYPE b) { return -ember_maximum_TYPE(-a, -b); }

/* Likewise, but the other one if one is NaN. */
static inline TYPE ember_maxnum_TYPE(TYPE a, TYPE b)
{
    return b != b ? a : a != a ? b : ember_maximum_TYPE(a, b);
}

static inline TYPE ember_minnum_TYPE(TYPE a, TYPE b) { return -ember_maxnum_TYPE(-a, -b); }
"""

HELPERS = (
    _LARGER_AND_SMALLER.replace("TYPE", "float")
    + _LARGER_AND_SMALLER.replace("TYPE", "double")
    + """
/* Quotient rounded to zero; -1 is apart, as INT64_MIN / -1 overflows. */
static inline int64_t ember_divide(int64_t a, int64_t b) { return b == -1 ? -a : a / b; }

static inline int64_t ember_remainder(int64_t a, int64_t b) { return b == -1 ? 0 : a % b; }

static inline int64_t ember_floor_divide(int64_t a, int64_t b)
{
    const int64_t quotient = ember_divide(a, b);
    return quotient - (ember_remainder(a, b) != 0 && (a < 0) != (b < 0));
}

static inline int64_t ember_ceil_divide(int64_t a, int64_t b)
{
    const int64_t quotient = ember_divide(a, b);
    return quotient + (ember_remainder(a, b) != 0 && (a < 0) == (b < 0));
}

static inline float ember_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
"""
    + HALF_C
    + QUANTIZED_C
    + EXP_C
)

#: Words that no generated name may be.
RESERVED = frozenset(
    """
    auto bool break case char const continue default do double else enum extern float for goto if
    inline int long register restrict return short signed sizeof static struct switch typedef union
    unsigned void volatile while true false asm s fault errno NAN INFINITY NULL
    """.split()
)

_INFIX = {
    "addf": "+",
    "subf": "-",
    "mulf": "*",
    "divf": "/",
    "addi": "+",
    "subi": "-",
    "muli": "*",
    "andi": "&",
    "ori": "|",
    "xori": "^",
}
_CALLS = {
    "exp": "ember_exp",
    "fma": "fmaf",
    "divsi": "ember_divide",
    "remsi": "ember_remainder",
    "floordivsi": "ember_floor_divide",
    "ceildivsi": "ember_ceil_divide",
}
#: Functions of C on f64; those on f32 have an f behind their names.
_MATH = {
    "absf": "fabs",
    "ceil": "ceil",
    "floor": "floor",
    "trunc": "trunc",
    "roundeven": "rint",
    "sqrt": "sqrt",
    "copysign": "copysign",
}
_LARGER = ("maximumf", "minimumf", "maxnumf", "minnumf")
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_FLOAT_COMPARE = {
    "false": "false",
    "true": "true",
    "oeq": "{a} == {b}",
    "ogt": "{a} > {b}",
    "oge": "{a} >= {b}",
    "olt": "{a} < {b}",
    "ole": "{a} <= {b}",
    "one": "{a} < {b} || {a} > {b}",
    "ord": "{a} == {a} && {b} == {b}",
    "ueq": "!({a} < {b} || {a} > {b})",
    "ugt": "!({a} <= {b})",
    "uge": "!({a} < {b})",
    "ult": "!({a} >= {b})",
    "ule": "!({a} > {b})",
    "une": "{a} != {b}",
    "uno": "!({a} == {a} && {b} == {b})",
}


def expression(operation: str, type_: str, operands: list[str], source: str) -> str:
    """Return an operation in C.

    Parameters
    ----------
    operation, type_ : str
        As in `Compute`.
    operands : list of str
        In C; names or literals.
    source : str
        Type of the operands.
    """
    name, _, predicate = operation.partition("_")
    is_narrow = type_ in ("i8", "i16", "i32")
    match name:
        case "negf":
            return f"-{operands[0]}"
        case "rsqrt":
            return f"1 / {_math('sqrt', type_)}({operands[0]})"
        case "select":
            return "{} ? {} : {}".format(*operands)
        case "maxsi":
            return "{0} > {1} ? {0} : {1}".format(*operands)
        case "minsi":
            return "{0} < {1} ? {0} : {1}".format(*operands)
        case "cmpf":
            return _FLOAT_COMPARE[predicate].format(a=operands[0], b=operands[1])
        case "cmpi":
            return _compare_integers(predicate, operands, source)
        case "sitofp":
            return f"({C_TYPES[type_]}){'-' if source == 'i1' else ''}{operands[0]}"
        case "extf" | "truncf":
            return half_cast(source, type_, operands[0]) or f"({C_TYPES[type_]}){operands[0]}"
        case "fptosi" | "convert" | "extui":
            return _convert(name, type_, operands[0], source)
        case _ if name in _INFIX:
            text = f"{operands[0]} {_INFIX[name]} {operands[1]}"
            return f"({C_TYPES[type_]})({text})" if is_narrow else text
        case _ if name in _MATH:
            return f"{_math(name, type_)}({', '.join(operands)})"
        case _ if name in _LARGER:
            return f"ember_{name.removesuffix('f')}_{C_TYPES[type_]}({', '.join(operands)})"
        case _:
            text = f"{_CALLS[name]}({', '.join(operands)})"
            return f"({C_TYPES[type_]}){text}" if is_narrow else text


def _math(name: str, type_: str) -> str:
    """Return the function of C that is an operation on a type of float."""
    return _MATH[name] + ("f" if type_ == "f32" else "")


def _compare_integers(predicate: str, operands: list[str], source: str) -> str:
    compare = _COMPARE[predicate[-2:]]
    left, right = operands
    if predicate[0] == "u" and source != "i1":
        unsigned = f"u{C_TYPES[source]}"
        left, right = f"({unsigned}){left}", f"({unsigned}){right}"
    elif predicate[0] == "s" and source == "i1":
        left, right = right, left  # a signed true is -1
    return f"{left} {compare} {right}"


def _convert(name: str, type_: str, operand: str, source: str) -> str:
    if name == "extui" and source != "i1":
        operand = f"(u{C_TYPES[source]}){operand}"
    elif name == "convert" and source == "i1":
        operand = f"-(int64_t){operand}"
    elif name == "fptosi":
        operand = f"(int64_t){operand}"
    return f"({operand}) & 1" if type_ == "i1" else f"({C_TYPES[type_]})({operand})"


def literal(type_: str, value: float) -> str:
    """Return a constant in C."""
    if isinstance(value, int):
        if type_ == "i1":
            return "true" if value else "false"
        if value == -(1 << 63):
            return "INT64_MIN"
        text = f"INT64_C({value})" if abs(value) >= 1 << 31 else str(value)
        return f"({text})" if value < 0 else text
    if type_ in HALVES:
        bits = np.array(value).astype(ELEMENT_DTYPES[type_]).view(np.uint16)
        return f"{int(bits):#06x}"
    if value != value:
        return "NAN"
    if value in (float("inf"), float("-inf")):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    # Exact as f32, too: the shortest text of the f64 is nearest to it.
    text = f"{value!r}{'f' if type_ == 'f32' else ''}"
    return f"({text})" if text.startswith("-") else text
