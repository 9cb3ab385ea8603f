"""Packing of quantised rows: torch's bytes, half a step, every format back and forth."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from xdsl.dialects.builtin import VectorType, f32
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.test_value import create_ssa_value

from ember_hw.compiler.dialects.quantized import DequantizeOp, QuantizedType
from ember_hw.compiler.element_dtypes import tensor_of
from ember_hw.compiler.frontend.emit import emit_pooling
from ember_hw.compiler.frontend.row_types import RowTypes
from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.quantized_rows import FORMATS, QuantizedTable, dequantize, quantize

FORMS = [(codes, scale) for codes in ("int8", "int4") for scale in ("float32", "float16")]
OPS: Any = torch.ops.quantized


def table(columns: int, seed: int = 0) -> NDArray[np.float32]:
    """Return rows of many magnitudes, a constant one and one of zeros among them."""
    random = np.random.default_rng(seed)
    rows = random.standard_normal((60, columns)) * np.logspace(-3, 3, 60)[:, None]
    rows[7], rows[8] = 3.75, 0
    return rows.astype(np.float32)


@pytest.mark.parametrize("columns", [1, 2, 13, 64])
def test_bytes_of_8_bits_are_torch_s(columns: int) -> None:
    weight = table(columns)
    expected = OPS.embedding_bag_byte_prepack(tensor_of(weight))
    assert np.array_equal(quantize(weight).rows, expected.numpy())
    assert np.array_equal(quantize(tensor_of(weight)).rows, expected.numpy())


@pytest.mark.parametrize("columns", [2, 14, 64])
def test_bytes_of_4_bits_are_torch_s(columns: int) -> None:
    weight = tensor_of(table(columns))
    packed = OPS.embedding_bag_4bit_prepack(weight)
    found = quantize(weight, "int4")
    assert np.array_equal(found.rows, packed.numpy())
    unpacked = OPS.embedding_bag_4bit_unpack(packed).numpy()
    assert np.array_equal(dequantize(found), unpacked)
    read = QuantizedTable(packed.numpy(), columns, "int4")
    assert np.array_equal(dequantize(read), unpacked)


def test_torch_unpacks_8_bits_within_the_last_bit() -> None:
    # It may be built with fused multiply-adds, which round once.
    packed = OPS.embedding_bag_byte_prepack(tensor_of(table(9)))
    expected = OPS.embedding_bag_byte_unpack(packed).numpy()
    found = dequantize(QuantizedTable(packed.numpy(), 9))
    largest = np.abs(table(9)).max(axis=1, keepdims=True)
    assert np.all(np.abs(found - expected) <= 2 * np.spacing(largest))


def steps_off(weight: NDArray[np.float32], packed: QuantizedTable) -> NDArray[np.float64]:
    scale, _ = packed.format.scales(packed.rows)
    scale = np.where(scale == 0, np.float32(1), scale)
    return np.abs(dequantize(packed) - weight.astype(np.float64)) / scale[:, None]


@pytest.mark.parametrize("codes", ["int8", "int4"])
def test_an_element_is_at_most_half_a_step_off(codes: str) -> None:
    weight = table(33)
    packed = quantize(weight, codes, "float32")
    # What fp32 rounds of the product and the sum comes on top.
    rounding = 4 * np.spacing(np.abs(weight).max(axis=1, keepdims=True))
    scale, _ = packed.format.scales(packed.rows)
    step = np.where(scale == 0, 1, scale)[:, None]
    assert np.all(steps_off(weight, packed) <= 0.5 + rounding / step)
    assert np.array_equal(dequantize(packed)[7:9], weight[7:9]), "constant rows are exact"


def test_rows_of_a_tiny_range_are_better_than_torch_s() -> None:
    weight = np.linspace(0, 3e-8, 12, dtype=np.float32)[None]
    found = quantize(weight)
    assert steps_off(weight, found).max() <= 0.5001
    theirs = OPS.embedding_bag_byte_prepack(tensor_of(weight)).numpy()
    assert steps_off(weight, QuantizedTable(theirs, 12)).max() > 10


@pytest.mark.parametrize(("codes", "scale"), FORMS)
@pytest.mark.parametrize("columns", [1, 2, 7])
def test_records_are_the_rows(columns: int, codes: str, scale: str) -> None:
    packed = quantize(table(columns), codes, scale)
    form = packed.format
    records = form.to_records(packed.rows)[:, :columns]
    assert np.array_equal(form.from_records(records), packed.rows)
    numbers = records["scale"] * records["code"].astype(np.float32) + records["bias"]
    assert np.array_equal(numbers, dequantize(packed))
    assert packed.rows.shape[1] == form.row_bytes(columns)
    assert packed.shape == (60, columns)
    if codes == "int4" and columns % 2:
        assert not (packed.rows[:, columns // 2] >> 4).any()


def test_fp16_adds_its_rounding_alone() -> None:
    weight = table(21)
    for codes in ("int8", "int4"):
        packed = quantize(weight, codes, "float16")
        most = 255 if codes == "int8" else 15
        scale, bias = packed.format.scales(packed.rows)
        rounding = 2.0**-11 * (np.abs(bias) + most * scale) / scale
        assert np.all(steps_off(weight, packed) <= 0.5 + 2 * rounding[:, None] + 1e-3)


def test_a_denormal_range_is_packed() -> None:
    tiny = np.array([[0, 1e-45, 2e-45]], np.float32)
    assert np.abs(dequantize(quantize(tiny)) - tiny).max() <= 2e-45
    assert dequantize(quantize(tiny, "int4")).max() <= 1


@pytest.mark.parametrize(
    ("weight", "arguments", "error", "message"),
    [
        (np.zeros((2, 3)), (), TypeError, "weight must be of dtype float32, not float64"),
        (
            np.zeros(3, np.float32),
            (),
            ValueError,
            "weight must be of shape (N, D) with D at least 1, not (3,)",
        ),
        (
            np.array([[0, 1], [np.nan, 0]], np.float32),
            (),
            ValueError,
            "weight must be finite to be quantised, and row 1 isn't",
        ),
        (
            np.array([[1e6, 1]], np.float32),
            ("int4",),
            ValueError,
            "range of row 0 must be one of float16, and is beyond it",
        ),
        (
            np.array([[3e38, -3e38]], np.float32),
            (),
            ValueError,
            "range of row 0 must be one of float32, and is beyond it",
        ),
        (
            np.zeros((1, 1), np.float32),
            ("int2",),
            ValueError,
            "format of a table must be int8 or int4, not 'int2'",
        ),
        (
            np.zeros((1, 1), np.float32),
            ("int8", "float64"),
            ValueError,
            "scale_dtype must be float32 or float16, not 'float64'",
        ),
    ],
)
def test_what_can_t_be_packed_is_refused(
    weight: Any, arguments: tuple[str, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        quantize(weight, *arguments)


def test_rows_of_another_kind_are_refused() -> None:
    message = "rows of a quantised table must be an array of uint8, not int8"
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        QuantizedTable(np.zeros((2, 12), np.int8), 4)  # pyright: ignore[reportArgumentType]
    message = (
        "rows of a table of int4 and embedding_dim 5 must be of shape (num_embeddings, 7), "
        "not (2, 12)"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        QuantizedTable(np.zeros((2, 12), np.uint8), 5, "int4")


def test_a_table_without_rows_has_none() -> None:
    assert quantize(np.zeros((0, 4), np.float32)).rows.shape == (0, 12)


@pytest.mark.parametrize("name", FORMATS)
def test_the_type_is_read_and_printed(name: str) -> None:
    module = emit_pooling("bag", "sum", "int64", weighted=False, types=RowTypes(name), columns=4)
    assert f"memref<?x?x!ember.quantized<{name}>>" in str(module)
    assert str(parse_module(str(module))) == str(module)


def test_types_are_held_to_their_rules() -> None:
    with pytest.raises(VerifyException) as error:
        QuantizedType("q2f16")
    assert str(error.value) == (
        "format of a quantised row must be q8f32, q8f16, q4f32, q4f16, not q2f16"
    )
    wrong = DequantizeOp(create_ssa_value(f32))
    with pytest.raises(VerifyException) as error:
        wrong.verify_()
    assert str(error.value) == "operand of the op must be an element of a quantised row, not f32"
    lanes = DequantizeOp(create_ssa_value(VectorType(QuantizedType("q8f32"), [4])))
    with pytest.raises(VerifyException) as error:
        lanes.verify_()
    assert str(error.value) == "result of the op must be vector<4xf32>, not f32"
