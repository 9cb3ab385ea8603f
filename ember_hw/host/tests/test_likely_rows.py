"""Rows that a device with a memory of its own writes first, and that no other one is lost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import ember_hw
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import ProgramError
from ember_hw.host import likely_rows
from ember_hw.host.backends.interpreter import Backend
from ember_hw.host.device import Device
from ember_hw.host.launch import Launch
from ember_hw.host.likely_rows import LikelyRows, Uploads
from ember_hw.host.memory_layout import Region
from ember_hw.nn import EmbeddingBag, QuantizedEmbeddingBag

ROWS, COLUMNS = 40, 12
CONFIG = AcceleratorConfig.preset("tables")


class FarMemory(Backend):
    """An interpreter with a memory of its own, to which only what differs is written.

    It writes rows that are expected to differ, and all of a region where that wasn't all, as a
    board does by check sums.
    """

    def __init__(self, config: AcceleratorConfig) -> None:
        super().__init__(config, memory="ideal", sink="ideal")
        self.likely = LikelyRows()
        self.held: dict[int, NDArray[np.uint8]] = {}
        self.written: dict[str, int] = {}

    def expect(self, region: Region, rows: NDArray[Any]) -> None:
        self.likely.expect(region, rows)

    def execute(self, launch: Launch) -> Iterator[Any]:
        self.written = {}
        for region in launch.regions:
            held = self.held.get(region.base, np.empty(0, np.uint8))
            written = 0
            if held.shape != region.data.shape:
                held = np.zeros_like(region.data)
            if not np.array_equal(held, region.data):
                for first, end in self.likely.ranges(region):
                    held[first:end] = region.data[first:end]
                    written += int(end - first)
                if not np.array_equal(held, region.data):
                    held[:] = region.data
                    written = region.data.size
                self.likely.forget(region)
            self.held[region.base] = held
            self.written[region.symbol] = written
        return super().execute(launch)


@pytest.fixture
def far() -> FarMemory:
    return FarMemory(CONFIG)


@pytest.fixture
def device(far: FarMemory) -> Device:
    return Device("far", far)


def region(rows: int = 8, pitch_bytes: int = 64) -> Region:
    data = np.zeros(rows * pitch_bytes, np.uint8)
    return Region("tab", 1 << 20, data, data.size, rows, pitch_bytes // 4)


def test_rows_are_ranges_of_bytes() -> None:
    rows = LikelyRows()
    assert rows.ranges(region()).shape == (0, 2)
    rows.expect(region(), np.array([], np.int64))
    assert rows.ranges(region()).shape == (0, 2)
    rows.expect(region(), np.array([7, 0, 2, 1, 2]))
    rows.expect(region(), np.array([4], np.int32))
    assert rows.ranges(region()).tolist() == [[0, 192], [256, 320], [448, 512]]
    assert rows.ranges(region(rows=3)).tolist() == [[0, 192]], "a smaller table lies here now"
    rows.forget(region())
    assert rows.ranges(region()).shape == (0, 2)


def test_the_latest_rows_are_kept_where_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(likely_rows, "MOST_ROWS", 3)
    rows = LikelyRows()
    rows.expect(region(), np.array([0, 1]))
    rows.expect(region(), np.array([5, 6]))
    assert rows.ranges(region()).tolist() == [[320, 448]]


def test_backends_with_the_host_s_memory_expect_nothing(far: FarMemory) -> None:
    assert isinstance(far, Uploads)
    assert not isinstance(Backend(CONFIG, memory="ideal", sink="ideal"), Uploads)


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("columns", [COLUMNS, 16], ids=["copied", "in place"])
def test_a_step_writes_the_rows_that_were_looked_up(
    far: FarMemory, device: Device, columns: int, sparse: bool
) -> None:
    bag = EmbeddingBag(ROWS, columns, mode="sum", sparse=sparse, device=device)
    optimizer: Any = torch.optim.SGD(bag.parameters(), lr=0.1)
    indices = torch.tensor([[3, 4, 20], [3, 39, 0]])
    row_bytes = -(-4 * columns // CONFIG.bus_bytes) * CONFIG.bus_bytes
    table_bytes = -(-ROWS * row_bytes // 64) * 64
    for step in range(3):
        optimizer.zero_grad()
        found = bag(indices)
        expected = torch.nn.functional.embedding_bag(indices, bag.weight, mode="sum")
        torch.testing.assert_close(found, expected)
        assert far.written["tab"] == (5 * row_bytes if step else table_bytes)
        found.square().sum().backward()
        optimizer.step()
    bag(indices)
    assert far.written["tab"] == 5 * row_bytes
    bag(indices)
    assert far.written["tab"] == 0, "nothing changed"


@pytest.mark.parametrize("columns", [COLUMNS, 16], ids=["copied", "in place"])
@pytest.mark.parametrize("told", [None, [5], [6]], ids=["nothing", "the row", "another row"])
def test_no_row_is_stale_whatever_was_told(
    far: FarMemory, device: Device, told: list[int] | None, columns: int
) -> None:
    bag = EmbeddingBag(ROWS, columns, mode="sum", device=device)
    with torch.no_grad():
        bag(torch.tensor([[1, 2]]))
        version = bag.weight._version
        bag.weight[5] += 1.0
        assert bag.weight._version > version, "torch's own count tells of the change"
        if told is not None:
            (held,) = bag._lookups._held.values()  # pyright: ignore[reportPrivateUsage]
            device.reload(held.program, {"weight": np.array(told)})
        bag.weight.data[30] -= 1.0  # which no count tells
        found = bag(torch.tensor([[5, 30]]))
        assert torch.equal(found[0], bag.weight[5] + bag.weight[30])


def test_a_module_says_which_rows_it_changed(far: FarMemory, device: Device) -> None:
    bag = EmbeddingBag(ROWS, 16, mode="sum", device=device)
    packed = QuantizedEmbeddingBag.from_torch(bag, "int8", device=device)
    for module, table, row_bytes in ((bag, bag.weight, 64), (packed, packed.rows, 64)):
        with torch.no_grad():
            module(torch.tensor([[1, 2]]))
            table[5] = 0
            module.reload(torch.tensor([5]))
            assert torch.equal(module(torch.tensor([[5]])), torch.zeros(1, 16))
            # The two rows that were read might have changed, too.
            assert far.written["tab"] == 3 * row_bytes
            module.reload()
            with pytest.raises(IndexError, match=r"^rows\[0\] must be in \[0, 40\), the rows of"):
                module.reload(torch.tensor([40]))


def a_program() -> tuple[ember_hw.Program, torch.nn.EmbeddingBag]:
    bag = torch.nn.EmbeddingBag(ROWS, 16, mode="sum")
    return ember_hw.compile(bag, INPUTS, config=CONFIG), bag


INPUTS = (torch.tensor([1, 2, 3]), torch.tensor([0, 1]))


def test_rows_that_are_told_are_written_alone(far: FarMemory, device: Device) -> None:
    program, bag = a_program()
    with torch.no_grad():
        device.run(program, INPUTS)
        bag.weight[[7, 11]] = 0.0
        device.reload(program, {"weight": np.array([7, 11, 7])})
        device.run(program, INPUTS)
        # Those that the first run read are expected to change, too.
        assert far.written["tab"] == 5 * 64
        bag.weight[12] = 0.0
        device.reload(program, {"tab": torch.tensor([12])})
        device.run(program, INPUTS)
        assert far.written["tab"] == 4 * 64


def test_exchanged_tables_are_brought_in_whole(far: FarMemory, device: Device) -> None:
    program, _ = a_program()
    device.run(program, INPUTS)
    program.tables["tab"] = np.ones((ROWS, 16), np.float32)
    device.reload(program, {"weight": np.array([1])})
    assert torch.equal(device.run(program, INPUTS), torch.tensor([[1.0] * 16, [2.0] * 16]))
    assert far.written["tab"] == ROWS * 64


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (
            {"user": np.array([1])},
            ProgramError,
            "name of a table of program 'eb_sum' must be one of weight, not 'user'",
        ),
        (
            {"weight": np.array([0.5])},
            TypeError,
            "rows must be of dtype int32 or int64, not float64; nothing is cast (table 'weight')",
        ),
        (
            {"weight": np.array([3, 40])},
            IndexError,
            "rows[1] must be in [0, 40), the rows of table 'weight', not 40",
        ),
    ],
)
def test_rows_that_are_none_are_refused(
    device: Device, rows: Any, error: type[Exception], message: str
) -> None:
    program, _ = a_program()
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        device.reload(program, rows)
