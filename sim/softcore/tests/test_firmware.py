import re
import struct
import subprocess
from pathlib import Path

import pytest

from ember_hw.errors import ToolError
from ember_hw.sim.softcore import firmware
from ember_hw.sim.softcore.firmware import ARGUMENTS_ADDRESS, build_firmware, loaded_bytes
from ember_hw.sim.softcore.run import Kernel

SOURCES = Path(firmware.__file__).parent / "firmware"


def elf_of(*segments):
    """An ELF file with segments of (kind, address, bytes)."""
    header = bytearray(52)
    header[:6] = b"\x7fELF\x01\x01"
    struct.pack_into("<I", header, 28, 52)
    struct.pack_into("<HH", header, 42, 32, len(segments))
    table, content = b"", b""
    for kind, address, data in segments:
        offset = 52 + 32 * len(segments) + len(content)
        table += struct.pack("<8I", kind, offset, address, address, len(data), len(data), 0, 0)
        content += data
    return bytes(header) + table + content


def test_loaded_bytes_are_the_segments_with_zeros_between():
    assert loaded_bytes(elf_of((1, 2, b"ab"), (6, 0, b"xyz"), (1, 6, b"c"))) == b"\0\0ab\0\0c"


def test_another_file_is_refused():
    with pytest.raises(
        ValueError, match=r"^an ELF file must begin with 7f454c460101, not 7f454c460201$"
    ):
        loaded_bytes(b"\x7fELF\x02\x01")


@pytest.mark.parametrize("columns", [0, 8, 24, 528])
def test_columns_that_the_kernels_cannot_take_are_refused(columns):
    with pytest.raises(
        ValueError, match=rf"^columns must be a multiple of 16 up to 512, not {columns}$"
    ):
        build_firmware(columns)


def test_a_failed_compilation_shows_what_the_compiler_said(monkeypatch):
    monkeypatch.setattr(firmware, "check_packages", lambda: None)
    monkeypatch.setattr(
        subprocess,
        "run",
        lambda command, **_: subprocess.CompletedProcess(command, 1, "", "main.c:1: no\n"),
    )
    message = "ziglang must compile the soft core's program, but ended with status 1:\nmain.c:1: no"
    with pytest.raises(ToolError, match=f"^{re.escape(message)}$"):
        build_firmware(64)


def test_constants_of_the_c_sources_are_those_of_python():
    main = (SOURCES / "main.c").read_text()
    (kernels,) = re.findall(r"enum \{ (GATHER_ROWS, .*) \};", main)
    assert kernels.split(", ") == [kernel.name for kernel in Kernel]
    assert f"#define PART_COLUMNS {firmware.PART_COLUMNS} " in main
    assert f"COLUMNS <= {firmware.MOST_COLUMNS}," in main
    assert f"arguments = {ARGUMENTS_ADDRESS:#x};" in (SOURCES / "link.ld").read_text()
