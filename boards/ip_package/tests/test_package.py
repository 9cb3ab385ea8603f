"""The package is whole, clean and right: it runs from its own folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ember_hw.boards.ip_package import write_package
from ember_hw.boards.ip_package.example import is_simulated
from ember_hw.config import AcceleratorConfig
from ember_hw.sim.softcore.packages import missing_packages
from ember_hw.sim.verilator import find_verilator

CONFIG = AcceleratorConfig.preset("small")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package")
    written = write_package(CONFIG, folder)
    assert sorted(written) == sorted(path for path in folder.rglob("*") if path.is_file())
    return folder


def test_readme_names_every_part(package: Path) -> None:
    text = (package / "README.md").read_text()
    assert all(path.name in text for path in package.iterdir() if path.name != "README.md")
    assert "{" not in text


@pytest.mark.parametrize(
    "changes",
    [
        {"execute": "reduce"},
        {"memory_ports": 2},
        {"memory_protocol": "axi3", "max_burst_beats": 16},
        {"input_queue": 1},
        {"index_port_bits": 64},
        {"traversal_units": 1},
    ],
    ids=str,
)
def test_simulation_is_left_out_where_the_top_lacks_a_port(changes: dict[str, int | str]) -> None:
    assert is_simulated(CONFIG)
    assert not is_simulated(CONFIG.with_changes(**changes))


def test_package_without_a_simulation_does_not_speak_of_one(tmp_path: Path) -> None:
    config = AcceleratorConfig.preset("tiny").with_changes(name="one", traversal_units=1)
    write_package(config, tmp_path)
    assert not (tmp_path / "simulation").exists()
    assert "simulat" not in (tmp_path / "README.md").read_text()


@pytest.mark.verilator
def test_verilator_has_nothing_to_say(package: Path) -> None:
    command = [str(find_verilator().path), "--lint-only", "-Wall", "lint.vlt", "access_unit.v"]
    done = subprocess.run(
        [*command, "--top-module", "access_unit"],
        cwd=package,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "%Warning" not in done.stderr


def test_verilog_has_no_words_of_systemverilog(package: Path) -> None:
    assert "assert" not in (package / "access_unit.v").read_text()


@pytest.mark.verilator
@pytest.mark.timeout(900)
@pytest.mark.skipif(bool(missing_packages()), reason="the extra softcore is not installed")
def test_simulation_runs_with_its_driver(package: Path) -> None:
    """As its README says, but without optimising the model, which takes longer than it gains."""
    environment = {**os.environ, "PYTHON": sys.executable}
    done = subprocess.run(
        ["make", "-C", "simulation", "OPT_FAST=-O0", "OPT_GLOBAL=-O0"],
        cwd=package,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "all lookups are right" in done.stdout
