"""Arithmetic blocks against NumPy, bit for bit, over corners and millions of random operands."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from ember_hw.rtl.execute.float_convert import FloatFromInteger, FloatNarrow, FloatWiden
from ember_hw.rtl.execute.float_format import BFLOAT16, FLOAT16, FLOAT32, FloatFormat
from ember_hw.rtl.execute.tests.pipelines import run_pipelines
from ember_hw.rtl.tests.harness import refuses

_COUNT = 2_000_000

#: Zeros, least and greatest denormals and normals, ones and neighbours, halves of the last place,
#: 2^24 and neighbours, infinities, quiet and signalling NaN.
_CORNERS = (
    *(0x00000000, 0x00000001, 0x00000002, 0x007FFFFF, 0x00800000, 0x00800001, 0x00FFFFFF),
    *(0x01000000, 0x0B800000, 0x1F800000, 0x20000000, 0x33000000, 0x33000001, 0x33800000),
    *(0x33800001, 0x34000000, 0x38800000, 0x387FFFFF, 0x3F7FFFFF, 0x3F800000, 0x3F800001),
    *(0x3FFFFFFF, 0x40000000, 0x477FE000, 0x477FEFFF, 0x477FF000, 0x4B7FFFFF, 0x4B800000),
    *(0x4B800001, 0x5F800000, 0x7EFFFFFF, 0x7F000000, 0x7F7FFFFF, 0x7F800000, 0x7F800001),
    *(0x7FC00000, 0x7FFFFFFF),
)


def _operands() -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return corners by corners, any bits, and numbers whose exponents are close."""
    random = np.random.default_rng(20)
    corners = np.array([*_CORNERS, *(c | 0x80000000 for c in _CORNERS)], np.uint32)
    any_a, any_b = random.integers(0, 1 << 32, (2, _COUNT // 2), dtype=np.uint32)
    near_a, near_b = random.integers(0, 1 << 32, (2, _COUNT // 2), dtype=np.uint32)
    exponent = (near_a >> 23 & 255).astype(np.int64) + random.integers(-27, 28, near_a.size)
    near_b = (near_b & 0x807FFFFF) | (np.clip(exponent, 0, 254).astype(np.uint32) << 23)
    # Half of them for products at the edge of the denormals, where they are rounded twice or not.
    half = near_a.size // 2
    exponent = 127 - (near_a[:half] >> 23 & 255).astype(np.int64) + random.integers(-26, 4, half)
    near_b[:half] = (near_b[:half] & 0x807FFFFF) | (
        np.clip(exponent, 0, 254).astype(np.uint32) << 23
    )
    a = np.concatenate([np.repeat(corners, corners.size), any_a, near_a])
    b = np.concatenate([np.tile(corners, corners.size), any_b, near_b])
    return a, b


@pytest.fixture(scope="module")
def results():
    a, b = _operands()
    return a, b, run_pipelines(a, b)


def _assert_equal(got: NDArray[np.uint32], expected: NDArray[np.floating], format: FloatFormat):
    bits = expected.view(f"u{expected.itemsize}").astype(np.uint32)
    bits[np.isnan(expected)] = format.quiet_nan
    wrong = np.flatnonzero(got != bits)
    assert wrong.size == 0, [(hex(got[i]), hex(bits[i]), int(i)) for i in wrong[:5]]


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("name", "ufunc"),
    [("add", np.add), ("multiply", np.multiply), ("maximum", np.maximum)],
)
def test_binary_operation_is_numpys(results, name, ufunc):
    a, b, got = results
    with np.errstate(all="ignore"):
        expected = ufunc(a.view(np.float32), b.view(np.float32))
    if name == "maximum":  # NumPy leaves open which of two zeros is the larger
        zeros = (a << 1 == 0) & (b << 1 == 0)
        expected[zeros] = (a[zeros] & b[zeros]).view(np.float32)
    _assert_equal(got[name], expected, FLOAT32)


@pytest.mark.verilator
def test_number_that_is_taken_keeps_every_bit(results):
    a, b, got = results
    assert np.array_equal(got["take_a"], a)
    assert np.array_equal(got["take_b"], b)


@pytest.mark.verilator
def test_narrowing_to_fp16_is_numpys(results):
    a, _, got = results
    with np.errstate(all="ignore"):
        expected = a.view(np.float32).astype(np.float16)
    _assert_equal(got["to_fp16"], expected, FLOAT16)


@pytest.mark.verilator
def test_narrowing_to_bf16_is_torchs(results):
    import torch

    a, _, got = results
    number = torch.from_numpy(a.view(np.int32)).view(torch.float32)
    expected = number.to(torch.bfloat16).view(torch.int16).numpy().astype(np.uint32) & 0xFFFF
    expected[np.isnan(a.view(np.float32))] = BFLOAT16.quiet_nan
    assert np.array_equal(got["to_bf16"], expected)


@pytest.mark.verilator
def test_every_small_number_widens_exactly():
    every = np.arange(1 << 16, dtype=np.uint32)
    got = run_pipelines(every, every)
    with np.errstate(all="ignore"):
        from_fp16 = every.astype(np.uint16).view(np.float16).astype(np.float32)
    _assert_equal(got["from_fp16"], from_fp16, FLOAT32)
    _assert_equal(got["from_bf16"], (every << 16).view(np.float32), FLOAT32)
    integers = every.astype(np.uint8).view(np.int8).astype(np.float32)
    _assert_equal(got["from_int8"], integers, FLOAT32)


def test_formats_that_do_not_fit_are_refused():
    with refuses("source must be a format that fp16 holds exactly, not bf16"):
        FloatWiden(source=BFLOAT16, target=FLOAT16)
    with refuses("target must be narrower than fp16, not fp32"):
        FloatNarrow(source=FLOAT16, target=FLOAT32)
    with refuses("width of integer must be from 1 to 24 bits, not 25"):
        FloatFromInteger(integer=25)
