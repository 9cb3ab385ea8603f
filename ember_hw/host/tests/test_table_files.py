# pyright: basic
"""Tables on the pages of their files."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
import torch

import ember_hw
from ember_hw.compiler.element_dtypes import BFLOAT16
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import ProgramError
from ember_hw.host.memory_layout import MemoryLayout
from ember_hw.host.table_files import Progress, checksum, map_table

TABLE = np.arange(96, dtype=np.float32).reshape(6, 16)


def safetensors(path, tensors, **changes):
    """Write a file of the format: arrays by name."""
    kinds = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64"}
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, array in tensors.items():
        header[name] = {
            "dtype": kinds[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + array.nbytes],
            **changes,
        }
        data += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def test_npy_is_mapped_and_never_written(tmp_path):
    path = tmp_path / "t.npy"
    np.save(path, TABLE)
    table = map_table(path)
    assert isinstance(table, np.memmap)
    assert np.array_equal(table, TABLE)
    table[0] = 7
    assert np.array_equal(map_table(path), TABLE)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BFLOAT16])
def test_safetensors_are_mapped_by_name(tmp_path, dtype):
    other = np.ones((3, 5), dtype)
    path = safetensors(tmp_path / "t.safetensors", {"a": TABLE, "b": other})
    table = map_table(path, "b")
    assert isinstance(table, np.memmap)
    assert table.dtype == dtype
    assert np.array_equal(table, other)
    one = safetensors(tmp_path / "one.safetensors", {"a": TABLE})
    assert np.array_equal(map_table(one), TABLE)


def test_empty_table_is_one(tmp_path):
    path = safetensors(tmp_path / "t.safetensors", {"a": TABLE[:0]})
    assert map_table(path).shape == (0, 16)


def test_module_looks_up_on_the_pages_of_the_file(tmp_path):
    path = tmp_path / "t.npy"
    np.save(path, TABLE)
    table = map_table(path)
    bag = ember_hw.nn.EmbeddingBag.from_pretrained(torch.from_numpy(table), mode="sum")
    assert bag(torch.tensor([[5, 0]])).tolist() == [(TABLE[5] + TABLE[0]).tolist()]
    region = MemoryLayout(AcceleratorConfig()).place_table("tab", table)
    assert np.shares_memory(region.data, table)


def test_check_sum_is_held_and_progress_told(tmp_path, monkeypatch):
    monkeypatch.setattr("ember_hw.host.table_files._PIECE_BYTES", 128)
    path = tmp_path / "t.npy"
    np.save(path, TABLE)
    told = []
    found = checksum(TABLE)
    map_table(path, crc32=found, progress=told.append)
    assert [progress.done_bytes for progress in told] == [128, 256, 384]
    assert checksum(np.asfortranarray(TABLE)) == found
    with pytest.raises(
        ProgramError,
        match=f"^{re.escape(f'check sum of {path} must be 0x00000001, not {found:#010x}')}$",
    ):
        map_table(path, crc32=1)
    assert str(Progress(3_000_000, 12_000_000, 0.5)) == "3 of 12 MB, 6 MB/s"


def test_table_beyond_the_addresses_of_the_config_is_refused(tmp_path):
    path = tmp_path / "large.npy"
    np.lib.format.open_memmap(path, "w+", np.float32, (1 << 24, 64))  # 4 GiB, none on disk
    config = AcceleratorConfig(address_width_bits=32)
    message = (
        "end of 'tab' must be at most address 0x100000000 (address_width_bits 32 of config "
        "'default'), not 0x100100000"
    )
    with pytest.raises(ProgramError, match=f"^{re.escape(message)}$"):
        MemoryLayout(config).place_table("tab", map_table(path))
    region = MemoryLayout(AcceleratorConfig()).place_table("tab", map_table(path))
    assert region.num_bytes == 1 << 32


def refused(path, name=None):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 -- the caller compares the text
        map_table(path, name)
    return str(caught.value)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "t.bin"
    assert refused(path) == f"path must be an .npy or a .safetensors file, not {str(path)!r}"


def test_damaged_and_other_tables_are_refused(tmp_path):
    path = tmp_path / "t.npy"
    path.write_bytes(b"nothing")
    assert refused(path).startswith(f"{path} must be an .npy file of numbers, and isn't: ")
    np.save(path, TABLE)
    assert refused(path, "a") == f"name must be left out for the one array of {path}, not 'a'"
    np.save(path, TABLE[0].astype(np.float64))
    assert refused(path) == (
        f"table of {path} must be a matrix of float32, float16 or bfloat16, not float64 of shape "
        "(16,)"
    )


def test_damaged_safetensors_are_refused(tmp_path):
    path = tmp_path / "t.safetensors"
    path.write_bytes((1000).to_bytes(8, "little") + b"{}")
    assert refused(path) == (
        f"header of {path} must be within the file and at most 100000000 bytes, not 1000"
    )
    path.write_bytes((2).to_bytes(8, "little") + b"{]")
    assert refused(path).startswith(f"header of {path} must be JSON, not text with: ")
    safetensors(path, {"a": TABLE, "b": TABLE})
    assert refused(path) == f"name must be a tensor of {path} (a, b), not None"
    assert refused(path, "c") == f"name must be a tensor of {path} (a, b), not 'c'"
    safetensors(path, {"a": np.zeros((2, 2), np.int64)})
    assert refused(path) == f"tensor 'a' of {path} must be of F32, F16, BF16, not I64"
    safetensors(path, {"a": TABLE}, data_offsets=[0, 400])
    assert refused(path) == (
        f"tensor 'a' of {path} must have 384 bytes within the file, not those from 0 to 400 of 384"
    )
