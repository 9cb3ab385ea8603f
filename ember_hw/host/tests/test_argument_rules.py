"""Every rule for the arguments of a lookup, at `Device.run` of every backend."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch

from ember_hw.config import AcceleratorConfig
from ember_hw.host.device import BACKENDS, Device
from ember_hw.host.reference import bit_equal
from ember_hw.host.tests.counting import CountingBackend
from ember_hw.host.tests.programs import bag_program

CONFIG = AcceleratorConfig.preset("tiny")
TABLE = np.random.default_rng(0).standard_normal((10, 7), np.float32)
PROGRAM = bag_program(TABLE, config=CONFIG)
INPUTS = (np.array([3, 1, 4, 1]), np.array([0, 0, 3]))
POOLED = np.stack([np.zeros(7, np.float32), (TABLE[3] + TABLE[1]) + TABLE[4], TABLE[1]])
TABLE_NAME = "(table 'weight')"


@pytest.fixture(
    scope="module",
    params=[
        "interpreter",
        pytest.param(
            "verilator",
            marks=[pytest.mark.verilator, pytest.mark.timeout(900)],  # builds the model
        ),
    ],
)
def backend(request: pytest.FixtureRequest) -> Iterator[CountingBackend]:
    options = {"optimise": False} if request.param == "verilator" else {}
    opened = import_module(BACKENDS[request.param]).Backend(CONFIG, **options)
    yield CountingBackend(opened)
    opened.close()


def _ints(*values: int) -> np.ndarray:
    return np.array(values)


def _dtype_rule(argument: str, dtype: str) -> str:
    return f"{argument} must be of dtype int32 or int64, not {dtype}; nothing is cast {TABLE_NAME}"


REFUSED: list[tuple[str, tuple[Any, ...], type[Exception], str]] = [
    *(
        (
            f"{argument}_{dtype}",
            (_ints(1).astype(dtype), _ints(0))
            if argument == "indices"
            else (_ints(1), _ints(0).astype(dtype)),
            TypeError,
            _dtype_rule(argument, dtype),
        )
        for argument in ("indices", "offsets")
        for dtype in ("bool", "float32", "float64", "uint8", "int16")
    ),
    (
        "torch_float",
        (torch.tensor([1.0]), torch.tensor([0])),
        TypeError,
        _dtype_rule("indices", "float32"),
    ),
    (
        "list",
        ([1, 2], _ints(0)),
        TypeError,
        f"indices must be a NumPy array or a torch tensor, not list {TABLE_NAME}",
    ),
    (
        "1d_without_offsets",
        (_ints(1, 2),),
        ValueError,
        f"offsets must be given with 1-D indices, not None; 2-D indices (B, L) need none "
        f"{TABLE_NAME}",
    ),
    (
        "3d",
        (np.zeros((1, 2, 3), np.int64),),
        ValueError,
        f"indices must be 1-D with offsets or 2-D (B, L), not of shape (1, 2, 3) {TABLE_NAME}",
    ),
    (
        "2d_with_offsets",
        (_ints(1, 2).reshape(1, 2), _ints(0)),
        ValueError,
        f"offsets must be None with 2-D indices, where each row is a bag, not ndarray {TABLE_NAME}",
    ),
    (
        "2d_offsets",
        (_ints(1, 2), _ints(0, 1).reshape(1, 2)),
        ValueError,
        f"offsets must be 1-D, not of shape (1, 2) {TABLE_NAME}",
    ),
    (
        "first_offset",
        (_ints(1, 2), _ints(1)),
        ValueError,
        f"offsets[0] must be 0, not 1 {TABLE_NAME}",
    ),
    (
        "negative_offset",
        (_ints(1, 2), _ints(0, -1)),
        ValueError,
        f"offsets[1] must be at least 0, not -1 {TABLE_NAME}",
    ),
    (
        "decreasing_offset",
        (_ints(1, 2), _ints(0, 2, 1)),
        ValueError,
        f"offsets[2] must be at least offsets[1] = 2, not 1 {TABLE_NAME}",
    ),
    (
        "large_offset",
        (_ints(1, 2), _ints(0, 3)),
        ValueError,
        f"offsets[1] must be at most 2, the number of indices, not 3 {TABLE_NAME}",
    ),
    (
        "no_offsets_with_indices",
        (_ints(1, 2), _ints()[:0].astype(np.int64)),
        ValueError,
        f"offsets must have an entry for each bag, not be empty with 2 indices {TABLE_NAME}",
    ),
    (
        "too_many_indices",
        (np.broadcast_to(np.int64(0), 2**31), _ints(0)),
        ValueError,
        "indices must be at most 2147483647, the largest 32-bit value of the access unit, not "
        f"2147483648; split the request {TABLE_NAME}",
    ),
    *(
        (
            f"index_{index}",
            (_ints(1, index), _ints(0)),
            IndexError,
            f"indices[1] must be in [0, 10), the rows of table 'weight', not {index}",
        )
        for index in (-1, 10, 2**32, 2**63 - 1, -(2**63))
    ),
]


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [pytest.param(*case[1:], id=case[0]) for case in REFUSED],
)
def test_refused_before_any_device_access_and_the_next_call_is_right(
    backend: CountingBackend, inputs: tuple[Any, ...], error: type[Exception], message: str
) -> None:
    device = Device("counting", backend)
    backend.calls = 0
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        device.run(PROGRAM, inputs)
    assert backend.calls == 0
    assert bit_equal(device.run(PROGRAM, INPUTS), POOLED)
    assert backend.calls == 2


def test_lookup_in_a_table_without_rows_is_refused(backend: CountingBackend) -> None:
    device = Device("counting", backend)
    empty = bag_program(TABLE[:0], config=CONFIG)
    backend.calls = 0
    message = "indices[0] must be in [0, 0), the rows of table 'weight', not 0"
    with pytest.raises(IndexError, match=f"^{re.escape(message)}$"):
        device.run(empty, (_ints(0), _ints(0)))
    assert backend.calls == 0
    assert not device.run(empty, (_ints(0)[:0], _ints(0, 0))).any()


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("offset_dtype", [np.int32, np.int64])
def test_both_index_dtypes_give_one_answer(
    backend: CountingBackend, index_dtype: type[Any], offset_dtype: type[Any]
) -> None:
    inputs = (INPUTS[0].astype(index_dtype), INPUTS[1].astype(offset_dtype))
    assert bit_equal(Device("counting", backend).run(PROGRAM, inputs), POOLED)
