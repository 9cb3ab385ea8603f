# pyright: basic
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ember_hw.compiler.frontend.embedding_bag import EmbeddingBagSpec
from ember_hw.compiler.frontend.tables import TablesSpec
from ember_hw.config import AcceleratorConfig
from ember_hw.host.program_cache import forget_programs, program_of, programs_built

CONFIG = AcceleratorConfig.preset("tables")
SPEC = EmbeddingBagSpec(
    name="weight",
    num_embeddings=5,
    embedding_dim=4,
    index_dtype=np.dtype(np.int64),
    include_last_offset=False,
    input_names=("indices", "offsets"),
    two_dimensional=False,
    indices_name="indices",
    offsets_name="offsets",
    weight=np.zeros((5, 4), np.float32),
)


def built(spec, config=CONFIG, opt_level=3):
    before = programs_built()
    program = program_of(spec, opt_level, config)
    return program, programs_built() - before


@pytest.fixture(autouse=True)
def _fresh():
    forget_programs()
    program_of(SPEC, 3, CONFIG)


def test_other_rows_and_names_are_the_same_program():
    table = np.ones((9, 4), np.float32)
    other = replace(SPEC, weight=table, num_embeddings=9, name="items", padding_idx=2)
    program, count = built(other)
    assert count == 0
    assert program.tables["tab"] is table
    assert (program.model["name"], program.model["padding_idx"]) == ("items", 2)


@pytest.mark.parametrize(
    "changes",
    [
        {"mode": "mean"},
        {"index_dtype": np.dtype(np.int32)},
        {"weights_name": "w"},
        {"weight": np.zeros((5, 6), np.float32), "embedding_dim": 6},
    ],
)
def test_another_shape_class_is_another_program(changes):
    other = replace(SPEC, **changes)
    assert built(other)[1] == 1
    assert built(other)[1] == 0


def test_opt_level_and_config_are_part_of_the_class():
    assert built(SPEC, opt_level=2)[1] == 1
    assert built(SPEC, AcceleratorConfig())[1] == 1


def test_programs_for_many_tables_depend_on_none_of_them():
    tables = TablesSpec((SPEC, SPEC), ("tab0", "tab0"), ())
    wide = replace(SPEC, weight=np.zeros((7, 32), np.float32), num_embeddings=7, embedding_dim=32)
    assert built(tables)[1] == 1
    assert built(TablesSpec((SPEC, wide, wide), ("tab0", "tab1", "tab1"), ()))[1] == 0


def test_what_was_forgotten_is_built_again():
    forget_programs()
    assert built(SPEC)[1] == 1
