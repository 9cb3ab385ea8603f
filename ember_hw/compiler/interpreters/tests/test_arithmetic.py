from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ember_hw.compiler.interpreters.arithmetic import fused_multiply_add
from ember_hw.compiler.interpreters.tests.evaluate import evaluate, run, whole
from ember_hw.errors import UnsupportedError

NAN = math.nan


@pytest.mark.parametrize(
    ("op", "a", "b", "expected"),
    [
        ("addi", 3, -5, -2),
        ("subi", 3, -5, 8),
        ("muli", -3, 5, -15),
        ("divsi", -7, 2, -3),
        ("divsi", 7, -2, -3),
        ("divsi", -7, -2, 3),
        ("divsi", -6, 2, -3),
        ("floordivsi", -7, 2, -4),
        ("ceildivsi", -7, 2, -3),
        ("ceildivsi", 7, 2, 4),
        ("remsi", -7, 2, -1),
        ("remsi", 7, -2, 1),
        ("maxsi", -7, 2, 2),
        ("minsi", -7, 2, -7),
        ("andi", 6, 3, 2),
        ("ori", 6, 3, 7),
        ("xori", 6, 3, 5),
        ("shli", 3, 4, 48),
        ("shrsi", -8, 1, -4),
    ],
)
@pytest.mark.parametrize("type_", ["index", "i32"])
def test_integer_op(op: str, a: int, b: int, expected: int, type_: str) -> None:
    assert evaluate(f"arith.{op} %a, %b : {type_}", f"{type_} {type_}", type_, a, b) == expected


@pytest.mark.parametrize(
    ("op", "expected"),
    [("addi", [4, -9, 11]), ("divsi", [0, -5, 2]), ("maxsi", [3, 2, 8]), ("minsi", [1, -11, 3])],
)
def test_integer_op_works_lane_by_lane(op: str, expected: list[int]) -> None:
    lanes = f"""
    func.func @f() -> vector<3xi32> {{
      %a = arith.constant dense<[1, -11, 8]> : vector<3xi32>
      %b = arith.constant dense<[3, 2, 3]> : vector<3xi32>
      %r = arith.{op} %a, %b : vector<3xi32>
      func.return %r : vector<3xi32>
    }}"""
    (value,) = run(lanes).results

    assert value.dtype == np.int32
    assert value.tolist() == expected


def test_integer_arithmetic_wraps_to_its_width() -> None:
    assert evaluate("arith.addi %a, %b : i8", "i8 i8", "i8", 127, 1) == -128
    assert evaluate("arith.muli %a, %b : i32", "i32 i32", "i32", 1 << 20, 1 << 12) == 0


def test_index_arithmetic_does_not_wrap() -> None:
    assert (
        evaluate("arith.muli %a, %b : index", "index index", "index", 1 << 40, 1 << 40) == 1 << 80
    )


def test_division_by_zero_is_refused() -> None:
    with pytest.raises(ZeroDivisionError, match=whole("divisor must be other than 0, not 0")):
        evaluate("arith.divsi %a, %b : index", "index index", "index", 1, 0)


def test_arithmetic_on_i1_is_refused() -> None:
    message = "type of arith.addi must be other than i1 to be interpreted, not i1"
    with pytest.raises(UnsupportedError, match=whole(message)):
        evaluate("arith.addi %a, %b : i1", "i1 i1", "i1", 1, 1)


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("eq", [False, True, False]),
        ("ne", [True, False, True]),
        ("slt", [True, False, False]),
        ("sle", [True, True, False]),
        ("sgt", [False, False, True]),
        ("sge", [False, True, True]),
        ("ult", [False, False, True]),
        ("ule", [False, True, True]),
        ("ugt", [True, False, False]),
        ("uge", [True, True, False]),
    ],
)
def test_integer_comparison(predicate: str, expected: list[bool]) -> None:
    op = f"arith.cmpi {predicate}, %a, %b : i32"
    pairs = [(-1, 2), (2, 2), (2, -1)]
    assert [evaluate(op, "i32 i32", "i1", a, b) for a, b in pairs] == expected


