# pyright: basic
"""The reference of the products of queries and keys, and what is drawn of them."""

from __future__ import annotations

import numpy as np
import pytest

from ember_hw.bench.fuzzing.query_key import DTYPES, draw, products, text_of
from ember_hw.compiler.interpreters import interpret
from ember_hw.compiler.ir_text import parse_module
from ember_hw.host.reference import bit_equal


def test_products_are_those_of_the_function_itself():
    module = parse_module(text_of("float32"))
    for seed in range(4):
        given = draw(np.random.default_rng(seed), 3, "float32", is_special=seed == 0)
        values = [getattr(value, "numpy", lambda v=value: v)() for value in given.values()]
        with np.errstate(all="ignore"):
            interpret(module, "query_key", values)
        assert bit_equal(products(given), values[list(given).index("out")])


@pytest.mark.parametrize("dtype", DTYPES)
def test_lists_of_blocks_may_be_empty(dtype: str):
    drawn = [draw(np.random.default_rng(seed), 2, dtype) for seed in range(20)]
    lengths = np.concatenate([np.diff(given["ptr"]) for given in drawn])
    assert 0 < np.count_nonzero(lengths == 0) < len(lengths)
    assert any(given["NB"] == 0 for given in drawn)
    assert {str(given["q"].dtype) for given in drawn} == {f"torch.{dtype}"}
