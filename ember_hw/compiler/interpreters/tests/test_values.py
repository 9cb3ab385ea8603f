from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_hw.compiler.interpreters.tests.evaluate import evaluate, run, whole
from ember_hw.errors import UnsupportedError


@pytest.mark.parametrize(
    ("type_", "value", "error", "message"),
    [
        (
            "memref<?xf32>",
            [1.0],
            TypeError,
            "argument 0 must be an array of float32 for memref<?xf32>, not list",
        ),
        (
            "memref<?xindex>",
            np.zeros(3, np.int32),
            TypeError,
            "argument 0 must be an array of int64 for memref<?xindex>, not int32",
        ),
        (
            "memref<?x4xf32>",
            np.zeros((2, 3), np.float32),
            ValueError,
            "argument 0 must be of a shape that fits memref<?x4xf32>, not (2, 3)",
        ),
        (
            "memref<?x?xf32>",
            np.zeros(2, np.float32),
            ValueError,
            "argument 0 must be of a shape that fits memref<?x?xf32>, not (2,)",
        ),
        ("index", 1.5, TypeError, "argument 0 must be an integer for index, not 1.5"),
        ("f32", 1, TypeError, "argument 0 must be a float for f32, not 1"),
    ],
)
def test_argument_of_another_type_is_refused(
    type_: str, value: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=whole(message)):
        run(f"func.func @f(%a: {type_}) {{ func.return }}", value)


def test_scalar_arguments_become_values_of_their_type() -> None:
    assert evaluate("arith.addi %a, %b : i8", "i8 i8", "i8", np.int64(-1), 256) == -1
    assert evaluate("arith.negf %a : f32", "f32", "f32", 0.1) == -np.float32(0.1)


def test_element_type_without_a_dtype_is_refused() -> None:
    message = (
        "element type must be index, i1, i8, i16, i32, i64, f16, bf16, f32 or f64 to be "
        "interpreted, not f128"
    )
    with pytest.raises(UnsupportedError, match=whole(message)):
        evaluate("arith.constant 1.0 : f128", "", "f128")


def test_constant_of_another_kind_is_refused() -> None:
    message = (
        "constant must be an integer, a float or a dense vector to be interpreted, "
        "not dense<1> : tensor<2xi32>"
    )
    with pytest.raises(UnsupportedError, match=whole(message)):
        evaluate("arith.constant dense<1> : tensor<2xi32>", "", "tensor<2xi32>")
