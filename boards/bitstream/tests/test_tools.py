"""Tools are found, run, watched, and quoted where they fail."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from ember_hw.boards.bitstream.tools import find_tool, heading, run_tool, tool_version
from ember_hw.errors import ToolError


def test_missing_tool_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    message = (
        "yowasp-none or none must be there for `ember-hw bench area`, and isn't: "
        "pip install 'ember-hw[area]'"
    )
    with pytest.raises(ToolError, match=f"^{re.escape(message)}$"):
        find_tool("yowasp-none", "none", needed_for="ember-hw bench area", extra="area")


def test_tool_that_fails_shows_the_end_of_its_log(tmp_path: Path) -> None:
    command = ["/bin/sh", "-c", "echo one; echo two > log; exit 3"]
    message = "sh must end with status 0, not 3; the end of its log:\ntwo"
    with pytest.raises(ToolError, match=f"^{re.escape(message)}$"):
        run_tool(command, tmp_path, "log", lambda text: None)
    errors = ["/bin/sh", "-c", "printf 'ERROR: a\nb\nERROR: c\n' > log; exit 1"]
    message = "sh must end with status 0, not 1; its log says:\nERROR: a\nERROR: c"
    with pytest.raises(ToolError, match=f"^{re.escape(message)}$"):
        run_tool(errors, tmp_path, "log", lambda text: None)
    with pytest.raises(ToolError, match=r"the end of its log:\none\n$"):
        run_tool(command, tmp_path, "no log", lambda text: None)


def test_heading_is_the_latest_part_of_the_work(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert heading(log) == ""
    log.write_text("2.1. Executing FLATTEN pass (flatten).\nOptimizing module m.\n")
    assert heading(log) == "Executing FLATTEN pass"
    log.write_text("Info: Routing 101157 arcs.\nInfo:  1000 | 12\n")
    assert heading(log) == "Routing 101157 arcs"


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("Yosys 0.70+3 (git sha1 28ba3cb92, Release, Clang)", "Yosys 0.70+3"),
        (
            '"nextpnr-ecp5" -- Next Generation Place and Route (Version nextpnr-0.11.1)',
            "nextpnr-0.11.1",
        ),
        (
            "Preparing to run ecppack.\nProject Trellis ecppack Version 1.4-82-g3afe7b5",
            "ecppack Version 1.4-82-g3afe7b5",
        ),
        ("usage: tool", "unknown"),
    ],
)
def test_version_is_what_the_tool_says(tmp_path: Path, said: str, version: str) -> None:
    tool = tmp_path / "tool"
    tool.write_text(f"#!/bin/sh\ncat <<'END'\n{said}\nEND\n")
    tool.chmod(0o755)
    assert tool_version(str(tool), "--version") == version
