"""The header has what `registers.py` and `isa` have, and C compilers take it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ember_hw import registers
from ember_hw.boards import ip_package
from ember_hw.boards.ip_package.c_header import c_header
from ember_hw.config import AcceleratorConfig
from ember_hw.isa import ISA_VERSION, Event, Microcode, event_bit

CONFIG = AcceleratorConfig.preset("small")


def _values() -> dict[str, int]:
    text = c_header(CONFIG)
    found = re.findall(r"^#define EMBER_HW_(\w+) (0x\w+)u", text, re.MULTILINE)
    found += re.findall(r"^ +EMBER_HW_(\w+) = (\w+),", text, re.MULTILINE)
    names = [name for name, _ in found]
    assert len(names) == len(set(names))
    return {name: int(value, 0) for name, value in found}


def test_registers_and_values_are_those_of_the_hardware() -> None:
    values = _values()
    for register in registers.REGISTERS:
        assert values[register.name] == register.address
    for state in registers.State:
        assert values[state.name] == state
    for code in registers.FaultCode:
        assert values[f"FAULT_{code.name}"] == code
    for counter in registers.Counter:
        assert values[counter.name] == counter
    for event in Event:
        for level in range(CONFIG.traversal_units):
            assert values[f"{event.name}{level}"] == 1 << event_bit(event, level, CONFIG)
    assert values["ISA_VERSION_VALUE"] == ISA_VERSION
    assert values["CONFIG_HASH_VALUE"] == CONFIG.hash()
    assert values["MICROCODE_WORDS"] == len(Microcode(CONFIG, {}).encode())
    assert values["STATE_MASK"] >= max(registers.State) > values["STATE_MASK"] >> 1
    assert values["FAULT_CODE_MASK"] >= max(registers.FaultCode) > values["FAULT_CODE_MASK"] >> 1


def test_lines_are_not_long() -> None:
    assert max(len(line) for line in c_header(CONFIG).splitlines()) <= 110


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("standard", ["c99", "c11"])
def test_driver_compiles_without_a_warning(tmp_path: Path, standard: str) -> None:
    (tmp_path / "ember_hw.h").write_text(c_header(CONFIG))
    source = Path(ip_package.__file__).parent / "files" / "ember_hw.c"
    flags = [f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"]
    subprocess.run(["cc", *flags, f"-I{tmp_path}", str(source)], check=True)
