# pyright: basic
"""Programs whose nests are divided for a reduce unit: sums across, the host, then weighted sums."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import ember_hw
from ember_hw.bench.fuzzing import op_models
from ember_hw.bench.fuzzing.fabric import CONFIGS
from ember_hw.compiler import compile_function
from ember_hw.compiler.program import Program
from ember_hw.compiler.tests.kernels import FUSEDMM
from ember_hw.errors import ProgramError
from ember_hw.host.bindings import binding_of
from ember_hw.host.device import Device, open_device
from ember_hw.host.reference import bit_equal

CONFIG = CONFIGS["stream"]
PLACES = [("fabric", "sum across"), ("fabric", "weighted sum")]
FUSED = [case for case in op_models.CASES if case.kind == "fusedmm"]
SIGMOID = next(case for case in FUSED if case.name == "fused_sigmoid")
#: The kernel, whose pointers it says never fall.
RISING = FUSEDMM.text.replace("ember.noalias}", 'ember.noalias, ember.rising = ["off"]}')


@pytest.fixture(scope="module", params=["c", "numpy"])
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    with open_device("interpreter", config=CONFIG, engine=request.param) as opened:
        yield opened


@cache
def model_program(
    case: op_models.OpCase, columns: int, edges: int, config: Any = CONFIG, **options: Any
) -> tuple[Program, Any]:
    random = np.random.default_rng(columns)
    inputs = tuple(torch.from_numpy(array) for array in case.inputs(random, columns, edges))
    model = op_models.Model(case.function, columns).requires_grad_(False)
    return ember_hw.compile(model, inputs, config=config, **options), inputs


@pytest.mark.parametrize(("case", "opt_level"), [(SIGMOID, 2), *((case, 3) for case in FUSED)])
def test_message_passing_is_exact(device: Device, case: op_models.OpCase, opt_level: int) -> None:
    program, inputs = model_program(case, 12, 9, opt_level=opt_level, execute="fabric")
    assert [nest[1:] for nest in program.placement] == PLACES
    found = np.asarray(device.run(program, inputs))
    assert bit_equal(found, np.asarray(binding_of(program).reference(program, inputs)))
    products, sums = device.report.nests
    assert (products.execute, products.results, products.leaving_bytes) == ("fabric", 9, 9 * 4)
    assert (sums.execute, sums.results, sums.leaving_bytes) == (
        "fabric",
        len(found),
        found.nbytes,
    )


@pytest.mark.parametrize("columns", [1, 3, 64])
def test_columns(device: Device, columns: int) -> None:
    program, inputs = model_program(SIGMOID, columns, 40)
    found = np.asarray(device.run(program, inputs))
    assert bit_equal(found, np.asarray(binding_of(program).reference(program, inputs)))
    assert device.report.leaving_bytes == 4 * 40 + found.nbytes


def test_a_graph_without_edges(device: Device) -> None:
    program, inputs = model_program(SIGMOID, 8, 6)
    nothing = tuple(part[..., :0] if part.dtype == torch.int64 else part for part in inputs)
    found = np.asarray(device.run(program, nothing))
    assert bit_equal(found, np.asarray(binding_of(program).reference(program, nothing)))
    assert not found.any()


def test_results_in_memory() -> None:
    program, inputs = model_program(SIGMOID, 8, 40, CONFIGS["memory"])
    with open_device("interpreter", config=CONFIGS["memory"]) as device:
        found = np.asarray(device.run(program, inputs))
    assert bit_equal(found, np.asarray(binding_of(program).reference(program, inputs)))


@cache
def compiled(execute: Any = "auto") -> Program:
    return compile_function(RISING, config=CONFIG, execute=execute)


def function_call(seed: int) -> dict[str, Any]:
    """Return a call of the kernel with odd numbers: the sums of some nodes are no numbers."""
    arguments = FUSEDMM.arguments(7, seed)
    table = next(array for array in arguments.values() if np.ndim(array) == 2)
    table[0, 0], table[1, -1], table[2, 0] = np.inf, np.nan, 1e-44
    return arguments


def test_a_function_gives_what_the_host_gives(device: Device) -> None:
    whole = compiled("host")
    divided = compiled()
    assert [nest[1:] for nest in divided.placement] == PLACES
    for seed in (1, 2):  # the second run takes its arrays to where those of the first lay
        found = device.run(divided, function_call(seed))
        assert device.report.leaving_bytes is not None
        leaving = device.report.leaving_bytes
        assert bit_equal(found, device.run(whole, function_call(seed)))
        assert leaving < device.report.leaving_bytes


def test_pointers_that_fall_are_refused(device: Device) -> None:
    program = compiled()
    arguments = FUSEDMM.arguments(7, 1)
    arguments["off"][2] = 5
    with pytest.raises(ValueError, match=r"ember\.rising") as caught:
        device.run(program, arguments)
    assert str(caught.value) == (
        "element 3 of off of program 'kernel' must be 5 or more, as the function says by "
        "'ember.rising', not 3"
    )


def test_an_array_that_does_not_begin_as_zeros_is_refused(device: Device) -> None:
    program = compiled()
    arguments = FUSEDMM.arguments(7, 1)
    arguments["out"][0, 0] = 1
    with pytest.raises(ProgramError, match=r"^array 'out' must begin as \+0 all over, as the "):
        device.run(program, arguments)


def test_a_program_file_holds_both_halves(device: Device, tmp_path: Path) -> None:
    program = compiled()
    program.save(tmp_path / "fused.ember")
    loaded = ember_hw.load(tmp_path / "fused.ember", CONFIG)
    assert loaded.placement == program.placement
    found = device.run(loaded, function_call(3))
    assert bit_equal(found, device.run(program, function_call(3)))
