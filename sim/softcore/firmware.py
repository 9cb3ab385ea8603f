"""Compiles the soft core's C program with the `ziglang` wheel, for rv32im without a library."""

from __future__ import annotations

import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ember_hw import registers
from ember_hw.errors import ToolError

from .packages import COMPILER_PACKAGE, check_packages

#: Where the firmware expects its arguments in local memory: `arguments` of link.ld.
ARGUMENTS_ADDRESS = 0x8000
#: Columns whose sums the core holds in registers, as in main.c.
PART_COLUMNS = 16
MOST_COLUMNS = 512

_SOURCES = Path(__file__).resolve().parent / "firmware"
_FLAGS = (
    *("-target", "riscv32-freestanding-none", "-mcpu=generic_rv32+m", "-O2"),
    *("-ffreestanding", "-fno-builtin", "-nostdlib", "-static", "-Wall", "-Wextra", "-Werror"),
)


def build_firmware(columns: int) -> bytes:
    """Compile the program for rows of some columns.

    Parameters
    ----------
    columns : int
        int32 elements of a row: a multiple of `PART_COLUMNS`, at most `MOST_COLUMNS` (half of
        the data cache).

    Returns
    -------
    bytes
        What local memory holds from address 0 on.

    Raises
    ------
    ValueError
        The columns aren't such a multiple.
    ToolError
        The compiler is missing or fails.
    """
    if columns % PART_COLUMNS or not 0 < columns <= MOST_COLUMNS:
        raise ValueError(
            f"columns must be a multiple of {PART_COLUMNS} up to {MOST_COLUMNS}, not {columns!r}"
        )
    check_packages()
    with tempfile.TemporaryDirectory() as folder:
        elf = Path(folder) / "firmware.elf"
        command = [sys.executable, "-m", COMPILER_PACKAGE, "cc", *_FLAGS]
        command += [f"-D{name}={value}" for name, value in _definitions(columns).items()]
        command += [f"-Wl,-T,{_SOURCES / 'link.ld'}", "-o", str(elf)]
        command += [str(_SOURCES / "start.S"), str(_SOURCES / "main.c")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ToolError(
                f"{COMPILER_PACKAGE} must compile the soft core's program, but ended with status "
                f"{done.returncode}:\n{done.stderr.strip()}"
            )
        return loaded_bytes(elf.read_bytes())


def _definitions(columns: int) -> Mapping[str, int]:
    return {
        "COLUMNS": columns,
        "CONTROL_ADDRESS": registers.CONTROL.address,
        "CONTROL_START": registers.CONTROL_START,
        "STATUS_ADDRESS": registers.STATUS.address,
        "STATE_MASK": 7,
        "STATE_IDLE": registers.State.IDLE,
        "STATE_RUNNING": registers.State.RUNNING,
        "STATE_DONE": registers.State.DONE,
    }


def loaded_bytes(elf: bytes) -> bytes:
    """Return what an ELF file of 32 bits puts into memory from address 0 on, gaps as zeros.

    Raises
    ------
    ValueError
        It is no such file.

    Ref: Tool Interface Standard, Executable and Linking Format 1.2, figures 1-3 and 2-1.
    """
    if elf[:6] != b"\x7fELF\x01\x01":
        raise ValueError(f"an ELF file must begin with 7f454c460101, not {elf[:6].hex()}")
    (table,) = struct.unpack_from("<I", elf, 28)
    entry_bytes, entries = struct.unpack_from("<HH", elf, 42)
    image = bytearray()
    for number in range(entries):
        kind, offset, _, address, size = struct.unpack_from(
            "<5I", elf, table + number * entry_bytes
        )
        if kind != 1 or size == 0:  # PT_LOAD
            continue
        image.extend(bytes(max(0, address + size - len(image))))
        image[address : address + size] = elf[offset : offset + size]
    return bytes(image)
