"""`compile`: every opt level on every preset, what is in the program, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ember_hw.compiler import compile
from ember_hw.compiler.backend.assemble import assemble_text
from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.program import Argument, Program
from ember_hw.config import PRESETS, AcceleratorConfig
from ember_hw.errors import AssemblyError, UnsupportedError
from ember_hw.host.device import open_device
from ember_hw.host.reference import bit_equal, exact
from ember_hw.host.request import normalise_request

EXAMPLES = (torch.tensor([1, 2, 4]), torch.tensor([0, 2]))


def bag(embedding_dim: int = 20) -> torch.nn.EmbeddingBag:
    return torch.nn.EmbeddingBag(50, embedding_dim, mode="sum")


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("opt_level", [0, 1, 2, 3])
def test_every_level_compiles_for_every_preset_and_checks_itself(
    preset: str, opt_level: int
) -> None:
    config = AcceleratorConfig.preset(preset)
    program = compile(bag(), EXAMPLES, opt_level, config, verify="every-pass")
    assert program.opt_level == opt_level
    assert program.config == config
    (nest,) = program.nests
    assert [c.id for c in nest.callbacks] == ([1, 2] if opt_level == 3 else [1])
    levels = ["au", "dlc", "scf", "slc", "slcvec"] if opt_level else ["au", "dlc", "scf", "slc"]
    assert sorted(program.ir) == levels
    lanes = config.bus_bytes // 4
    assert (f"len {lanes} clip" in program.ir["au"]) == (opt_level == 1)


def test_program_holds_the_model_and_its_table() -> None:
    module = bag()
    program = compile(module, EXAMPLES)
    assert program.opt_level == 3
    assert program.config == AcceleratorConfig()
    assert program.model == {
        "kind": "embedding_bag",
        "name": "weight",
        "num_embeddings": 50,
        "embedding_dim": 20,
        "index_dtype": "int64",
        "include_last_offset": False,
        "two_dimensional": False,
        "input_names": ["input", "offsets"],
        "indices_name": "input",
        "offsets_name": "offsets",
        "weights_name": None,
        "types": ["f32", "f32", "f32"],
        "mode": "sum",
        "padding_idx": None,
        "size_limits": [],
        "table_names": {"tab": "weight"},
    }
    assert np.shares_memory(program.tables["tab"], module.weight.detach().numpy())
    assert set(program.versions) == {"ember-hw", "numpy", "torch", "xdsl"}
    assert [a.symbol for a in program.arguments] == ["off", "idx", "tab", "out", "B"]
    assert Argument("idx", "memref<?xi64>") in program.arguments


@pytest.mark.parametrize("opt_level", [0, 1, 2, 3])
def test_the_text_of_each_level_reads_back_and_assembles_to_the_program(opt_level: int) -> None:
    program = compile(bag(), EXAMPLES, opt_level)
    for level, text in program.ir.items():
        if level != "au":
            assert f"{parse_module(text, level)!s}\n" == text
    assert assemble_text(program.ir["au"], program.config).microcode == program.nests[0].microcode


def test_the_number_of_columns_is_a_constant_of_the_program() -> None:
    program = compile(bag(24), EXAMPLES)
    assert program.nests[0].microcode.get("row0", "length") == 24 * 4
    assert "tab.dim1" not in program.ir["au"]


def test_indices_of_32_bits_are_read_as_such() -> None:
    examples = (EXAMPLES[0].int(), EXAMPLES[1].int())
    assert Argument("idx", "memref<?xi32>") in compile(bag(), examples).arguments


def test_an_exported_program_needs_no_examples() -> None:
    exported = torch.export.export(bag(), EXAMPLES)
    assert compile(exported).model["embedding_dim"] == 20


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("opt_level", [0, 1, 2, 3])
def test_program_computes_the_exact_reference_on_the_interpreter(
    preset: str, opt_level: int
) -> None:
    config = AcceleratorConfig.preset(preset)
    indices, offsets = torch.tensor([7, 49, 0, 7, 3, 3]), torch.tensor([0, 0, 4, 5])
    for embedding_dim in (1, 16, 17):
        module = bag(embedding_dim)
        program = compile(module, EXAMPLES, opt_level, config)
        with open_device("interpreter", config=config) as device:
            pooled = device.run(program, (indices.numpy(), offsets.numpy()))
        table = module.weight.detach().numpy()
        request = normalise_request(indices.numpy(), offsets.numpy(), num_embeddings=50)
        assert bit_equal(pooled, exact(table, request))


@pytest.mark.parametrize("opt_level", [-1, 4])
def test_opt_level_is_checked_before_anything_is_exported(opt_level: int) -> None:
    with pytest.raises(ValueError, match=rf"^opt_level must be 0, 1, 2 or 3, not {opt_level}$"):
        compile(None, None, opt_level)  # pyright: ignore[reportArgumentType]


def test_verify_must_be_known() -> None:
    verify: Any = "all"
    with pytest.raises(ValueError, match=r"^verify must be None or 'every-pass', not 'all'$"):
        compile(bag(), EXAMPLES, verify=verify)


def test_a_program_that_does_not_fit_names_what_is_missing() -> None:
    config = AcceleratorConfig(name="short", traversal_units=2)
    message = r"^au: 'au\.tu t2': needs unit 2, config 'short' has 2 \(limit traversal_units\)$"
    with pytest.raises(AssemblyError, match=message):
        compile(bag(), EXAMPLES, 0, config)
    assert isinstance(compile(bag(), EXAMPLES, 3, config), Program)


@pytest.mark.parametrize(
    ("opt_level", "longest", "remedy"),
    [
        (0, 131056, "split the table by columns"),
        (1, 32767, "compile with opt_level=0"),
        (2, 16383, "compile with opt_level=1"),
        (3, 16383, "compile with opt_level=1"),
    ],
)
def test_rows_may_be_as_long_as_the_microcode_can_say(
    opt_level: int, longest: int, remedy: str
) -> None:
    module = torch.nn.EmbeddingBag(2, longest, mode="sum")
    program = compile(module, EXAMPLES, opt_level)
    table = module.weight.detach().numpy()
    if opt_level:  # element by element it would take seconds
        with open_device("interpreter") as device:
            pooled = device.run(program, (np.array([1, 0, 1]), np.array([0, 0])))
        assert np.array_equal(pooled, [np.zeros(longest), table[1] + table[0] + table[1]])
    with pytest.raises(UnsupportedError) as error:
        compile(torch.nn.EmbeddingBag(2, longest + 1, mode="sum"), EXAMPLES, opt_level)
    assert str(error.value) == (
        f"embedding_dim of table 'weight' must be at most {longest} at opt_level {opt_level} on "
        f"config 'default', not {longest + 1}; {remedy}"
    )
