from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ember_hw.boards.host import finder
from ember_hw.boards.host.finder import Candidate, FoundBoard
from ember_hw.boards.host.tests.fakes import DESCRIPTION


def test_no_board_is_no_error(ember_hw, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finder.list_ports, "comports", list)
    assert ember_hw("devices") == 0
    shown = capsys.readouterr().out
    assert shown == (
        "no board is connected; `ember-hw devices --simulated` shows a simulated one\n"
    )
    assert ember_hw("devices", "--json") == 0
    assert json.loads(capsys.readouterr().out) == []


def test_selftest_without_a_board_is_an_error(
    ember_hw, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finder.list_ports, "comports", list)
    assert ember_hw("selftest") == 1
    assert "a board of any name must be connected, and isn't" in capsys.readouterr().err


def test_how_far_a_board_was_proved_is_told(
    ember_hw, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = replace(DESCRIPTION, board="ulx3s", proof="built")
    found = [
        FoundBoard(Candidate("/dev/ttyUSB0", "D1"), board, "idle"),
        FoundBoard(Candidate("/dev/ttyUSB1", "D2"), None, "silent"),
    ]
    monkeypatch.setattr(finder, "find_boards", lambda: iter(found))
    assert ember_hw("devices") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == (
        "built: built with its timing met, and simulated in Verilator; never run on a board"
    )


@pytest.mark.verilator
@pytest.mark.timeout(900)  # builds the model
def test_simulated_board_is_listed(ember_hw, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finder.list_ports, "comports", list)
    assert ember_hw("devices", "--simulated", "--json") == 0
    (one,) = json.loads(capsys.readouterr().out)
    assert (one["board"], one["state"], one["proof"]) == ("sim", "idle", "simulated")
    assert (one["serial"], one["memory"], one["memory_bytes"]) == (
        "simulated",
        "block RAM",
        1 << 20,
    )


@pytest.mark.verilator
@pytest.mark.timeout(900)
def test_simulated_board_passes_its_selftest(ember_hw, capsys) -> None:
    assert ember_hw("selftest", "--simulated", "--memory-bytes", "256") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:2] for line in lines] == ["✓ "] * 4