def test_comparison_of_i1_counts_true_as_minus_one() -> None:
    assert evaluate("arith.cmpi slt, %a, %b : i1", "i1 i1", "i1", 1, 0) is True
    assert evaluate("arith.cmpi ult, %a, %b : i1", "i1 i1", "i1", 1, 0) is False


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        # of (1, 2), (2, 2), (3, 2), (NaN, 2)
        ("false", "...."),
        ("oeq", ".x.."),
        ("ogt", "..x."),
        ("oge", ".xx."),
        ("olt", "x..."),
        ("ole", "xx.."),
        ("one", "x.x."),
        ("ord", "xxx."),
        ("ueq", ".x.x"),
        ("ugt", "..xx"),
        ("uge", ".xxx"),
        ("ult", "x..x"),
        ("ule", "xx.x"),
        ("une", "x.xx"),
        ("uno", "...x"),
        ("true", "xxxx"),
    ],
)
def test_float_comparison(predicate: str, expected: str) -> None:
    op = f"arith.cmpf {predicate}, %a, %b : f32"
    found = [evaluate(op, "f32 f32", "i1", a, 2.0) for a in (1.0, 2.0, 3.0, NAN)]
    assert "".join("x" if value else "." for value in found) == expected


@pytest.mark.parametrize(
    ("op", "a", "b", "expected"),
    [
        ("addf", 1.5, 2.25, 3.75),
        ("subf", 1.5, 2.25, -0.75),
        ("mulf", 1.5, 2.0, 3.0),
        ("divf", 1.0, 0.0, math.inf),
        ("maximumf", 1.0, NAN, NAN),
        ("maximumf", -0.0, 0.0, 0.0),
        ("minimumf", 0.0, -0.0, -0.0),
        ("minimumf", 3.0, 2.0, 2.0),
        ("maxnumf", 1.0, NAN, 1.0),
        ("minnumf", NAN, 2.0, 2.0),
    ],
)
def test_float_op_is_that_of_ieee(op: str, a: float, b: float, expected: float) -> None:
    value = evaluate(f"arith.{op} %a, %b : f32", "f32 f32", "f32", a, b)

    assert value.dtype == np.float32
    np.testing.assert_array_equal(value, np.float32(expected))
    assert np.signbit(value) == np.signbit(np.float32(expected))


@pytest.mark.parametrize(("type_", "dtype"), [("f16", np.float16), ("f64", np.float64)])
def test_float_op_rounds_in_its_own_type(type_: str, dtype: type[np.floating[Any]]) -> None:
    op = f"arith.addf %a, %b : {type_}"
    value = evaluate(op, f"{type_} {type_}", type_, dtype(1.0), dtype(0.1))

    assert value.dtype == dtype
    assert value == dtype(1.0) + dtype(0.1)


@pytest.mark.parametrize(
    ("op", "value", "expected"),
    [
        ("arith.negf", 0.0, -0.0),
        ("math.absf", -2.0, 2.0),
        ("math.exp", 1.0, np.exp(np.float64(1))),  # rounded once, to f32
        ("math.sqrt", 2.0, np.sqrt(np.float32(2))),
        ("math.log", 2.0, np.log(np.float32(2))),
        ("math.floor", -1.5, -2.0),
        ("math.roundeven", 2.5, 2.0),
    ],
)
def test_unary_float_op(op: str, value: float, expected: float) -> None:
    found = evaluate(f"{op} %a : f32", "f32", "f32", value)

    assert found.dtype == np.float32
    assert found == np.float32(expected)
    assert np.signbit(found) == np.signbit(np.float32(expected))


def test_select_takes_the_first_value_on_true() -> None:
    op = "arith.select %a, %b, %c : f32"
    assert evaluate(op, "i1 f32 f32", "f32", 1, 2.0, 3.0) == 2
    assert evaluate(op, "i1 f32 f32", "f32", 0, 2.0, 3.0) == 3


