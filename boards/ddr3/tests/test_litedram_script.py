"""What the generator's process refuses: another register map, an init CPU without its tools."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from ember_hw.boards.ddr3 import litedram_script
from ember_hw.boards.ddr3.litedram_script import Refusal, _check_cpu, _check_registers
from ember_hw.boards.ddr3.registers import REGISTERS


def test_register_map_that_the_host_does_not_know_is_refused():
    good = {name: {"addr": address, "size": 1} for name, address in REGISTERS.items()}
    _check_registers(good)
    moved = {**good, "ddrctrl_init_done": {"addr": 8, "size": 1}}
    with pytest.raises(Refusal) as caught:
        _check_registers(moved)
    found = {**REGISTERS, "ddrctrl_init_done": 8}
    assert str(caught.value) == (
        f"registers of LiteDRAM's core must be those of ember_hw, {REGISTERS}, not {found}: "
        "pip install the versions that the extra `ddr3` names"
    )


@pytest.fixture
def present(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of packages and tools that are there; all that the CPU needs, until one is removed."""
    names = {*litedram_script._CPU_PACKAGES, *litedram_script._CPU_TOOLS, "riscv32-elf-gcc"}
    cpu = SimpleNamespace(gcc_triple=("riscv64-elf", "riscv32-elf"))
    monkeypatch.setitem(sys.modules, "litex.soc.cores.cpu", SimpleNamespace(CPUS={"vexriscv": cpu}))
    monkeypatch.setattr(litedram_script, "find_spec", lambda name: name if name in names else None)
    monkeypatch.setattr(
        litedram_script.shutil, "which", lambda name: name if name in names else None
    )
    return names


def test_init_cpu_with_all_it_needs_is_taken(present: set[str]):
    _check_cpu("vexriscv")


def test_missing_packages_and_tools_are_named(present: set[str]):
    present -= {"pythondata_software_picolibc", "ninja"}
    with pytest.raises(Refusal) as caught:
        _check_cpu("vexriscv")
    assert str(caught.value) == (
        "pythondata-software-picolibc, ninja must be there for the init CPU vexriscv, and isn't: "
        "pip install pythondata-software-picolibc ninja"
    )


def test_missing_compiler_is_named(present: set[str]):
    present -= {"riscv32-elf-gcc"}
    with pytest.raises(Refusal) as caught:
        _check_cpu("vexriscv")
    assert str(caught.value) == (
        "riscv64-unknown-elf-gcc, or another C compiler for RISC-V, must be in PATH for the init "
        "CPU vexriscv, and isn't; on Debian and Ubuntu: apt install gcc-riscv64-unknown-elf"
    )


def test_refusal_ends_with_status_2_and_its_reason_in_a_file(
    tmp_path, monkeypatch: pytest.MonkeyPatch
):
    def refuse(order: object, folder: object) -> None:
        raise Refusal("no such thing")

    monkeypatch.setattr(litedram_script, "write_controller", refuse)
    (tmp_path / "order.json").write_text('{"kind": "controller"}')
    with pytest.raises(SystemExit) as caught:
        litedram_script.main(str(tmp_path / "order.json"), str(tmp_path))
    assert caught.value.code == 2
    assert (tmp_path / litedram_script.REFUSED).read_text() == "no such thing"
