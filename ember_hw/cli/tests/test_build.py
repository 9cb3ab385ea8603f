"""`ember-hw build` hands its options on and prints what came of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ember_hw.boards.bitstream import build as build_module
from ember_hw.boards.bitstream.build import Gateware

REPORT = {
    "resources": {"LUT": {"used": 25_000, "available": 83_640, "share": 0.2989}},
    "clocks": {"sync": {"fmax_mhz": 61.5, "target_mhz": 50.0}},
    "gateware_id": "0badcafe",
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def build(target: Any, output: Path, **options: Any) -> Gateware:
        found.update(options, target=target.name)
        return Gateware(folder=output, report=REPORT)

    monkeypatch.setattr(build_module, "build", build)
    return found


def test_what_was_built_is_printed(ember_hw, asked, tmp_path: Path, capsys) -> None:
    assert ember_hw("build", "ulx3s", "-o", tmp_path) == 0
    assert capsys.readouterr().out.splitlines() == [
        "LUT    25,000 of 83,640 (30%)",
        "sync  61.5 MHz of 50 MHz needed",
        f"{tmp_path / 'top.bit'} (gateware 0badcafe)",
    ]
    del asked["watcher"]
    assert asked == {"target": "ulx3s", "config": None, "memory": None, "seed": 1}


def test_options_reach_the_build(ember_hw, asked, tmp_path: Path, capsys) -> None:
    options = ("--config", "small", "--memory", "block", "--seed", "7", "--json")
    assert ember_hw("build", "ulx3s", "-o", tmp_path, *options) == 0
    assert json.loads(capsys.readouterr().out) == REPORT
    assert (asked["config"].name, asked["memory"], asked["seed"]) == ("small", "block", 7)


def test_unknown_board_is_refused(ember_hw, tmp_path: Path, capsys) -> None:
    assert ember_hw("build", "arty", "-o", tmp_path) == 1
    assert "ember-hw: board must be one of ecpix5, ulx3s, not 'arty'\n" in capsys.readouterr().err
