"""The page `docs/getting_started.md` works as it stands, but that no model is built."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from ember_hw import cli

PAGE = Path(__file__).resolve().parents[2] / "docs" / "getting_started.md"


def command(line: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run a command line of the page, without its comment."""
    monkeypatch.setattr(sys, "argv", line.partition("  #")[0].split())
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code is None or isinstance(ended.value.code, int)
    return ended.value.code or 0


@pytest.fixture
def text() -> str:
    if not PAGE.exists():
        pytest.skip("docs are no part of a wheel")
    return PAGE.read_text()


def test_newcomer_s_path_ends_with_a_report(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    model, request, session, whole = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    Path("model.py").write_text(model)
    names: dict[str, object] = {}
    exec(compile(request, str(PAGE), "exec"), names)
    *commands, report = re.findall(
        r"^    (ember-hw (?:compile|run|report) .*)$", text, re.MULTILINE
    )
    assert len(commands) == 4
    for line in commands:
        quick = line.replace("verilator", "interpreter")
        assert command(quick, monkeypatch) == 0, line
    assert "exact reference         0 of 100 rows differ\n" in capsys.readouterr().out
    assert Path("run.html").read_text().startswith("<!DOCTYPE html>")
    exec(compile(session.replace("verilator", "interpreter"), str(PAGE), "exec"), names)
    assert "lookups                 3,000\n" in capsys.readouterr().out
    exec(compile(whole.replace("verilator", "interpreter"), str(PAGE), "exec"), names)
    shown = capsys.readouterr().out
    assert shown.startswith("True\ngraphs: 1\non the device: embedding_bag, node")
    assert "left to torch" not in shown
    Path("run.html").unlink()
    assert command(report, monkeypatch) == 0
    assert "eb_mean" in Path("run.html").read_text()


def test_options_that_the_page_names_exist(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("ember-hw run --help", monkeypatch) == 0
    shown = capsys.readouterr().out
    section = text[text.index("## 3.") : text.index("## 5.")]
    for option in set(re.findall(r"`?(--[a-z-]+)", section)):
        assert option in shown or option == "--seed", option
