from __future__ import annotations

import pytest

from ember_hw.bench.registry import all_suites
from ember_hw.config import PRESETS
from ember_hw.sim.options import MEMORIES


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("ru", ["run"]),
        ("verilog --config ", list(PRESETS)),
        ("demo --memory ", list(MEMORIES)),
        ("demo --memory h", ["hbm2-pc"]),
        ("demo --sink ", ["ideal", "core-like"]),
        ("run p --backend ", ["interpreter", "verilator", "board:"]),
        ("run p --trace-by l", ["lookups"]),
        ("bench ", list(all_suites())),
    ],
)
def test_shell_is_offered_what_there_is(
    ember_hw, monkeypatch: pytest.MonkeyPatch, capsys, words: str, offered: list[str]
) -> None:
    line = f"ember-hw {words}"
    monkeypatch.setenv("_EMBER_HW_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    assert ember_hw() == 0
    assert capsys.readouterr().out.split() == offered


def test_script_for_the_shell_is_shown(ember_hw, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setenv("_EMBER_HW_COMPLETE", "source_bash")
    assert ember_hw() == 0
    assert "complete -o default -F" in capsys.readouterr().out
