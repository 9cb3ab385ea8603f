"""Text in the published compiler's spelling: own texts always, its files where there is a copy.

`EMBER_REF` names a folder that holds its `eb_scf.mlir`, `eb_slc_O0.mlir`, `eb_slc_O3.mlir` and
`eb_dlc.mlir`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import UnitAttr
from xdsl.dialects.func import FuncOp

from ember_hw.bench.fuzzing.every_level import UNIT
from ember_hw.compiler import compile_function
from ember_hw.compiler.backend.allocate import allocate_all
from ember_hw.compiler.interpreters import interpret
from ember_hw.compiler.interpreters.au import run_au
from ember_hw.compiler.ir_text import parse_module, rewrite_reference_text
from ember_hw.compiler.pipeline import OPT_LEVELS, run_pipeline
from ember_hw.compiler.transforms.check_dae import find_violations
from ember_hw.compiler.transforms.ir_facts import NOALIAS
from ember_hw.host.device import open_device
from ember_hw.host.reference import bit_equal

OWN = {
    file.stem: file.read_text("utf-8") for file in (Path(__file__).parent / "reference").iterdir()
}
FOLDER = os.environ.get("EMBER_REF", "")
FILES = sorted(Path(FOLDER).rglob("eb_*.mlir")) if FOLDER else []


def bag_arguments() -> list[Any]:
    random = np.random.default_rng(0)
    return [
        np.array([0, 2, 2, 5]),
        random.integers(0, 6, 5),
        ((3, 0), (0, 0, 0)),
        random.standard_normal((6, 11)),
        np.zeros((3, 11)),
    ]


def check_bag(text: str, name: str) -> None:
    """Lower a bag sum of f64 to au at every level, for the same answer."""
    expected = bag_arguments()
    offsets, indices, _, table, out = expected
    np.add.at(out, np.repeat(np.arange(3), np.diff(offsets)), table[indices])
    for opt_level in OPT_LEVELS:
        module = parse_module(text)
        (function,) = (op for op in module.ops if isinstance(op, FuncOp))
        function.attributes[NOALIAS] = UnitAttr()
        run_pipeline(module, opt_level, 4, hardware=True)
        arguments = bag_arguments()
        results = interpret(module, name, arguments).results
        assert results[0] is arguments[-1]
        np.testing.assert_array_equal(arguments[-1], out)


def test_scf_with_a_struct_of_sizes_goes_to_the_access_unit() -> None:
    check_bag(OWN["scf"], "bag")
    module = parse_module(
        OWN["scf"].replace(
            "-> memref<?x?xf64> {",
            "-> memref<?x?xf64> "
            'attributes {ember.noalias, ember.args = ["off", "idx", "sizes", "tab", "out"]} {',
        )
    )
    run_pipeline(module, 3, 4, hardware=True)
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    (program,) = allocate_all(function, "default")
    assert 'au.arg a0 "sizes.0.0" : index' in str(program)
    arguments = bag_arguments()
    environment = dict(zip(("off", "idx", "sizes", "tab", "out"), arguments, strict=True))
    run_au([program], module, "bag", arguments, {**environment, "sizes.0.0": 3, "tab.dim1": 11})
    offsets, indices, _, table, _ = arguments
    expected = np.zeros((3, 11))
    np.add.at(expected, np.repeat(np.arange(3), np.diff(offsets)), table[indices])
    np.testing.assert_array_equal(arguments[-1], expected)


def check_run(text: str, name: str) -> None:
    """Run a bag sum of f64 as microcode, rows as vectors and whole, for the bits of scf."""
    expected = bag_arguments()
    interpret(parse_module(text), name, expected)
    for opt_level in OPT_LEVELS[1:]:
        program = compile_function(text, opt_level=opt_level, verify="every-pass")
        for engine in ("c", "numpy"):
            with open_device("interpreter", engine=engine) as device:
                found = device.run(program, bag_arguments())
                assert device.report.row_beats
            assert found.dtype == np.float64
            assert bit_equal(found, expected[-1])


def check_simulated_run(text: str, name: str) -> None:
    """Run it on the simulated unit."""
    expected = bag_arguments()
    interpret(parse_module(text), name, expected)
    with open_device("verilator", config=UNIT, optimise=False) as device:
        for opt_level in OPT_LEVELS[1:]:
            program = compile_function(text, opt_level=opt_level, config=UNIT)
            assert bit_equal(device.run(program, bag_arguments()), expected[-1])
            assert device.report.cycles


def test_scf_runs() -> None:
    check_run(OWN["scf"], "bag")


@pytest.mark.verilator
@pytest.mark.timeout(900)  # builds the model
def test_scf_runs_on_the_simulated_unit() -> None:
    check_simulated_run(OWN["scf"], "bag")


def test_without_the_attribute_an_output_may_be_the_table() -> None:
    with pytest.raises(
        Exception, match=r"^memref %off read by the access unit must be known not to"
    ):
        run_pipeline(parse_module(OWN["scf"]), 0, 4)


@pytest.mark.parametrize("name", ["slc", "slcvec", "dlc"])
def test_own_text_of_each_stage_reads_and_prints_the_same(name: str) -> None:
    module = parse_module(rewrite_reference_text(OWN[name]))
    assert str(parse_module(str(module))) == str(module)


@pytest.mark.parametrize(("name", "broken"), [("slc", 0), ("slcvec", 2), ("dlc", 3)])
def test_what_is_unsound_in_the_style_of_the_reference_is_reported(name: str, broken: int) -> None:
    module = parse_module(rewrite_reference_text(OWN[name]))
    assert len(find_violations(module)) == broken


@pytest.mark.skipif(not FILES, reason="EMBER_REF names no folder with the published files")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_published_file_reads_and_prints_the_same(file: Path) -> None:
    module = parse_module(rewrite_reference_text(file.read_text(encoding="utf-8")), file.name)
    assert str(parse_module(str(module))) == str(module)


def published_scf() -> str:
    (file,) = (file for file in FILES if file.name == "eb_scf.mlir")
    return file.read_text(encoding="utf-8")


@pytest.mark.skipif(not FILES, reason="EMBER_REF names no folder with the published files")
def test_published_scf_goes_all_the_way() -> None:
    check_bag(published_scf(), "sls_scf")
    check_run(published_scf(), "sls_scf")


@pytest.mark.verilator
@pytest.mark.timeout(900)  # builds the model
@pytest.mark.skipif(not FILES, reason="EMBER_REF names no folder with the published files")
def test_published_scf_runs_on_the_simulated_unit() -> None:
    check_simulated_run(published_scf(), "sls_scf")
