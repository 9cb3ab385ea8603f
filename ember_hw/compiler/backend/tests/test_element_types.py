"""Which elements decide the lanes; what can't be sent is refused in `host/tests/test_f64.py`."""

from __future__ import annotations

import pytest

from ember_hw.compiler.backend.element_types import narrowest_float_bytes
from ember_hw.compiler.backend.execute_operations import check_operation
from ember_hw.compiler.ir_text import parse_module


@pytest.mark.parametrize(
    ("arguments", "size"),
    [
        ("%a: memref<?xf32>", 4),
        ("%a: memref<?xf64>, %b: memref<?xi8>", 8),
        ("%a: memref<?xf64>, %b: memref<?x?xf32>", 4),
        ("%a: memref<?xi64>, %b: index", 4),
    ],
)
def test_the_narrowest_float_decides(arguments: str, size: int) -> None:
    module = parse_module(f"func.func @f({arguments}) {{ func.return }}")
    assert narrowest_float_bytes(module) == size


@pytest.mark.parametrize(("operation", "arity"), [("exp", 1), ("fma", 3)])
def test_operations_of_f32_alone(operation: str, arity: int) -> None:
    assert check_operation(operation, "f32", ("f32",) * arity) is None
    operands = ", ".join(("f64",) * arity)
    assert check_operation(operation, "f64", ("f64",) * arity) == (
        "one on values of its types",
        f"{operation} of {operands} to f64",
    )
