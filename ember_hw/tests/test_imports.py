"""Holds the one-way rule of imports, module by module, without importing any."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent
ROOT = PACKAGE.parent

#: What each area may import of the project besides itself and `BASE`; the longest prefix of a
#: module's name decides its area. `ember_hw` is the public front alone, `*` is everything.
#: Tests may import anything; nothing but tests may import tests.
BASE = ("ember_hw.config", "ember_hw.isa", "ember_hw.registers", "ember_hw.errors")
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "ember_hw": ("ember_hw.compiler", "ember_hw.host", "ember_hw.nn"),
    "ember_hw.config": (),
    "ember_hw.isa": (),
    "ember_hw.registers": (),
    "ember_hw.errors": (),
    "ember_hw.compiler": (),
    "ember_hw.rtl": (),
    "ember_hw.sim": ("ember_hw.rtl",),
    "ember_hw.boards": ("ember_hw.rtl", "ember_hw.sim"),
    "ember_hw.boards.ip_package": (
        "ember_hw",
        "ember_hw.host",
        "ember_hw.host.backends",
        "ember_hw.rtl",
        "ember_hw.sim",
    ),
    "ember_hw.host": ("ember_hw.compiler", "ember_hw.host.execution"),
    "ember_hw.host.execution": ("ember_hw.compiler", "ember_hw.host", "ember_hw.sim"),
    "ember_hw.host.backends": (
        "ember_hw.compiler",
        "ember_hw.host",
        "ember_hw.host.execution",
        "ember_hw.rtl",
        "ember_hw.sim",
        "ember_hw.boards",
    ),
    "ember_hw.nn": ("ember_hw.host",),
    "ember_hw.placement": ("ember_hw.compiler", "ember_hw.host"),
    "ember_hw.bench": ("*",),
    "ember_hw.demo": ("ember_hw", "ember_hw.compiler", "ember_hw.host", "ember_hw.sim"),
    "ember_hw.cli": ("*",),
    "cocotb_tests": ("*",),
}
#: The command line starts quickly: outside functions these modules of it import each other and the
#: errors alone. Its other modules are imported by the command that needs them.
QUICK = (
    "ember_hw.cli",
    "ember_hw.cli.application",
    "ember_hw.cli.bench",
    "ember_hw.cli.completion",
    "ember_hw.cli.boards",
    "ember_hw.cli.files",
    "ember_hw.cli.first_steps",
    "ember_hw.cli.hardware",
    "ember_hw.cli.programs",
    "ember_hw.cli.progress",
    "ember_hw.cli.report",
)
EAGER_IN_CLI = (*QUICK, "ember_hw.errors")


@dataclass(frozen=True)
class Import:
    """One import of a module of the project."""

    line: int
    target: str
    is_eager: bool


def is_within(module: str, area: str) -> bool:
    return module == area or module.startswith(area + ".")


def is_test(module: str) -> bool:
    parts = module.split(".")
    return "tests" in parts or parts[0] == "cocotb_tests" or parts[-1] == "conftest"


def area_of(module: str) -> str:
    inside = [area for area in MAY_IMPORT if area != "ember_hw" and is_within(module, area)]
    return max(inside, key=len, default=module)


def imports_of(source: str, module: str, is_package: bool) -> Iterator[Import]:
    """Every import of the project in `source`, relative ones resolved, those in functions too."""
    tree = ast.parse(source)
    lazy = {
        inner
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef)
        or (isinstance(outer, ast.If) and ast.unparse(outer.test) == "TYPE_CHECKING")
        for inner in ast.walk(outer)
    }
    for node in ast.walk(tree):
        targets: list[str] = []
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = module.split(".")
                parents = parents[: len(parents) - node.level + is_package]
                base = ".".join([*parents, base] if base else parents)
            # `from ember_hw import isa` names a module, `from ember_hw.isa import Field` doesn't.
            targets = [
                f"{base}.{a.name}" if is_module(f"{base}.{a.name}") else base for a in node.names
            ]
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
            constants = [a.value for a in node.args if isinstance(a, ast.Constant)]
            targets = [value for value in constants if isinstance(value, str)]
        else:
            continue
        for target in targets:
            if target.split(".")[0] in ("ember_hw", "cocotb_tests"):
                yield Import(node.lineno, target, node not in lazy)


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


def violations(source: str, module: str, is_package: bool = False) -> list[str]:
    """What in `source` breaks the rule, one sentence each."""
    if is_test(module):
        return []
    area = area_of(module)
    if area not in MAY_IMPORT:
        return [f"{module} must belong to an area of MAY_IMPORT, not {area!r}"]
    allowed = (area, *BASE, *MAY_IMPORT[area])
    found: list[str] = []
    for one in imports_of(source, module, is_package):
        where = f"{module}:{one.line} imports {one.target}"
        if is_test(one.target):
            found.append(f"{where}, which is a test")
        elif module in QUICK and one.is_eager and one.target not in EAGER_IN_CLI:
            found.append(f"{where} outside a function")
        elif "*" not in allowed and area_of(one.target) not in allowed:
            found.append(f"{where}; {area} may import {', '.join(allowed)}")
    return found


def modules() -> dict[str, Path]:
    """Every module of the project by name; links are followed, once each."""
    found: dict[str, Path] = {}
    for top in (PACKAGE, ROOT / "cocotb_tests"):
        for folder, _, names in os.walk(top, followlinks=True):
            for path in (Path(folder) / name for name in names if name.endswith(".py")):
                parts = path.relative_to(ROOT).with_suffix("").parts
                found[".".join(parts).removesuffix(".__init__")] = path
    return found


@pytest.mark.parametrize(("module", "path"), modules().items(), ids=modules().keys())
def test_module_imports_one_way(module: str, path: Path) -> None:
    assert violations(path.read_text(), module, path.name == "__init__.py") == []


def test_every_area_of_base_is_found() -> None:
    assert {*BASE, "ember_hw"} <= modules().keys()


@pytest.mark.parametrize(
    ("module", "source", "message"),
    [
        (
            "ember_hw.rtl.issue",
            "import ember_hw.compiler",
            "imports ember_hw.compiler; ember_hw.rtl may import",
        ),
        ("ember_hw.rtl.issue", "from ember_hw import compiler", "imports ember_hw.compiler"),
        ("ember_hw.rtl.issue", "from ..compiler import program", "imports ember_hw.compiler"),
        (
            "ember_hw.rtl.issue",
            "def f():\n    from .. import compiler",
            "imports ember_hw.compiler",
        ),
        ("ember_hw.compiler.backend.microcode", "from ...rtl import x", "imports ember_hw.rtl"),
        ("ember_hw.compiler.pipeline", "import_module('ember_hw.rtl')", "imports ember_hw.rtl"),
        ("ember_hw.host.request", "import ember_hw.rtl.issue", "imports ember_hw.rtl.issue"),
        ("ember_hw.isa", "import ember_hw.host", "imports ember_hw.host"),
        ("ember_hw.isa", "import ember_hw", "imports ember_hw"),
        ("ember_hw", "import ember_hw.rtl", "imports ember_hw.rtl"),
        ("ember_hw.host.device", "import ember_hw.tests.cases", "which is a test"),
        ("ember_hw.cli", "import ember_hw.rtl", "outside a function"),
        ("ember_hw.new", "", "must belong to an area"),
    ],
)
def test_violation_is_caught(module: str, source: str, message: str) -> None:
    (found,) = violations(source, module)
    assert message in found


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("ember_hw.host.backends.verilator", "import ember_hw.rtl, ember_hw.sim"),
        ("ember_hw.cli", "if TYPE_CHECKING:\n    import ember_hw.config"),
        ("ember_hw.cli", "def verilog():\n    import ember_hw.rtl"),
        (
            "ember_hw.rtl.issue",
            "import torch\nfrom .queues import Queue\nfrom ember_hw.isa import Field",
        ),
        ("ember_hw.rtl.tests.test_issue", "import ember_hw.compiler"),
    ],
)
def test_legal_import_passes(module: str, source: str) -> None:
    assert violations(source, module) == []
