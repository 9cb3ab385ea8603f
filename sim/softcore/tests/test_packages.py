import re

import pytest

from ember_hw.errors import ToolError
from ember_hw.sim.softcore import packages
from ember_hw.sim.softcore.packages import CORES, check_packages, core_verilog


class Spec:
    def __init__(self, folder):
        self.submodule_search_locations = [str(folder)]


def test_missing_packages_are_named_with_the_extra(monkeypatch):
    monkeypatch.setattr(packages, "find_spec", lambda module: None)
    message = (
        "the soft-core simulation needs pythondata-cpu-picorv32, pythondata-cpu-vexriscv, ziglang, "
        "which must be installed, and isn't: pip install 'ember_hw[softcore]'"
    )
    with pytest.raises(ToolError, match=f"^{re.escape(message)}$"):
        check_packages()
    with pytest.raises(ToolError, match=f"^{re.escape(message)}$"):
        core_verilog(CORES["picorv32"])


def test_one_missing_package_is_named_alone(monkeypatch, tmp_path):
    monkeypatch.setattr(
        packages, "find_spec", lambda module: None if module == "ziglang" else Spec(tmp_path)
    )
    assert packages.missing_packages() == ["ziglang"]


def test_a_package_without_the_core_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(packages, "find_spec", lambda module: Spec(tmp_path))
    message = (
        "package pythondata-cpu-vexriscv must hold verilog/VexRiscv.v, and doesn't; install the "
        "version that ember_hw's constraints.txt names"
    )
    with pytest.raises(ToolError, match=f"^{re.escape(message)}$"):
        core_verilog(CORES["vexriscv"])


def test_the_verilog_is_found_in_the_package(monkeypatch, tmp_path):
    (tmp_path / "verilog").mkdir()
    (tmp_path / "verilog" / "picorv32.v").touch()
    monkeypatch.setattr(packages, "find_spec", lambda module: Spec(tmp_path))
    assert core_verilog(CORES["picorv32"]) == tmp_path / "verilog" / "picorv32.v"
