from __future__ import annotations

import json

import pytest

from ember_hw.boards.host import finder


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
