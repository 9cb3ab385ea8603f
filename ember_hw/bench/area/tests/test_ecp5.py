from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from ember_hw.bench.area import ecp5
from ember_hw.errors import ToolError


def test_report_gives_frequency_and_path_of_the_clock() -> None:
    def step(kind: str, delay: float, cell: str) -> dict[str, object]:
        return {"type": kind, "delay": delay, "to": {"cell": cell}}

    clock = {"from": "posedge $glb$clk", "to": "posedge $glb$clk"}
    path = [
        step("clk-to-q", 0.5, "credit_FF"),
        step("routing", 1.25, "room_LUT4"),
        step("logic", 0.25, "room_LUT4"),
        step("setup", 0.0, "level_FF"),
    ]
    report = {
        "fmax": {"$glb$clk": {"achieved": 89.5, "constraint": 100}},
        "critical_paths": [
            {"from": "<async>", "to": "posedge $glb$clk", "path": path[:1]},
            {**clock, "path": path},
        ],
    }
    route = ecp5.read_report(report)
    assert route.fmax_mhz == 89.5
    assert route.critical_path == ("0.50 credit_FF", "2.00 room_LUT4", "2.00 level_FF")


def test_missing_tool_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    message = (
        "yowasp-none or none must be there for `ember-hw bench area`, and isn't: "
        "pip install 'ember-hw[area]'"
    )
    with pytest.raises(ToolError, match=f"^{re.escape(message)}$"):
        ecp5._find("yowasp-none", "none")


def test_tool_that_fails_shows_the_end_of_its_log(tmp_path: Path) -> None:
    command = ["/bin/sh", "-c", "echo one; echo two > log; exit 3"]
    message = "sh must end with status 0, not 3; the end of its log:\ntwo"
    with pytest.raises(ToolError, match=f"^{re.escape(message)}$"):
        ecp5._run(command, tmp_path, "log", lambda text: None)
    with pytest.raises(ToolError, match=r"the end of its log:\none\n$"):
        ecp5._run(command, tmp_path, "no log", lambda text: None)


def test_heading_is_the_latest_part_of_the_work(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert ecp5._heading(log) == ""
    log.write_text("2.1. Executing FLATTEN pass (flatten).\nOptimizing module m.\n")
    assert ecp5._heading(log) == "Executing FLATTEN pass"
    log.write_text("Info: Routing 101157 arcs.\nInfo:  1000 | 12\n")
    assert ecp5._heading(log) == "Routing 101157 arcs"
