"""From the text that the frontend emits to microcode, by `ember-opt` alone.

Each pass is one call of the tool on the text that the call before printed. Every text parses back
to itself, and every one that has a meaning gives the expected answer of every case.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from xdsl.dialects.builtin import ModuleOp

from ember_hw.compiler import ember_opt
from ember_hw.compiler.backend.assemble import assemble_text
from ember_hw.compiler.backend.extract_code import extract_code
from ember_hw.compiler.dialects.dlc import ComputeLoopOp
from ember_hw.compiler.frontend import import_module
from ember_hw.compiler.interpreters import interpret
from ember_hw.compiler.interpreters.microcode import execute
from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.pipeline import OPT_LEVELS, pipeline, vector_length_of
from ember_hw.compiler.program import Program
from ember_hw.compiler.tests.command_line import run_in_process
from ember_hw.config import PRESETS
from ember_hw.host.execution import Chunk, ExecuteSide
from ember_hw.host.memory_layout import MemoryLayout
from ember_hw.host.reference import bit_equal
from ember_hw.host.tests.cases import CASES, SMALL_CASES, Case

CONFIG = PRESETS["default"]
#: Of the large cases the one of many bags; long bags and rows would take seconds at level 0.
RUN = [*SMALL_CASES, *(case for case in CASES if case.name == "many_bags")]


def opt(text: str, *options: str) -> str:
    """Return what `ember-opt` prints for a text; both verify."""
    code, printed, errors = run_in_process(ember_opt.main, list(options), text)
    assert not code, errors
    assert not errors
    return printed


class Lowered(NamedTuple):
    """The texts on the way to microcode, and what can be run of them."""

    texts: dict[str, str]
    modules: dict[str, ModuleOp]
    program: Program


def emitted(case: Case) -> str:
    """Return the scf text of the bag that the case calls."""
    bag = torch.nn.EmbeddingBag(
        case.num_embeddings,
        case.embedding_dim,
        mode="sum",
        include_last_offset=case.include_last_offset,
    )
    inputs = [value for value in (case.indices, case.offsets) if value is not None]
    return f"{import_module(bag, inputs).module!s}\n"


@cache
def lowered(scf: str, opt_level: int) -> Lowered:
    """Lower a text pass by pass."""
    texts = {"scf": scf}
    runnable = ["scf"]
    text = scf
    for step in pipeline(opt_level, vector_length_of(CONFIG)):
        spec = str(step.module_pass.pipeline_pass_spec())
        text = texts[spec] = opt(text, "--passes", spec)
        runnable += [] if step.temporaries else [spec]
    modules = {name: parse_module(texts[name], name) for name in runnable}
    texts["au"] = opt(text, "--passes", f"dlc-to-au{{target={CONFIG.name}}}")

    (loop,) = (op for op in modules[runnable[-1]].walk() if isinstance(op, ComputeLoopOp))
    program = assemble_text(texts["au"]).program(opt_level=opt_level)
    nest = replace(program.nests[0], code=extract_code(loop))
    return Lowered(texts, modules, replace(program, nests=(nest,)))


@cache
def scf_of(signature: tuple[Any, ...]) -> str:
    return emitted(next(case for case in RUN if signature_of(case) == signature))


def signature_of(case: Case) -> tuple[Any, ...]:
    """What the frontend's text may depend on, but for the table's shape."""
    offsets = case.offsets
    return case.indices.dtype, offsets is None or offsets.dtype, case.include_last_offset


def run_module(module: ModuleOp, case: Case) -> np.ndarray[Any, Any]:
    request = case.request()
    out = np.zeros((request.num_bags, case.embedding_dim), np.float32)
    indices = request.indices.astype(case.indices.dtype)
    arguments = [request.offsets, indices, case.table(), out, request.num_bags]
    interpret(module, "eb_sum", arguments)
    return out


def run_microcode(program: Program, case: Case) -> np.ndarray[Any, Any]:
    request, layout = case.request(), MemoryLayout(CONFIG)
    regions = [
        layout.place_table("tab", case.table()),
        layout.place_vector("off", request.offsets),
        layout.place_vector("idx", request.indices.astype(case.indices.dtype)),
    ]
    environment = {"B": request.num_bags, "tab.dim1": case.embedding_dim}
    for region in regions:
        environment |= region.environment()
    (nest,) = program.nests
    microcode = nest.bind(environment)
    out = np.zeros((request.num_bags, case.embedding_dim), np.float32)
    arrays = {"out": out, "tab": case.table()}
    side = ExecuteSide(nest, arrays, {"B": request.num_bags}, microcode=microcode)
    for chunk in execute(microcode, [(region.base, region.data) for region in regions]):
        side.consume(Chunk(chunk.events, chunk.scalars, chunk.row_beats, chunk.row_last))
    side.finish()
    return out


@pytest.mark.parametrize("case", RUN, ids=lambda case: case.name)
@pytest.mark.parametrize("opt_level", OPT_LEVELS)
def test_every_level_gives_the_expected_answer(opt_level: int, case: Case) -> None:
    result = lowered(scf_of(signature_of(case)), opt_level)
    expected = case.expected()
    for name, module in result.modules.items():
        assert bit_equal(run_module(module, case), expected), name
    assert bit_equal(run_microcode(result.program, case), expected)


@pytest.mark.parametrize("opt_level", OPT_LEVELS)
def test_every_text_parses_back_to_itself(opt_level: int) -> None:
    for name, text in lowered(scf_of(signature_of(RUN[0])), opt_level).texts.items():
        assert opt(text) == text, name
        assert opt(opt(text, "--print-generic")) == text, name


@pytest.mark.parametrize("opt_level", OPT_LEVELS)
def test_one_command_goes_all_the_way(opt_level: int) -> None:
    scf = scf_of(signature_of(RUN[0]))
    level = str(opt_level)
    assert opt(scf, "--opt-level", level) == lowered(scf, opt_level).texts["au"]
    assert opt(scf, "--opt-level", level, "--config", "tiny") != opt(scf, "--opt-level", level)


def test_a_case_tells_a_wrong_text_from_a_right_one() -> None:
    (case,) = (case for case in RUN if case.name == "bags")
    result = lowered(scf_of(signature_of(case)), 3)
    for name, module in result.modules.items():
        wrong = parse_module(str(module).replace("arith.addf", "arith.subf"), name)
        assert not bit_equal(run_module(wrong, case), case.expected()), name
    wrong_program = assemble_text(result.texts["au"].replace("[s2 *", "[t0 *"))
    nest = replace(wrong_program.nest(), code=result.program.nests[0].code)
    program = replace(wrong_program.program(opt_level=3), nests=(nest,))
    assert not bit_equal(run_microcode(program, case), case.expected())
