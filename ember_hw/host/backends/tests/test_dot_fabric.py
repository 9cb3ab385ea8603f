# pyright: basic
"""Programs that sum across rows on the simulated unit: answers, sinks, faults, other programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ember_hw.compiler import compile_function
from ember_hw.compiler.interpreters import interpret
from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.tests.kernels import KERNELS, Kernel
from ember_hw.errors import DeviceError
from ember_hw.host.backends.tests.test_results import CONFIG
from ember_hw.host.device import Device, open_device
from ember_hw.host.reference import bit_equal
from ember_hw.host.tests.test_dot_programs import EDGES, edges, odd
from ember_hw.registers import NO_UNIT, FaultCode, describe_fault
from ember_hw.sim.options import StallingSink

pytestmark = [pytest.mark.verilator, pytest.mark.timeout(900)]  # the first one builds the model

TRIPLES = [kernel for kernel in KERNELS if kernel.name in ("transe", "distmult")]


def open_unit(**options: Any) -> Device:
    return open_device("verilator", config=CONFIG, optimise=False, **options)


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    with open_unit() as opened:
        yield opened


def expected(kernel: Kernel, arguments: dict[str, Any]) -> np.ndarray:
    with np.errstate(all="ignore"):
        interpret(parse_module(kernel.text), "kernel", list(arguments.values()))
    return arguments["out"]


@pytest.mark.parametrize("kernel", TRIPLES, ids=str)
def test_results_are_those_of_scf(device: Device, kernel: Kernel) -> None:
    program = compile_function(kernel.text, config=CONFIG, execute="fabric")
    for columns in (1, 2, 7, 64, 1023):
        found = device.run(program, odd(kernel, columns))
        assert bit_equal(found, expected(kernel, odd(kernel, columns))), columns
        report = device.report
        assert (report.results, report.leaving_bytes) == (len(found), found.nbytes)
        assert report.rows == 3 * len(found)


def test_a_row_is_kept_for_those_of_its_neighbours(device: Device) -> None:
    program = compile_function(EDGES, config=CONFIG, execute="fabric")
    wanted = edges()
    interpret(parse_module(EDGES), "edges", list(wanted.values()))
    assert bit_equal(device.run(program, edges()), wanted["out"])


def test_a_slow_sink_takes_sums_later() -> None:
    program = compile_function(EDGES, config=CONFIG)
    wanted = edges()
    interpret(parse_module(EDGES), "edges", list(wanted.values()))
    with open_unit(sink=StallingSink(seed=3, stall_probability=0.9)) as device:
        assert bit_equal(device.run(program, edges()), wanted["out"])


def test_bags_and_sums_take_turns(device: Device) -> None:
    bags = next(kernel for kernel in KERNELS if kernel.name == "eb_sum")
    for kernel in (bags, TRIPLES[0], bags):
        program = compile_function(kernel.text, config=CONFIG, execute="fabric")
        found = device.run(program, kernel.arguments(7, 7))
        assert bit_equal(found, expected(kernel, kernel.arguments(7, 7)))


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        (("reduce", "format"), 1, FaultCode.UNEXPECTED_ROW_LENGTH),
        (("reduce1", "scaled"), 1, FaultCode.ILLEGAL_REDUCE_MICROCODE),
    ],
)
def test_a_fault_of_the_unit_stops_the_program_and_no_other(
    device: Device, field: tuple[str, str], value: int, code: FaultCode
) -> None:
    kernel = TRIPLES[0]
    program = compile_function(kernel.text, config=CONFIG)
    (nest,) = program.nests
    damaged = replace(nest, microcode=nest.microcode.with_fields({field: value}))
    with pytest.raises(DeviceError) as caught:
        device.run(replace(program, nests=(damaged,)), kernel.arguments(7, 7))
    assert str(caught.value).startswith(describe_fault(code, NO_UNIT, 0, 0))
    assert caught.value.code == code
    found = device.run(program, kernel.arguments(7, 7))
    assert bit_equal(found, expected(kernel, kernel.arguments(7, 7)))
