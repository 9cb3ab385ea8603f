# pyright: basic
"""Every kernel at every level: dlc, access-unit text and microcode agree with scf bit for bit."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ember_hw.compiler.backend.exports import LimitError
from ember_hw.compiler.backend.lower import Lowered, lower
from ember_hw.compiler.dialects.au_program import read_program
from ember_hw.compiler.interpreters import Schedule, interpret, run_au
from ember_hw.compiler.interpreters.microcode_function import run_microcode
from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.pipeline import OPT_LEVELS
from ember_hw.compiler.tests.kernels import BB_PV, BB_QK, EB_MAX, EB_MULTI, KERNELS, TRANSE, Kernel
from ember_hw.config import AcceleratorConfig
from ember_hw.host.reference import bit_equal

#: The default but for the bus, and what three rows or five scalars need: relays are wanted here.
SMALL = AcceleratorConfig(
    name="small", data_width_bits=128, row_entries=3, exports=6, bundle_scalars=5
)
#: Room for everything but units.
LARGE = AcceleratorConfig(
    name="large",
    data_width_bits=128,
    traversal_units=4,
    streams_per_unit=8,
    row_entries=8,
    exports=16,
    bundle_scalars=8,
)
CONFIGS = {"small": SMALL, "large": LARGE}
COLUMNS = (1, 7)


@cache
def expected(kernel: Kernel, columns: int, seed: int) -> NDArray[np.float32]:
    arguments = kernel.arguments(columns, seed)
    interpret(parse_module(kernel.text), "kernel", list(arguments.values()))
    return arguments["out"]


def symbols(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments and the dimensions of tables, which `run_au` doesn't derive."""
    dims = {
        f"{name}.dim{k}": extent
        for name, value in arguments.items()
        if isinstance(value, np.ndarray)
        for k, extent in enumerate(value.shape)
    }
    return {**arguments, **dims}


def units(lowered: Lowered) -> list[list[str]]:
    return [
        ["relay" if unit.is_relay else "loop" for unit in read_program(program).units]
        for program in lowered.programs
    ]


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("opt_level", OPT_LEVELS)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_microcode_agrees_with_every_level_above(
    kernel: Kernel, opt_level: int, config: str
) -> None:
    module = parse_module(kernel.text)
    lowered = lower(module, opt_level, CONFIGS[config], may_leave_loops=True)
    for seed, columns in enumerate(COLUMNS):
        runs: list[dict[str, Any]] = [kernel.arguments(columns, seed) for _ in range(3)]
        dlc, au, microcode = (list(arguments.values()) for arguments in runs)
        counts = [
            interpret(module, "kernel", dlc).counts,
            run_au(lowered.programs, module, "kernel", au, symbols(runs[1])).counts,
            run_microcode(
                lowered.assemblies, module, "kernel", microcode, runs[2],
                schedule=(Schedule.AHEAD, Schedule.LOCKSTEP)[seed % 2],
            ).counts,
        ]  # fmt: skip
        for arguments in runs:
            assert bit_equal(arguments["out"], expected(kernel, columns, seed))
        assert counts[0] == counts[1] == counts[2]


@pytest.mark.parametrize(
    ("kernel", "opt_level", "config", "found"),
    [
        # A third index stream has no place beside two others; it has with eight streams.
        (TRANSE, 2, "small", [["loop", "relay"]]),
        (TRANSE, 2, "large", [["loop"]]),
        # An address of three terms needs none.
        (EB_MULTI, 2, "small", [["loop", "loop", "loop"]]),
        # Two products and two sums on two loops would need five units: the execute side computes.
        (BB_PV, 2, "large", [["loop", "loop", "loop"]]),
    ],
    ids=str,
)
def test_units_and_relays(
    kernel: Kernel, opt_level: int, config: str, found: list[list[str]]
) -> None:
    assert units(lower(parse_module(kernel.text), opt_level, CONFIGS[config])) == found


def test_loops_that_have_no_unit_are_the_execute_sides_and_are_reported() -> None:
    result = lower(parse_module(BB_QK.text), 0, LARGE, may_leave_loops=True).result
    reasons = [decision.reason for decision in result.decisions if "scf.for" in decision.op]
    assert reasons[:2] == ["", ""]
    assert reasons[2] == "it holds no load that the access unit can do"


def test_loops_are_left_on_request_only() -> None:
    with pytest.raises(LimitError) as raised:
        lower(parse_module(BB_QK.text), 0, LARGE)
    assert str(raised.value) == (
        "au: 'au.tu t4': needs unit 4, config 'large' has 4 (limit traversal_units)"
    )


def test_a_limit_of_something_else_is_named() -> None:
    with pytest.raises(LimitError) as raised:
        lower(parse_module(EB_MAX.text), 0, SMALL.with_changes(bundle_scalars=4))
    assert str(raised.value) == (
        "au: 'au.push t1 end': needs scalar 4 for s1, config 'small' has 4 (limit bundle_scalars)"
    )
    assert raised.value.limit == "bundle_scalars"


def test_units_that_nothing_helps_are_named_as_of_the_first_choice() -> None:
    config = SMALL.with_changes(traversal_units=1, streams_per_unit=1)
    with pytest.raises(LimitError) as raised:
        lower(parse_module(TRANSE.text), 2, config)
    assert str(raised.value) == (
        "au: 'au.mem s1 on t0': needs a relay below t0, so 3 units in all, config 'small' has 1 "
        "(limit traversal_units; a config with 3 would do)"
    )
