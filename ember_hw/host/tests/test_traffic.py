from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_hw.compiler import compile_function
from ember_hw.compiler.pipeline import OPT_LEVELS
from ember_hw.compiler.tests.kernels import KERNELS, TRANSE, Kernel
from ember_hw.config import AcceleratorConfig
from ember_hw.host.bindings import Request, binding_of
from ember_hw.host.launch import LoadedProgram
from ember_hw.host.tests.programs import bag_program
from ember_hw.host.traffic import element_bytes, expected_calls, iterations
from ember_hw.isa import BoundSource, Microcode

CONFIG = AcceleratorConfig()
TABLE = np.zeros((10, 20), np.float32)
LARGE = AcceleratorConfig(
    name="large",
    traversal_units=4,
    streams_per_unit=8,
    row_entries=8,
    exports=16,
    bundle_scalars=8,
)


def units(*records: dict[str, int]) -> Microcode:
    named = {f"unit{k}": {"enable": 1, "step": 1} | r for k, r in enumerate(records)}
    return Microcode(CONFIG, named)


LOADED = {"export1": 2, "export2": 3}
SLOTS = {
    "lower_source": BoundSource.SLOT,
    "lower_export": 1,
    "upper_source": BoundSource.SLOT,
    "upper_export": 2,
}


@pytest.mark.parametrize(
    ("records", "arguments", "gathered", "expected"),
    [
        ([{"upper_immediate": 7}], (), None, [7]),
        ([{"upper_immediate": 7, "lower_immediate": 2, "step": 2}], (), None, [3]),
        ([{"upper_immediate": 2, "lower_immediate": 7}], (), None, [0]),
        ([SLOTS], (0, 3, 8), None, [5]),
        ([{"upper_source": BoundSource.LOWER_PLUS, "upper_immediate": 4}], (), None, [4]),
        ([{"upper_immediate": 3}, {"upper_immediate": 5, "step": 2}], (), None, [3, 9]),
        ([{"upper_immediate": 3} | LOADED, SLOTS], (), 11, [3, 11]),
        ([{"upper_immediate": 3} | LOADED, SLOTS], (), None, [3, None]),
        ([{"upper_immediate": 3} | LOADED, SLOTS | {"step": 2}], (), 11, [3, None]),
        # The induction variable isn't loaded, so these bounds are nobody's lookups.
        ([{"upper_immediate": 3, "export1": 1, "export2": 3}, SLOTS], (), 11, [3, None]),
        # Of two loops with bounds from memory the outer one has the lookups.
        (
            [{"upper_immediate": 3} | LOADED, SLOTS | LOADED, SLOTS],
            (),
            11,
            [3, 11, None],
        ),
        ([{"upper_immediate": 3} | LOADED, SLOTS, {"upper_immediate": 4}], (), 11, [3, 11, 44]),
        ([{"upper_immediate": 3, "pair": 1, "export1": 2, "export2": 4}, SLOTS], (), 11, [3, 11]),
    ],
)
def test_iterations(
    records: list[dict[str, int]], arguments: Any, gathered: int | None, expected: list[Any]
) -> None:
    assert iterations(units(*records), arguments, gathered) == expected


def bag_calls(opt_level: int) -> dict[int, int | None]:
    program = bag_program(TABLE, opt_level)
    request = binding_of(program).request(program, (np.array([1, 2, 3]), np.array([0, 1, 1, 2])))
    (launch,) = LoadedProgram(program).launches(request)
    return expected_calls(program.nests[0], launch, request.gathered)


def test_calls_of_a_bag_at_every_level() -> None:
    found = [bag_calls(opt_level) for opt_level in OPT_LEVELS]
    assert found == [{1: 3 * 20}, {1: 3 * 2}, {1: 3}, {1: 3, 2: 4}]


def test_elements_of_rows_are_counted_where_they_come_as_scalars() -> None:
    program = bag_program(TABLE, 0)
    assert element_bytes(program.nests[0], {1: 60}, program.arguments) == 240
    program = bag_program(TABLE, 2)
    assert element_bytes(program.nests[0], {1: 60}, program.arguments) == 0


def request_of(program: Any, inputs: Any) -> Request:
    return binding_of(program).request(program, inputs)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_no_kernel_s_calls_are_known_wrongly(kernel: Kernel) -> None:
    """`Device.run` would refuse a run whose calls aren't the expected ones."""
    program = compile_function(kernel.text, opt_level=2, config=LARGE)
    request = request_of(program, kernel.arguments(5, 0))
    for nest, launch in zip(program.nests, LoadedProgram(program).launches(request), strict=True):
        calls = expected_calls(nest, launch, None)
        assert calls.keys() == {callback.id for callback in nest.callbacks}


def test_calls_of_a_function_without_bounds_from_memory_are_known() -> None:
    program = compile_function(TRANSE.text, opt_level=3, config=LARGE)
    request = request_of(program, TRANSE.arguments(5, 0))
    (launch,) = LoadedProgram(program).launches(request)
    assert set(expected_calls(program.nests[0], launch, None).values()) == {5}
