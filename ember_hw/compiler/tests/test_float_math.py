from __future__ import annotations

import math

import numpy as np
import pytest

from ember_hw.compiler.float_math import exp, fused_multiply_add
from ember_hw.compiler.interpreters.arithmetic import fused_multiply_add as exact_fma


def test_exp_is_the_rounded_true_value() -> None:
    random = np.random.default_rng(0)
    values = np.concatenate(
        [random.uniform(-105, 90, 200_000), random.standard_normal(200_000)]
    ).astype(np.float32)
    with np.errstate(over="ignore", under="ignore"):
        wanted = np.exp(values.astype(np.float64)).astype(np.float32)
    assert np.array_equal(exp(values), wanted)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (0.0, 1.0),
        (-0.0, 1.0),
        (1.0, np.float32(math.e)),
        (math.inf, math.inf),
        (-math.inf, 0.0),
        (88.8, math.inf),
        (-104.0, 0.0),
        (-103.0, np.float32(math.exp(-103))),
        (math.nan, math.nan),
    ],
)
def test_exp_at_the_edges(value: float, wanted: float) -> None:
    found = exp(np.float32(value))
    assert found.dtype == np.float32
    assert np.array_equal(found, np.float32(wanted), equal_nan=True)


def test_exp_of_other_dtypes_is_numpys() -> None:
    assert exp(np.float64(1.5)) == np.exp(1.5)


def test_fused_multiply_add_rounds_once() -> None:
    random = np.random.default_rng(1)
    bits = random.integers(0, 1 << 32, (3, 4000), np.uint32)
    near = random.standard_normal((3, 4000)).astype(np.float32)
    near[2] = -near[0] * near[1] * random.choice(np.array([1, 1 + 2**-23], np.float32), 4000)
    for a, b, c in (bits.view(np.float32), near):
        with np.errstate(all="ignore"):
            wanted = exact_fma(a, b, c)
        assert np.array_equal(fused_multiply_add(a, b, c), wanted, equal_nan=True)
