# pyright: basic
"""Runs the IR text tests of `filecheck/`: their RUN lines are those of lit.

The commands run in this process, as each start of a tool takes longer than its work. One file goes
through lit itself, with a process for each command.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from filecheck.main import main as filecheck_main

from ember_hw.compiler import ember_opt
from ember_hw.compiler.tests.command_line import run_in_process

FOLDER = Path(__file__).parent / "filecheck"
FILES = sorted(FOLDER.glob("*.mlir"))
RUN_LINE = re.compile(r"^// RUN: (.*)$", re.MULTILINE)


def filecheck(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as end:
        filecheck_main(["filecheck", *arguments])
    return int(end.value.code or 0)


TOOLS = {"%ember-opt": ember_opt.main, "filecheck": filecheck}


def run_pipe(line: str, file: Path) -> str:
    """Run commands joined by `|`; the report of the one that fails, or nothing."""
    text = ""
    for command in line.split(" | "):
        tool, *arguments = shlex.split(command.replace("%s", str(file)))
        code, text, errors = run_in_process(TOOLS[tool], arguments, text)
        if code:
            return f"{command}\n{errors}"
    return ""


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_ir_text_is_what_the_check_lines_say(file: Path) -> None:
    lines = RUN_LINE.findall(file.read_text(encoding="utf-8"))
    assert lines
    for line in lines:
        assert line.endswith("| filecheck %s") or "| filecheck %s --check-prefix=" in line
        assert not run_pipe(line, file)


def test_a_line_that_is_not_printed_fails(tmp_path: Path) -> None:
    file = tmp_path / "k.mlir"
    file.write_text("func.func @f() {\n  func.return\n}\n// CHECK: func.func @g\n")
    report = run_pipe("%ember-opt %s | filecheck %s", file)
    assert report.startswith("filecheck %s\n")
    assert 'Couldn\'t match "func.func @g".' in report


def test_a_file_passes_under_lit(tmp_path: Path) -> None:
    lit = Path(sys.executable).parent / "lit"
    command = [str(lit), "-v", "--param", f"exec_root={tmp_path}", str(FOLDER / "dlc_to_au.mlir")]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert result.returncode == 0, result.stdout + result.stderr
