from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from ember_hw.compiler.backend.lower import Lowered, lower
from ember_hw.compiler.dialects import make_context
from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.pipeline import OPT_LEVELS, run_pipeline
from ember_hw.compiler.self_check import LevelCheck, check_of
from ember_hw.compiler.tests.kernels import EB_SUM, KERNELS, Kernel
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import CheckError, CompileError

CONFIG = AcceleratorConfig.preset("small")


def check_of_kernel(kernel: Kernel) -> LevelCheck:
    return LevelCheck(parse_module(kernel.text), kernel.arguments(5, 1))


@pytest.fixture
def lowered() -> tuple[Lowered, Any]:
    module = parse_module(EB_SUM.text)
    return lower(module, 3, CONFIG), module


@pytest.mark.parametrize("opt_level", OPT_LEVELS)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_every_pass_keeps_what_a_kernel_does(kernel: Kernel, opt_level: int) -> None:
    check = check_of_kernel(kernel)
    run_pipeline(parse_module(kernel.text), opt_level, 4, hardware=True, observe=check.check)


def test_a_pass_that_changes_the_answer_is_named_with_the_place() -> None:
    check = check_of_kernel(EB_SUM)
    wrong = parse_module(EB_SUM.text.replace("arith.addf", "arith.subf"))
    value = check.expected["out"][1, 0]
    with pytest.raises(CheckError) as error:
        check.check("a-pass", wrong)
    assert str(error.value) == (
        f"IR after 'a-pass' must leave {value!r} at (1, 0) of 'out', as scf does, not {-value!r}"
    )


def test_an_access_program_that_reads_elsewhere_is_found(lowered: tuple[Lowered, Any]) -> None:
    (result, module), check = lowered, check_of_kernel(EB_SUM)
    check.check_au(result.programs, module)
    text = str(result.programs[0]).replace("[s2 *", "[t0 *")
    (broken,) = parse_module(text, "<test>", make_context()).ops
    message = (
        r"program of the access unit must leave .* at \(\d, \d\) of 'out', as scf does, not .*"
    )
    with pytest.raises(CheckError) as error:
        check.check_au([broken], module)  # pyright: ignore[reportArgumentType]
    assert re.fullmatch(message, str(error.value))


def test_microcode_that_reads_elsewhere_is_found(lowered: tuple[Lowered, Any]) -> None:
    result, module = lowered
    arguments = EB_SUM.arguments(5, 1)
    longer = {**arguments, "idx": np.append(arguments["idx"], 0)}
    check = LevelCheck(parse_module(EB_SUM.text), longer)
    check.check_microcode(result.assemblies, module)
    (assembly,) = result.assemblies
    other = assembly.microcode.with_field("unit1.stream0", "first", 1)
    patches = tuple(patch for patch in assembly.patches if patch.field != "first")
    broken = replace(assembly, microcode=other, patches=patches)
    message = r"microcode must leave .* at \(\d, \d\) of 'out', as scf does, not .*"
    with pytest.raises(CheckError) as error:
        check.check_microcode([broken], module)
    assert re.fullmatch(message, str(error.value))


@dataclass(frozen=True)
class Spec:
    """A spec without tables."""

    def tables(self) -> dict[str, np.ndarray]:
        return {}


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_a_small_call_is_found_for_each_kernel_that_does_something(kernel: Kernel) -> None:
    check = check_of(Spec(), parse_module(kernel.text))
    assert not np.array_equal(check.expected["out"], check.arguments["out"])


def test_given_inputs_are_used() -> None:
    inputs = EB_SUM.arguments(3, 0)
    check = check_of(Spec(), parse_module(EB_SUM.text), inputs)
    assert check.arguments.keys() == inputs.keys()
    assert check.expected["out"].shape == (6, 3)


def test_a_call_that_cannot_be_found_is_asked_for() -> None:
    text = """
func.func @far(%x: memref<?xf32>) attributes {ember.args = ["x"]} {
  %far = arith.constant 1000 : index
  %f0 = arith.constant 0.0 : f32
  memref.store %f0, %x[%far] : memref<?xf32>
  func.return
}
"""
    message = (
        "example_inputs of function 'far' must be given for verify='every-pass': no small request "
        "was found that stays inside its arrays"
    )
    with pytest.raises(CompileError, match=f"^{re.escape(message)}$"):
        check_of(Spec(), parse_module(text))


class SpecWithCall(Spec):
    """A spec that knows an answer."""

    def check_call(self, seed: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        arguments = EB_SUM.arguments(2, seed)
        expected = np.zeros_like(arguments["out"])
        bags = np.repeat(np.arange(6), np.diff(arguments["off"]))
        np.add.at(expected, bags, arguments["tab"][arguments["idx"]])
        return arguments, {"out": expected}


def test_a_reference_is_held_against_scf_itself() -> None:
    check_of(SpecWithCall(), parse_module(EB_SUM.text))
    wrong = parse_module(EB_SUM.text.replace("arith.addf", "arith.subf"))
    message = (
        r"^IR after 'import' must leave .* at \(1, 0\) of 'out', as the exact reference does, not "
    )
    with pytest.raises(CheckError, match=message):
        check_of(SpecWithCall(), wrong)
