"""Microcode in place of access programs: what is refused. Answers are compared in `test_lower`."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from ember_hw.compiler.backend.lower import Lowered, lower
from ember_hw.compiler.interpreters.microcode_function import bind, place_arrays, run_microcode
from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.pipeline import run_pipeline
from ember_hw.compiler.tests.kernels import EB_SUM, Kernel
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import CheckError

CONFIG = AcceleratorConfig(data_width_bits=128)


def lowered(opt_level: int, kernel: Kernel = EB_SUM) -> tuple[ModuleOp, Lowered]:
    module = parse_module(kernel.text)
    return module, lower(module, opt_level, CONFIG)


def refused(module: ModuleOp, assemblies: Any) -> str:
    arguments = EB_SUM.arguments(7, 0)
    with pytest.raises(CheckError) as raised:
        run_microcode(assemblies, module, "kernel", list(arguments.values()), arguments)
    return str(raised.value)


def test_there_is_one_program_for_each_compute_loop() -> None:
    module, result = lowered(3)
    assert refused(module, [*result.assemblies, *result.assemblies]) == (
        "number of access programs must be 1, that of compute loops, not 2"
    )


def test_a_row_that_no_bundle_announces_is_left_over() -> None:
    module, result = lowered(3)
    (assembly,) = result.assemblies
    # The row comes at the end of a bag, too, but no bundle says so.
    silent = assembly.microcode.with_fields({("issue", "events"): 0})
    assert refused(module, [dataclasses.replace(assembly, microcode=silent)]) == (
        "row must be announced by a bundle, not left over"
    )


def test_a_row_longer_than_the_vector_that_is_popped_is_refused() -> None:
    module, result = lowered(1)
    (assembly,) = result.assemblies
    long = assembly.microcode.with_fields({("row0", "length"): 32})
    assert refused(module, [dataclasses.replace(assembly, microcode=long)]) == (
        "row popped as a vector in case 1 must have at most 4 elements, not 7"
    )


def test_a_scalar_is_at_most_32_bits_wide() -> None:
    text = EB_SUM.text.replace("xf32>", "xf64>").replace(": f32", ": f64")
    module = parse_module(text)
    _, result = lowered(0)
    run_pipeline(module, 0, 4, hardware=True)
    arguments = {
        name: value.astype(np.float64) if getattr(value, "dtype", None) == np.float32 else value
        for name, value in EB_SUM.arguments(3, 0).items()
    }
    with pytest.raises(CheckError) as raised:
        run_microcode(
            result.assemblies, module, "kernel",
            [*arguments.values()], EB_SUM.arguments(3, 0),
        )  # fmt: skip
    assert str(raised.value) == "scalar popped in case 1 must be of at most 32 bits, not f64"


def test_rows_are_padded_with_poison_that_no_launch_reads() -> None:
    _, result = lowered(3)
    (assembly,) = result.assemblies
    arguments = EB_SUM.arguments(7, 0)
    symbols, regions = place_arrays(assembly, arguments)
    assert symbols["tab.pitch"] == 8
    assert symbols["tab.dim1"] == 7
    assert symbols["tab.rows"] == 7
    assert "out" not in symbols, "what the unit doesn't read has no place"
    contents = dict(regions)
    table = contents[symbols["tab"]][: symbols["tab.bytes"]].view(np.float32).reshape(7, 8)
    np.testing.assert_array_equal(table[:, :7], arguments["tab"])
    assert np.isnan(table[:, 7]).all()
    assert bind(assembly, symbols).get("row0", "length") == 28