@pytest.mark.parametrize(
    ("op", "source", "target", "value", "expected"),
    [
        ("index_cast", "index", "i32", (1 << 31) + 5, -(1 << 31) + 5),
        ("index_cast", "i32", "index", -4, -4),
        ("extsi", "i8", "i32", -4, -4),
        ("extsi", "i1", "i32", 1, -1),
        ("extui", "i8", "i32", -4, 252),
        ("extui", "i1", "i32", 1, 1),
        ("trunci", "i32", "i8", 300, 44),
        ("sitofp", "i32", "f32", -3, -3.0),
        ("fptosi", "f32", "i32", -3.75, -3),
        ("extf", "f32", "f64", 0.1, float(np.float32(0.1))),
        ("truncf", "f64", "f32", 0.1, float(np.float32(0.1))),
    ],
)
def test_cast(op: str, source: str, target: str, value: float, expected: float) -> None:
    assert evaluate(f"arith.{op} %a : {source} to {target}", source, target, value) == expected


def test_integer_becomes_a_float_in_one_rounding() -> None:
    # By way of float64 this would be rounded up to even, then down.
    value = (1 << 60) + (1 << 36) + 1
    assert evaluate("arith.sitofp %a : i64 to f32", "i64", "f32", value) == 2.0**60 + 2.0**37


@pytest.mark.parametrize(
    ("text", "type_", "expected"),
    [
        ("arith.constant true", "i1", True),
        ("arith.constant -7 : i32", "i32", -7),
        ("arith.constant 2.5 : f32", "f32", np.float32(2.5)),
    ],
)
def test_constant(text: str, type_: str, expected: object) -> None:
    value = evaluate(text, "", type_)
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("text", "type_", "dtype", "expected"),
    [
        ("dense<[true, false]>", "vector<2xi1>", np.bool_, [True, False]),
        ("dense<3>", "vector<2xindex>", np.int64, [3, 3]),
        ("dense<0.5>", "vector<2xf32>", np.float32, [0.5, 0.5]),
    ],
)
def test_dense_constant(
    text: str, type_: str, dtype: type[np.generic], expected: list[object]
) -> None:
    value = evaluate(f"arith.constant {text} : {type_}", "", type_)
    assert value.dtype == dtype
    assert value.tolist() == expected


@pytest.mark.parametrize(("op", "source", "target"), [("extf", 32, 64), ("truncf", 64, 32)])
def test_float_cast_works_lane_by_lane(op: str, source: int, target: int) -> None:
    text = f"""
    func.func @f() -> vector<2xf{target}> {{
      %a = arith.constant dense<[0.5, 0.1]> : vector<2xf{source}>
      %r = arith.{op} %a : vector<2xf{source}> to vector<2xf{target}>
      func.return %r : vector<2xf{target}>
    }}"""
    (value,) = run(text).results
    assert value.dtype == np.dtype(f"f{target // 8}")
    assert value.tolist() == [0.5, float(np.float32(0.1))]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_fused_multiply_add_rounds_once(dtype: type[np.floating[Any]]) -> None:
    random = np.random.default_rng(0)
    values = random.standard_normal((3, 50)).astype(dtype)
    values[2, :25] = -values[0, :25] * values[1, :25]  # what is left is the product's own error
    found = fused_multiply_add(*values)
    for a, b, c, fused in zip(*values, found, strict=True):
        exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
        distance = abs(Fraction(float(fused)) - exact)
        for neighbour in (np.nextafter(fused, dtype(-np.inf)), np.nextafter(fused, dtype(np.inf))):
            assert distance <= abs(Fraction(float(neighbour)) - exact)
    assert (found[:25] != 0).any()


def test_a_fused_multiply_add_of_what_is_not_finite_is_that_of_ieee() -> None:
    inf, one = np.float32(np.inf), np.float32(1)
    with np.errstate(all="ignore"):
        assert fused_multiply_add(inf, one, one) == inf
        assert np.isnan(fused_multiply_add(inf, np.float32(0), one))
        assert fused_multiply_add(np.float32(3e38), np.float32(3e38), one) == inf
        assert np.signbit(fused_multiply_add(np.float32(-0.0), one, np.float32(-0.0)))
