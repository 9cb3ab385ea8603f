"""Operations of execute code: their names, operands and results.

They mean what the ops of `arith` and `math` of the same name mean; `cmpi` and `cmpf` have the
predicate behind them (`cmpi_slt`). An index has 64 bits here and wraps like an i64.
"""

from __future__ import annotations

__all__ = [
    "F32_ONLY",
    "FLOATS",
    "FLOAT_BINARY",
    "FLOAT_CASTS",
    "FLOAT_UNARY",
    "HALVES",
    "INTEGERS",
    "INTEGER_BINARY",
    "check_operation",
]

INTEGERS = ("index", "i1", "i8", "i16", "i32", "i64")
FLOATS = ("f32", "f64")
#: Floats that are stored, moved and converted; nothing is computed in them.
HALVES = ("f16", "bf16")
#: Operations that are defined on f32 alone.
F32_ONLY = ("exp", "fma")

FLOAT_UNARY = (
    "negf",
    "absf",
    "ceil",
    "floor",
    "trunc",
    "roundeven",
    "sqrt",
    "rsqrt",
    "exp",
)
FLOAT_BINARY = (
    "addf",
    "subf",
    "mulf",
    "divf",
    "maximumf",
    "minimumf",
    "maxnumf",
    "minnumf",
    "copysign",
)
BITWISE = ("andi", "ori", "xori")
INTEGER_BINARY = (
    "addi",
    "subi",
    "muli",
    "divsi",
    "floordivsi",
    "ceildivsi",
    "remsi",
    "maxsi",
    "minsi",
    *BITWISE,
)
INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
FLOAT_PREDICATES = (
    "false",
    "oeq",
    "ogt",
    "oge",
    "olt",
    "ole",
    "one",
    "ord",
    "ueq",
    "ugt",
    "uge",
    "ult",
    "ule",
    "une",
    "uno",
    "true",
)

#: Casts of integers (signed, unsigned), between integers and floats.
CASTS = ("convert", "extui", "sitofp", "fptosi")
#: Casts between floats by name: source and result.
FLOAT_CASTS = {
    "extf": (("f16", "f32"), ("bf16", "f32"), ("f32", "f64")),
    "truncf": (("f32", "f16"), ("f32", "bf16"), ("f64", "f32")),
}


def check_operation(
    operation: str, result: str, operands: tuple[str, ...]
) -> tuple[str, object] | None:
    """Return a rule that the types of an operation break and what was found; None if legal."""
    name, _, predicate = operation.partition("_")
    is_float = result == "f32" or (result in FLOATS and operation not in F32_ONLY)
    match name:
        case _ if operation in FLOAT_UNARY:
            expected = (result,) if is_float else None
        case _ if operation in FLOAT_BINARY:
            expected = (result, result) if is_float else None
        case "fma":
            expected = (result,) * 3 if is_float else None
        case _ if operation in INTEGER_BINARY:
            is_legal = result in INTEGERS and (result != "i1" or operation in BITWISE)
            expected = (result, result) if is_legal else None
        case "cmpi" if predicate in INTEGER_PREDICATES:
            type_ = operands[0] if operands else ""
            expected = (type_, type_) if type_ in INTEGERS and result == "i1" else None
        case "cmpf" if predicate in FLOAT_PREDICATES:
            type_ = operands[0] if operands else ""
            expected = (type_, type_) if type_ in FLOATS and result == "i1" else None
        case "select":
            is_scalar = result in (*INTEGERS, *FLOATS, *HALVES)
            expected = ("i1", result, result) if is_scalar else None
        case _ if operation in FLOAT_CASTS:
            is_legal = len(operands) == 1 and (operands[0], result) in FLOAT_CASTS[operation]
            expected = operands if is_legal else None
        case _ if operation in CASTS:
            source = FLOATS if operation == "fptosi" else INTEGERS
            target = FLOATS if operation == "sitofp" else INTEGERS
            is_legal = len(operands) == 1 and operands[0] in source and result in target
            expected = operands if is_legal else None
        case _:
            return "a known one", operation
    if expected is None or operands != expected:
        return "one on values of its types", f"{operation} of {', '.join(operands)} to {result}"
    return None
