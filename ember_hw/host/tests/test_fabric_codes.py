# pyright: basic
"""Bags of int8 tables in the fabric, whose rows lie turned in the device's memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import ember_hw
from ember_hw.compiler.program import Program
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import UnsupportedError
from ember_hw.host.backends.tests.test_results import CONFIG
from ember_hw.host.device import Device, open_device
from ember_hw.host.reference import bit_equal
from ember_hw.isa import RowFormat

HOST = AcceleratorConfig.preset("tiny")
VERILATOR = (pytest.mark.verilator, pytest.mark.timeout(900))  # builds the model
_ROWS = 40


def bags(
    columns: int, mode: str, scale_dtype: str, config: AcceleratorConfig, **options: Any
) -> tuple[Program, tuple[torch.Tensor, ...]]:
    """Return bags over a quantised table as a program, and a request; one bag is empty."""
    random = np.random.default_rng(columns)
    table = random.standard_normal((_ROWS, columns)).astype(np.float32)
    module = torch.nn.EmbeddingBag.from_pretrained(torch.from_numpy(table), mode=mode)
    indices = torch.from_numpy(random.integers(0, _ROWS, 60))
    inputs = (indices, torch.tensor([0, 7, 7, 8, 33]))
    if mode == "sum" and columns % 2:
        inputs = (*inputs, torch.from_numpy(random.standard_normal(60).astype(np.float32)))
    tables = {"weight": ember_hw.quantize(table, "int8", scale_dtype)}
    return ember_hw.compile(module, inputs, config=config, tables=tables, **options), inputs


#: Columns, mode and dtype of scale and bias; of odd columns sums are weighted.
SHAPES = [
    (1, "sum", "float32"),
    (64, "sum", "float16"),
    (4, "mean", "float32"),
    (101, "max", "float16"),
]


@pytest.fixture(scope="module", params=["interpreter", pytest.param("verilator", marks=VERILATOR)])
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    options: dict[str, Any] = {"optimise": False} if request.param == "verilator" else {}
    with open_device(request.param, config=CONFIG, **options) as opened:
        yield opened


@pytest.mark.parametrize(("columns", "mode", "scale_dtype"), SHAPES)
def test_bags_of_codes_are_pooled_in_the_fabric(
    device: Device, columns: int, mode: str, scale_dtype: str
) -> None:
    program, inputs = bags(columns, mode, scale_dtype, CONFIG, execute="fabric")
    twin, _ = bags(columns, mode, scale_dtype, HOST)
    with open_device("interpreter", config=HOST) as other:
        expected = other.run(twin, inputs).numpy()
    assert bit_equal(device.run(program, inputs).numpy(), expected)
    assert device.report.leaving_bytes == 4 * columns * 5


def test_microcode_says_how_rows_lie(tmp_path: Path) -> None:
    for scale_dtype, extra in (("float32", 8), ("float16", 4)):
        program, _ = bags(6, "sum", scale_dtype, CONFIG)
        path = tmp_path / "bags.ember"
        program.save(path)
        for one in (program, Program.load(path)):
            (nest,) = one.nests
            assert nest.execute == "fabric"
            assert nest.fabric is not None
            assert nest.fabric.turned == {"tab": extra}
            header = nest.microcode.records["reduce"]
            assert header["format"] == RowFormat.INT8
            assert (header["half_scale"], header["length"]) == (int(extra == 4), 24)
            assert nest.microcode.get("row0", "length") == 6 + extra


def test_new_values_of_a_turned_table_are_seen() -> None:
    program, inputs = bags(6, "sum", "float32", CONFIG)
    twin, _ = bags(6, "sum", "float32", HOST)
    with (
        open_device("interpreter", config=CONFIG) as device,
        open_device("interpreter", config=HOST) as other,
    ):
        before = device.run(program, inputs).numpy().copy()
        for one in (program, twin):
            one.tables["tab"][:, :6] ^= 0x55
        after = device.run(program, inputs).numpy()
        assert not bit_equal(before, after)
        assert bit_equal(after, other.run(twin, inputs).numpy())


@pytest.mark.parametrize(
    ("codes", "int8_rows", "taken"),
    [
        ("int8", 0, "f32, f16 and bf16"),
        ("int4", 1, "f32, f16, bf16, q8f32 and q8f16"),
    ],
)
def test_codes_that_the_unit_does_not_take_stay_on_the_host(
    codes: str, int8_rows: int, taken: str
) -> None:
    config = CONFIG.with_changes(int8_rows=int8_rows)
    module = torch.nn.EmbeddingBag(9, 4, mode="sum")
    inputs = (torch.tensor([1, 2, 4]), torch.tensor([0, 2]))
    element = "q8f32" if codes == "int8" else "q4f16"
    options: dict[str, Any] = {"config": config, "tables": {"weight": codes}}
    (placed,) = ember_hw.compile(module, inputs, **options).placement
    assert placed == ("eb_sum", "host", f"rows are of {element}, and the unit takes {taken}")
    with pytest.raises(UnsupportedError) as caught:
        ember_hw.compile(module, inputs, execute="fabric", **options)
    assert str(caught.value) == (
        "execute code of nest 'eb_sum' must fit the reduce unit with execute='fabric', but rows "
        f"are of {element}, and the unit takes {taken}; execute='auto' runs it on the host"
    )
