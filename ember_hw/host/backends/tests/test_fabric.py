# pyright: basic
"""Compiled programs on the simulated unit with a reduce unit: answers, sinks, faults."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ember_hw.compiler import compile_function
from ember_hw.compiler.interpreters import interpret
from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.program import Program
from ember_hw.compiler.tests.kernels import KERNELS, Kernel
from ember_hw.errors import DeviceError, ProgramError
from ember_hw.host.backends.tests.test_results import CONFIG
from ember_hw.host.device import Device, open_device
from ember_hw.host.reference import bit_equal
from ember_hw.host.tests.test_fabric import TWO_NESTS, two_nests
from ember_hw.registers import NO_UNIT, FaultCode, describe_fault

pytestmark = [pytest.mark.verilator, pytest.mark.timeout(900)]  # the first one builds the model

BAGS = [kernel for kernel in KERNELS if kernel.name in ("eb_sum", "eb_mean", "eb_max", "spmm")]


def open_unit(**options: Any) -> Device:
    return open_device("verilator", config=CONFIG, optimise=False, **options)


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    with open_unit() as opened:
        yield opened


def expected(kernel: Kernel, columns: int) -> np.ndarray:
    arguments = kernel.arguments(columns, columns)
    interpret(parse_module(kernel.text), "kernel", list(arguments.values()))
    return arguments["out"]


def compiled(kernel: Kernel) -> Program:
    return compile_function(kernel.text, config=CONFIG, execute="fabric")


@pytest.mark.parametrize("kernel", BAGS, ids=str)
def test_results_are_those_of_scf(device: Device, kernel: Kernel) -> None:
    program = compiled(kernel)
    for columns in (1, 2, 7, 64, 1023):
        found = device.run(program, kernel.arguments(columns, columns))
        assert bit_equal(found, expected(kernel, columns)), columns
        report = device.report
        assert (report.results, report.leaving_bytes) == (len(found), found.nbytes)
        assert report.rows == 8


def test_a_slow_sink_takes_results_later() -> None:
    (kernel,) = (kernel for kernel in BAGS if kernel.name == "eb_sum")
    cycles: list[int] = []
    for sink in ("ideal", "core-like"):
        with open_unit(sink=sink) as device:
            found = device.run(compiled(kernel), kernel.arguments(64, 64))
            assert bit_equal(found, expected(kernel, 64))
            assert device.report.cycles is not None
            cycles.append(device.report.cycles)
    ideal, slow = cycles
    assert slow > ideal


def test_several_nests_run_one_after_the_other(device: Device) -> None:
    program = compile_function(TWO_NESTS, config=CONFIG)
    arguments, wanted = (two_nests(np.array([3, 8, 3, 0, 1])) for _ in range(2))
    interpret(parse_module(TWO_NESTS), "two", list(wanted.values()))
    total, dots = device.run(program, arguments)
    assert bit_equal(total, wanted["sum"])
    assert bit_equal(dots, wanted["dot"])
    assert [nest.results for nest in device.report.nests] == [1, 5]


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        (("reduce", "format"), 1, FaultCode.UNEXPECTED_ROW_LENGTH),
        (("reduce1", "emit_events"), 1, FaultCode.ILLEGAL_REDUCE_MICROCODE),  # not told
    ],
)
def test_a_fault_of_the_unit_stops_the_program_and_no_other(
    device: Device, field: tuple[str, str], value: int, code: FaultCode
) -> None:
    (kernel,) = (kernel for kernel in BAGS if kernel.name == "eb_sum")
    program = compiled(kernel)
    (nest,) = program.nests
    damaged = replace(nest, microcode=nest.microcode.with_fields({field: value}))
    with pytest.raises(DeviceError) as caught:
        device.run(replace(program, nests=(damaged,)), kernel.arguments(7, 7))
    assert str(caught.value).startswith(describe_fault(code, NO_UNIT, 0, 0))
    assert caught.value.code == code
    assert bit_equal(device.run(program, kernel.arguments(7, 7)), expected(kernel, 7))


def test_rows_that_cannot_leave_are_refused(device: Device) -> None:
    (kernel,) = (kernel for kernel in BAGS if kernel.name == "eb_sum")
    program = compile_function(kernel.text, config=CONFIG, opt_level=1)
    with pytest.raises(ProgramError) as caught:
        device.run(program, kernel.arguments(7, 7))
    assert str(caught.value) == (
        "rows of nest 'kernel' must leave through the reduce unit of config 'tiny that reduces', "
        "and can't: its rows come in parts: opt levels 2 and 3 send them whole; compile it for a "
        "config with execute='queues'"
    )
