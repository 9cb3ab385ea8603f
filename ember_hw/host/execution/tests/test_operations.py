"""Each operation on values at the edges: both engines agree with the interpreter."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
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
    Statement,
    Store,
)
from ember_hw.compiler.backend.execute_operations import (
    F32_ONLY,
    FLOAT_BINARY,
    FLOAT_PREDICATES,
    FLOAT_UNARY,
    INTEGER_BINARY,
    INTEGER_PREDICATES,
)
from ember_hw.compiler.element_dtypes import ELEMENT_DTYPES as DTYPES
from ember_hw.compiler.interpreters import interpret
from ember_hw.compiler.ir_text import parse_module
from ember_hw.host.execution.tests.codes import (
    CONFIG,
    ELEMENTS,
    EVENTS,
    chunk_of,
    nest_of,
    run_code,
)
from ember_hw.host.execution.tests.runs import ENGINES
from ember_hw.host.reference import bit_equal
from ember_hw.isa import event_mask

FLOATS = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5, 3e38, -1e-40, 0.7)
INTEGERS = {"i8": (-128, -7, -1, 0, 1, 3, 127), "i32": (-(2**31), -7, -1, 0, 2, 2**31 - 1)}
INTEGERS["i64"] = (-(2**63), -(2**40), -1, 0, 5, 2**63 - 1)
MATH = ("absf", "ceil", "floor", "trunc", "roundeven", "sqrt", "rsqrt", "exp", "copysign", "fma")


def code_of(operations: list[tuple[str, str, int]], source: str) -> ExecuteCode:
    """Return code that stores operation k on `a[i]`, `b[i]`, .. to `to_TYPE[k, i]`."""
    body: list[Statement] = [Load(x, f"in_{x}", ("i",)) for x in "abc"]
    body.append(Compute("is", "i1", "cmpi_eq", ("i", "c0")))
    for number, (operation, result, arity) in enumerate(operations):
        operands = ("a", "b", "c")[:arity] if operation != "select" else ("is", "a", "b")
        body.append(Compute(f"r{number}", result, operation, operands))
        body.append(Store(f"to_{result}", (f"k{number}", "i"), f"r{number}"))
    results = sorted({result for _, result, _ in operations})
    return ExecuteCode(
        memories=(
            *(Memory(f"in_{x}", source, 1) for x in "abc"),
            *(Memory(f"to_{result}", result, 2, True) for result in results),
        ),
        entry=(
            Constant("c0", "index", 0),
            Constant("c1", "index", 1),
            *(Constant(f"k{k}", "index", k) for k in range(len(operations))),
            Extent("n", "in_a", 0),
        ),
        cases=(Case(1, (For("i", "c0", "n", "c1", tuple(body)),)),),
        no_alias=True,
    )


def check(
    operations: list[tuple[str, str, int]], source: str, values: list[tuple[Any, ...]]
) -> None:
    """Run operations on tuples of values and compare with the interpreter."""
    code = code_of(operations, source)
    lists = zip(*values, strict=True)
    columns = {f"in_{x}": np.array(v, DTYPES[source]) for x, v in zip("abc", lists, strict=True)}
    runs: list[dict[str, NDArray[Any]]] = []
    for engine in ENGINES:
        arrays = dict(columns)
        for memory in code.memories[3:]:
            shape = len(operations), len(values)
            arrays[memory.symbol] = np.zeros(shape, DTYPES[memory.element])
        begin = event_mask([EVENTS[0]], CONFIG)
        nothing = np.zeros((1, 4), np.uint32)
        queues = chunk_of(nest_of(code), [begin], nothing, np.zeros((1, ELEMENTS), np.float32))
        run_code(code, [queues], arrays, engine)
        runs.append(arrays)
    for number, (operation, result, arity) in enumerate(operations):
        found = [arrays[f"to_{result}"][number] for arrays in runs]
        assert bit_equal(found[0], found[1]), operation
        if operation == "select":
            continue
        wanted = [interpreted(operation, result, source, v[:arity]) for v in values]
        assert bit_equal(found[0], np.array(wanted, DTYPES[result])), operation


def interpreted(operation: str, result: str, source: str, values: tuple[Any, ...]) -> Any:
    name, _, predicate = operation.partition("_")
    dialect = "math" if name in MATH else "arith"
    operands = ", ".join(("%a", "%b", "%c")[: len(values)])
    match name:
        case "cmpi" | "cmpf":
            text = f"arith.{name} {predicate}, {operands} : {source}"
        case "convert":
            cast = "extsi" if DTYPES[result].itemsize > DTYPES[source].itemsize else "trunci"
            text = f"arith.{cast} {operands} : {source} to {result}"
        case "extui" | "sitofp" | "fptosi" | "extf" | "truncf":
            text = f"arith.{name} {operands} : {source} to {result}"
        case _:
            text = f"{dialect}.{name} {operands} : {result}"
    parameters = ", ".join(f"%{x}: {source}" for x in "abc"[: len(values)])
    module = parse_module(
        f"func.func @f({parameters}) -> {result} {{ %r = {text}  func.return %r : {result} }}"
    )
    arguments = [DTYPES[source].type(v) if source in ("f32", "f64") else v for v in values]
    with np.errstate(all="ignore"):
        (found,) = interpret(module, "f", arguments).results
    return found


@pytest.mark.parametrize("source", ["f32", "f64"])
def test_float_operations(source: str) -> None:
    operations = [(name, source, 1) for name in FLOAT_UNARY]
    operations += [(name, source, 2) for name in FLOAT_BINARY]
    operations += [(f"cmpf_{predicate}", "i1", 2) for predicate in FLOAT_PREDICATES]
    operations += [("fma", source, 3), ("select", source, 3)]
    if source != "f32":
        operations = [item for item in operations if item[0] not in F32_ONLY]
    values = [(a, b, FLOATS[(i * 7) % 10]) for i, (a, b) in enumerate(product(FLOATS, FLOATS))]
    check(operations, source, values)


@pytest.mark.parametrize("source", INTEGERS)
def test_integer_operations(source: str) -> None:
    operations = [(name, source, 2) for name in INTEGER_BINARY]
    operations += [(f"cmpi_{predicate}", "i1", 2) for predicate in INTEGER_PREDICATES]
    operations += [("sitofp", "f32", 1), ("sitofp", "f64", 1), ("select", source, 3)]
    wider = [t for t in INTEGERS if DTYPES[t].itemsize > DTYPES[source].itemsize]
    narrower = [t for t in INTEGERS if DTYPES[t].itemsize < DTYPES[source].itemsize]
    operations += [("convert", t, 1) for t in (*wider, *narrower)]
    operations += [("extui", t, 1) for t in wider]
    values = [(a, b, 0) for a, b in product(INTEGERS[source], INTEGERS[source]) if b]
    check(operations, source, values)


@pytest.mark.parametrize("source", ["f32", "f64"])
def test_floats_become_integers(source: str) -> None:
    values = [(a, a, a) for a in (0.0, -0.5, 1.9, -2.9, 300.0, -3e9, 2.0**40)]
    check([("fptosi", t, 1) for t in INTEGERS], source, values)
