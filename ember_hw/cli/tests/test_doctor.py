from __future__ import annotations

import shutil
import sys
from importlib import metadata

import pytest

from ember_hw.cli import doctor


def test_every_required_tool_of_the_test_machine_is_found() -> None:
    report = doctor.to_json(list(doctor.check_all()))
    assert report["ok"] is True


def test_missing_command_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    check = doctor._command("c++", "g++", "compiles Verilator's models")
    assert check.is_failure
    assert check.note == "install g++; on Debian and Ubuntu: apt install g++"


def test_missing_package_names_the_range_that_the_metadata_states(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stated = ["xdsl==0.75.*", "cocotb-bus", "cocotb>=2.1; extra == 'test'"]
    monkeypatch.setattr(metadata, "requires", lambda name: stated)
    monkeypatch.setitem(sys.modules, "xdsl", None)
    check = doctor._package("xdsl", "xdsl", "compiler", True)
    assert check.is_failure
    assert check.note.startswith("pip install 'xdsl==0.75.*'  (ModuleNotFoundError: ")
    assert doctor._requirement("cocotb") == "cocotb>=2.1"
    assert doctor._requirement("torch") == "torch"


def test_missing_optional_package_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lit", None)
    check = doctor._package("lit", "lit", "tests", False)
    assert check.version is None
    assert not check.is_failure
    assert doctor.to_json([check])["ok"] is True


def test_python_outside_the_range_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 0))
    monkeypatch.setattr(doctor.platform, "python_version", lambda: "3.10.0")
    assert doctor._python().note == "Python must be 3.11 to 3.13, not 3.10.0; use another one"
    assert doctor.to_json([doctor._python()])["ok"] is False


def test_missing_headers_of_fst_are_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "false")
    check = doctor._fst()
    assert check.version is None
    assert not check.is_failure
    assert check.note.endswith("install liblz4-dev and zlib1g-dev, or trace to a .vcd file")
    monkeypatch.delenv("CXX")
    assert doctor._fst().tool == "lz4, zlib"


def test_cache_that_cannot_be_used_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBER_HW_CACHE", "/tmp/with space")
    check = doctor._cache()
    assert check.is_failure
    assert "without white space" in check.note
