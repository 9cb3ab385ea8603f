"""Program files round-trip, and refuse what is damaged or made for something else."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ember_hw.compiler.program import Argument, Callback, Nest, Operand, Patch, Program
from ember_hw.config import PRESETS
from ember_hw.errors import ProgramError
from ember_hw.isa import ISA_VERSION, Event, Microcode

CONFIG = PRESETS["tiny"]
CALLBACKS = (
    Callback(
        1,
        0,
        Event.ITERATE,
        (Operand("row", 0, "f32"), Operand("scalar", 1, "f32", "tab")),
    ),
    Callback(2, 1, Event.END),
)
NESTS = (
    Nest(
        "bag_0",
        Microcode(CONFIG, {"unit0": {"enable": 1, "step": 1, "lower_immediate": -2}}),
        (Patch("unit0", "upper_immediate", "B", 2, 1),),
        {"B": 3},
        CALLBACKS,
    ),
    Nest("bag_1", Microcode(CONFIG, {"unit0": {"enable": 1, "step": 2}})),
)
PROGRAM = Program(
    name="bag",
    config=CONFIG,
    opt_level=3,
    nests=NESTS,
    arguments=(
        Argument("B", "index"),
        Argument("tab", "memref<?x?xf32>"),
        Argument("scratch0", "memref<?xf32>", "scratch", ("count", 3)),
    ),
    ir={"au": "au.program ..\n", "scf": "// Grüße\n"},
    model={"num_embeddings": 3, "include_last_offset": False},
    tables={
        "tab": np.arange(12, dtype=np.float32).reshape(3, 4),
        "empty": np.zeros((0, 4), np.float16),
    },
    seed=7,
    versions={"torch": "2.13"},
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "bag.ember"
    PROGRAM.save(path)
    return path


def refused(path: Path, **arguments: Any) -> str:
    with pytest.raises(ProgramError) as raised:
        Program.load(path, **arguments)
    return str(raised.value)


def rewrite(path: Path, name: str, change: Callable[[bytes], bytes | None]) -> None:
    """Change or drop a member and leave the rest as it is."""
    with zipfile.ZipFile(path) as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
        comment = archive.comment
    changed = change(members.pop(name))
    if changed is not None:
        members[name] = changed
    with zipfile.ZipFile(path, "w") as archive:
        for member, data in members.items():
            archive.writestr(member, data)
        archive.comment = comment


def forge(path: Path, **changes: Any) -> None:
    """Change the manifest as one who writes the digests too."""
    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read("manifest.json")) | changes
    data = json.dumps(manifest).encode()
    rewrite(path, "manifest.json", lambda _: data)
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = hashlib.sha256(data).hexdigest().encode()


def test_round_trip(path: Path) -> None:
    again = Program.load(path, CONFIG)
    for part in ("name", "config", "opt_level", "arguments"):
        assert getattr(again, part) == getattr(PROGRAM, part), part
    assert [asdict(nest) for nest in again.nests] == [asdict(nest) for nest in NESTS]
    for part in ("ir", "model", "seed", "versions"):
        assert getattr(again, part) == getattr(PROGRAM, part), part
    assert list(again.tables) == list(PROGRAM.tables)
    for name, table in PROGRAM.tables.items():
        np.testing.assert_array_equal(again.tables[name], table, strict=True)


def test_same_program_gives_the_same_bytes(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.ember"
    Program.load(path).save(other)
    assert other.read_bytes() == path.read_bytes()


def test_strided_table_is_saved_as_its_copy(tmp_path: Path) -> None:
    table = np.arange(24, dtype=np.float32).reshape(4, 6)[::2, ::3]
    path = tmp_path / "strided.ember"
    Program("p", CONFIG, 0, NESTS, tables={"tab": table}).save(path)
    np.testing.assert_array_equal(Program.load(path).tables["tab"], table)


def test_config_of_another_name_is_the_same_config(path: Path) -> None:
    assert Program.load(path, CONFIG.with_changes(name="board")).name == "bag"


def test_objects_are_never_pickled(tmp_path: Path) -> None:
    path = tmp_path / "object.ember"
    table = np.array([{}], dtype=object)
    with pytest.raises(ValueError, match=r"Object arrays cannot be saved"):
        Program("p", CONFIG, 0, NESTS, tables={"tab": table}).save(path)
    assert list(tmp_path.iterdir()) == []


def test_other_config_is_refused(path: Path) -> None:
    small = PRESETS["small"]
    assert refused(path, config=small) == (
        f"config of program file {str(path)!r} must be 'small' (hash {small.hash():#010x}), "
        f"not 'tiny' (hash {CONFIG.hash():#010x}): compile for the device's config"
    )


def test_other_isa_version_is_refused(path: Path) -> None:
    forge(path, isa_version=ISA_VERSION + 1)
    assert refused(path) == (
        f"ISA version of program file {str(path)!r} must be {ISA_VERSION}, "
        f"not {ISA_VERSION + 1}: compile again"
    )


def test_other_format_is_refused(path: Path) -> None:
    forge(path, format_version=1)
    assert refused(path) == (
        f"format of program file {str(path)!r} must be 'ember_hw program' version 3, "
        "not 'ember_hw program' version 1: compile again"
    )


def test_stored_config_has_the_stored_hash(path: Path) -> None:
    forge(path, config_hash=1)
    assert refused(path) == (
        f"config of program file {str(path)!r} must have hash 0x00000001, "
        f"not {CONFIG.hash():#010x}: compile again"
    )


@pytest.mark.parametrize("kept", [0.2, 0.9])
def test_truncated_file_is_refused(path: Path, kept: float) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * kept)])
    assert refused(path) == (
        f"program file {str(path)!r} must be a complete zip archive: File is not a zip file"
    )


def test_flipped_bit_is_refused(path: Path) -> None:
    data = bytearray(path.read_bytes())
    position = data.index(np.float32(5).tobytes())
    data[position] ^= 1
    path.write_bytes(data)
    assert refused(path) == (
        f"program file {str(path)!r} must be a complete zip archive: "
        "Bad CRC-32 for file 'tables/tab.npy'"
    )


@pytest.mark.parametrize("name", ["microcode/0.bin", "ir/scf.mlir", "tables/tab.npy"])
def test_changed_member_is_refused(path: Path, name: str) -> None:
    rewrite(path, name, lambda data: data[:-1] + bytes([data[-1] ^ 1]))
    assert refused(path) == (
        f"{name} of program file {str(path)!r} must have the digest that the manifest states; "
        "it was changed"
    )


@pytest.mark.parametrize("name", ["manifest.json", "microcode/0.bin", "tables/empty.npy"])
def test_missing_member_is_refused(path: Path, name: str) -> None:
    rewrite(path, name, lambda data: None)
    assert refused(path) == f"program file {str(path)!r} must hold {name}; it does not"


def test_changed_manifest_is_refused(path: Path) -> None:
    rewrite(path, "manifest.json", lambda data: data.replace(b'"bag"', b'"bog"'))
    assert refused(path) == (
        f"manifest.json of program file {str(path)!r} must have the digest that the file states; "
        "it was changed"
    )


def test_illegal_content_is_refused(path: Path) -> None:
    forge(path, opt_level=9)
    assert refused(path) == (
        f"program file {str(path)!r} must hold a legal program: "
        "opt_level must be 0, 1, 2 or 3, not 9"
    )


def test_code_that_is_none_is_refused(path: Path) -> None:
    forge(path, host_code={"kind": "Sort"})
    assert re.match(
        f"program file {str(path)!r} must hold a legal program: "
        r"kind of execute code must be one of .*, not 'Sort'$",
        refused(path),
    )


def test_absent_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Program.load(tmp_path / "none.ember")


def test_failed_save_leaves_the_old_file(path: Path) -> None:
    before = path.read_bytes()
    model: Any = {"x": {1, 2}}
    broken = Program("p", CONFIG, 0, NESTS, model=model)
    with pytest.raises(TypeError, match=r"not JSON serializable"):
        broken.save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
