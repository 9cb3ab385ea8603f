"""f16 and bf16 on the execute side: every pattern of bits out, every rounding back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ember_hw.compiler.backend.execute_code import (
    Case,
    Compute,
    Constant,
    ExecuteCode,
    Extent,
    For,
    Load,
    Memory,
    Pop,
    ReadRow,
    Store,
)
from ember_hw.compiler.backend.execute_operations import check_operation
from ember_hw.compiler.element_dtypes import BFLOAT16, ELEMENT_DTYPES, is_float, tensor_array
from ember_hw.errors import ProgramError
from ember_hw.host.execution import ExecuteSide
from ember_hw.host.execution.tests.codes import (
    CONFIG,
    ELEMENTS,
    EVENTS,
    chunk_of,
    nest_of,
    run_code,
)
from ember_hw.host.execution.tests.runs import ENGINES
from ember_hw.host.execution.tests.test_operations import FLOATS, check
from ember_hw.host.reference import bit_equal
from ember_hw.isa import event_mask

HALVES = ("f16", "bf16")


def convert(values: NDArray[Any], operation: str, source: str, result: str, engine: Any) -> Any:
    """Return values after a cast by an engine."""
    code = ExecuteCode(
        (Memory("x", source, 1), Memory("y", result, 1, True)),
        entry=(Constant("c0", "index", 0), Constant("c1", "index", 1), Extent("n", "x", 0)),
        cases=(
            Case(
                1,
                (
                    For(
                        "i",
                        "c0",
                        "n",
                        "c1",
                        (
                            Load("a", "x", ("i",)),
                            Compute("b", result, operation, ("a",)),
                            Store("y", ("i",), "b"),
                        ),
                    ),
                ),
            ),
        ),
        no_alias=True,
    )
    arrays = {"x": values, "y": np.zeros(values.size, ELEMENT_DTYPES[result])}
    begin = event_mask([EVENTS[0]], CONFIG)
    nothing = np.zeros((1, 4), np.uint32)
    queues = chunk_of(nest_of(code), [begin], nothing, np.zeros((1, ELEMENTS), np.float32))
    run_code(code, [queues], arrays, engine)
    return arrays["y"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("half", HALVES)
def test_every_pattern_of_bits_becomes_its_f32(half: str, engine: Any) -> None:
    values = patterns(half)
    found = convert(values, "extf", half, "f32", engine)
    with np.errstate(invalid="ignore"):  # NaNs that signal
        assert bit_equal(found, values.astype(np.float32))
    back = convert(found, "truncf", "f32", half, engine)
    assert bit_equal(back, values)


def patterns(half: str) -> NDArray[Any]:
    """Return all numbers of a half type, those without a sign first."""
    return np.arange(1 << 16).astype(np.uint16).view(ELEMENT_DTYPES[half])


def around(half: str) -> NDArray[np.float32]:
    """Return f32 numbers on, just below and just above the middles of neighbours of a half."""
    with np.errstate(all="ignore"):
        values = patterns(half)[: 1 << 15].astype(np.float64)
        middles = ((values[1:] + values[:-1]) / 2).astype(np.float32)
    near = [np.nextafter(middles, np.float32(x)) for x in (0, np.inf)]
    edges = np.array([65519.998, 65520, 65504, 3.4e38, 3.39e38, 1e-45, 2.0**-25, 0], np.float32)
    magnitudes = np.concatenate((middles, *near, edges))
    return np.concatenate((magnitudes, -magnitudes))


def nearest_even(values: NDArray[np.float32], half: str) -> NDArray[Any]:
    """Round by a search among all numbers of the half type, the largest with a step beyond it."""
    with np.errstate(invalid="ignore"):
        numbers = patterns(half)[: 1 << 15].astype(np.float64)
    last = int(np.flatnonzero(np.isinf(numbers))[0])
    numbers = numbers[: last + 1]
    numbers[last] = 2 * numbers[last - 1] - numbers[last - 2]
    sought = np.abs(values.astype(np.float64))
    above = np.clip(np.searchsorted(numbers, sought), 1, last)
    below = above - 1
    down, up = sought - numbers[below], numbers[above] - sought
    chosen = np.where((down < up) | ((down == up) & (below % 2 == 0)), below, above)
    bits = chosen.astype(np.uint16) | (np.signbit(values).astype(np.uint16) << 15)
    return bits.astype(np.uint16).view(ELEMENT_DTYPES[half])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("half", HALVES)
def test_f32_is_rounded_to_nearest_even(half: str, engine: Any) -> None:
    values = around(half)
    values = values[np.isfinite(values)]
    found = convert(values, "truncf", "f32", half, engine)
    assert bit_equal(found, nearest_even(values, half))
    wild = np.random.default_rng(3).integers(0, 1 << 32, 50_000, np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        expected = wild.astype(ELEMENT_DTYPES[half])
    assert bit_equal(convert(wild, "truncf", "f32", half, engine), expected)


@pytest.mark.parametrize("half", HALVES)
def test_casts_are_those_of_the_interpreter(half: str) -> None:
    values = [(a, a, a) for a in FLOATS]
    check([("truncf", half, 1), ("extf", "f64", 1)], "f32", values)
    check([("extf", "f32", 1), ("select", half, 3)], half, [v for v in values if v[0] != 3e38])


def test_f64_becomes_f32() -> None:
    check([("truncf", "f32", 1)], "f64", [(a, a, a) for a in (*FLOATS, 1 + 2.0**-24, 1e300)])


#: A weight and a row of halves are popped; their product is stored as a half.
def pooled(half: str) -> ExecuteCode:
    body = (
        ReadRow("x", "row", "i"),
        Compute("wide", "f32", "extf", ("x",)),
        Compute("p", "f32", "mulf", ("factor", "wide")),
        Compute("q", half, "truncf", ("p",)),
        Store("y", ("i",), "q"),
        Store("z", ("i",), "two"),
    )
    return ExecuteCode(
        (Memory("y", half, 1, True), Memory("z", half, 1, True)),
        entry=(
            Constant("c0", "index", 0),
            Constant("c1", "index", 1),
            Constant("two", half, 2.0),
            Extent("n", "y", 0),
        ),
        cases=(
            Case(
                1,
                (
                    Pop("w", half),
                    Pop("row", f"row<{half}>"),
                    Compute("factor", "f32", "extf", ("w",)),
                    For("i", "c0", "n", "c1", body),
                ),
            ),
        ),
        no_alias=True,
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("half", HALVES)
def test_scalars_and_rows_are_popped(half: str, engine: Any) -> None:
    dtype = ELEMENT_DTYPES[half]
    row = np.linspace(-3, 4, 2 * ELEMENTS).astype(dtype)
    weight = np.array([-1.25], dtype)
    code = pooled(half)
    arrays: dict[str, Any] = {name: np.zeros(11, dtype) for name in "yz"}
    # The queue's upper bits are those of a sign.
    scalars = np.array([[0xFFFF0000 | int(weight.view(np.uint16)[0]), 0, 0, 0]], np.uint32)
    begin = event_mask([EVENTS[0]], CONFIG)
    queues = chunk_of(nest_of(code), [begin], scalars, row.view(np.float32)[None])
    run_code(code, [queues], arrays, engine)
    expected = (weight.astype(np.float32) * row.astype(np.float32)).astype(dtype)[:11]
    assert bit_equal(arrays["y"], expected)
    assert bit_equal(arrays["z"], np.full(11, 2, dtype))


@pytest.mark.parametrize(
    ("operation", "result", "source"),
    [
        ("addf", "f16", "f16"),
        ("extf", "f64", "bf16"),
        ("truncf", "f16", "bf16"),
        ("cmpf_oeq", "i1", "f16"),
    ],
)
def test_nothing_is_computed_in_halves(operation: str, result: str, source: str) -> None:
    operands = (source,) * (1 if operation in ("extf", "truncf") else 2)
    assert check_operation(operation, result, operands) == (
        "one on values of its types",
        f"{operation} of {', '.join(operands)} to {result}",
    )


def test_a_half_isn_t_popped_as_another_float() -> None:
    code = pooled("f16")
    nest = nest_of(code)
    operands = (replace(nest.callbacks[0].operands[0], dtype="bf16"), nest.callbacks[0].operands[1])
    other = replace(nest, callbacks=(replace(nest.callbacks[0], operands=operands),))
    with pytest.raises(ProgramError) as error:
        ExecuteSide(other, {}, {}, "numpy")
    assert str(error.value) == (
        "operand 0 of callback 1 must be a scalar of dtype f16, not a scalar of bf16"
    )


def test_bfloat16_is_a_float_of_torch_and_numpy() -> None:
    assert is_float(BFLOAT16)
    tensor = torch.tensor([1.5, -2.0], dtype=torch.bfloat16)
    assert tensor_array(tensor).tolist() == [1.5, -2.0]
    assert tensor_array(tensor).dtype == BFLOAT16
