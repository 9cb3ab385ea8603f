from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest

from ember_hw.config import AcceleratorConfig
from ember_hw.errors import ProgramError
from ember_hw.host.memory_layout import MemoryLayout, ResidentArray

SMALL = AcceleratorConfig.preset("small")  # 16-byte beats


def test_regions_start_on_pages_and_hold_whole_lines() -> None:
    layout = MemoryLayout(SMALL)
    first = layout.place_vector("off", np.arange(3))
    second = layout.place_vector("idx", np.arange(1000, dtype=np.int32))
    third = layout.place_vector("none", np.arange(0))
    fourth = layout.place_vector("end", np.arange(1))
    regions = [first, second, third, fourth]
    assert first.base == 1 << 20
    assert [region.base % 4096 for region in regions] == [0] * 4
    assert [region.num_bytes for region in regions] == [24, 4000, 0, 8]
    assert [region.data.size for region in regions] == [64, 4032, 0, 64]
    assert all(a.base + a.data.size <= b.base and a.base < b.base for a, b in pairwise(regions))
    assert first.data[:24].view(np.int64).tolist() == [0, 1, 2]


def test_environment_names_base_bytes_rows_and_pitch() -> None:
    region = MemoryLayout(SMALL).place_table("tab", np.zeros((5, 7), np.float32))
    assert region.environment() == {
        "tab": 1 << 20,
        "tab.bytes": 5 * 32,
        "tab.elements": 5 * 8,
        "tab.rows": 5,
        "tab.pitch": 8,
    }


def test_table_that_fits_is_passed_by_pointer() -> None:
    table = np.zeros((4, 8), np.float32)
    resident = ResidentArray(MemoryLayout(SMALL), "tab", table)
    assert not resident.is_copy
    table[3, 7] = 5.0
    assert resident.region.data.view(np.float32)[-1] == 5.0


@pytest.mark.parametrize(
    "table",
    [
        np.arange(35, dtype=np.float32).reshape(5, 7),  # rows are no whole beats
        np.arange(40, dtype=np.float32).reshape(5, 8),  # the end is no whole line
        np.arange(64, dtype=np.float32).reshape(8, 8)[::2],
        np.arange(64, dtype=np.float32).reshape(8, 8).T,
        np.arange(128, dtype=np.float32).reshape(8, 16)[:, :8],
    ],
)
def test_other_tables_are_copied_row_by_row(table: np.ndarray) -> None:
    resident = ResidentArray(MemoryLayout(SMALL), "tab", table)
    region = resident.region
    assert resident.is_copy
    assert region.data.size % 64 == 0
    rows = region.data[: region.num_bytes].view(np.float32).reshape(region.rows, region.pitch)
    assert region.pitch * 4 % 16 == 0
    assert np.array_equal(rows[:, : table.shape[1]], table)


@pytest.mark.parametrize("rows", [[2], [0, 1, 2, 3, 4, 4]])
def test_refresh_copies_the_rows_that_are_read(rows: list[int]) -> None:
    table = np.zeros((5, 7), np.float32)
    resident = ResidentArray(MemoryLayout(SMALL), "tab", table)
    table[2] = 3.0
    resident.refresh(np.array(rows))
    copy = resident.region.data[: resident.region.num_bytes].view(np.float32).reshape(5, 8)
    assert np.array_equal(copy[:, :7], table)


def test_table_beyond_the_addresses_is_refused() -> None:
    config = AcceleratorConfig(name="narrow", address_width_bits=32)
    layout = MemoryLayout(config, first_address=(1 << 32) - 4096)
    layout.place_vector("idx", np.zeros(512, np.int64))
    message = (
        "end of 'tab' must be at most address 0x100000000 (address_width_bits 32 of config "
        "'narrow'), not 0x100000040"
    )
    with pytest.raises(ProgramError, match=f"^{re.escape(message)}$"):
        layout.place_table("tab", np.zeros((1, 16), np.float32))


def test_rows_of_several_dimensions_follow_each_other() -> None:
    array = np.arange(2 * 3 * 5, dtype=np.float32).reshape(2, 3, 5)
    region = MemoryLayout(SMALL).place("x", array)
    assert (region.rows, region.pitch, region.num_bytes) == (6, 8, 6 * 32)
    rows = region.data[: region.num_bytes].view(np.float32).reshape(6, 8)
    assert rows[:, :5].tolist() == array.reshape(6, 5).tolist()
    assert not rows[:, 5:].any()


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.int16),
        np.arange(60, dtype=np.int32).reshape(3, 4, 5)[:, ::2],
        np.zeros((0, 3, 5), np.float32),
    ],
)
def test_a_copy_of_any_rank_is_brought_up_to_date(array: np.ndarray) -> None:
    resident = ResidentArray(MemoryLayout(SMALL), "x", array)
    assert resident.is_copy or not array.size
    array += 1
    resident.refresh()
    region = resident.region
    pitch = region.pitch if array.ndim > 1 else array.size
    stored = region.data[: region.num_bytes].view(array.dtype).reshape(-1, pitch)
    columns = array.shape[-1]
    assert stored[:, :columns].tolist() == array.reshape(-1, columns).tolist()


@pytest.mark.parametrize("shape", [(5,), (4, 8), (5, 7)])
def test_a_copy_takes_another_array(shape: tuple[int, ...]) -> None:
    first, second = np.zeros(shape, np.float32), np.ones(shape, np.float32)
    resident = ResidentArray(MemoryLayout(SMALL), "x", first, by_copy=True)
    assert resident.is_copy
    resident.take(second)
    elements = resident.region.data[: resident.region.num_bytes].view(np.float32)
    assert int(elements.sum()) == second.size
    second += 1
    resident.refresh()
    assert int(elements.sum()) == 2 * second.size
    assert not first.any()


@pytest.mark.parametrize("columns", [8, 14, 16])
def test_rows_are_turned_as_they_are_copied(columns: int) -> None:
    table = np.arange(3 * columns, dtype=np.uint8).reshape(3, columns)
    resident = ResidentArray(MemoryLayout(SMALL), "tab", table, turned=5)
    assert resident.is_copy
    region = resident.region
    stored = region.data[: region.num_bytes].reshape(3, region.pitch)[:, :columns]
    turned = [[*row[-5:], *row[:-5]] for row in table.tolist()]
    assert stored.tolist() == turned
    table[:] += 1
    resident.refresh(np.array([1]))
    assert stored.tolist() == [turned[0], [x + 1 for x in turned[1]], turned[2]]
    resident.take(table)
    assert stored.tolist() == [[x + 1 for x in row] for row in turned]
