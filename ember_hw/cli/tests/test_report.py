from __future__ import annotations

import json
from pathlib import Path

import pytest

from ember_hw.host.tests.profiles import a_timed_report
from ember_hw.host.tests.test_report import untimed_report


@pytest.fixture
def run_json(tmp_path: Path) -> Path:
    path = tmp_path / "run.json"
    path.write_text(a_timed_report().to_json())
    return path


def test_report_is_shown_as_text_or_json(ember_hw, run_json: Path, capsys) -> None:
    assert ember_hw("report", run_json) == 0
    assert capsys.readouterr().out == f"{a_timed_report()}\n"
    assert ember_hw("report", run_json, "--json") == 0
    assert json.loads(capsys.readouterr().out) == a_timed_report().to_dict()


@pytest.mark.parametrize(
    ("suffix", "start"),
    [(".html", b"<!DOCTYPE html>"), (".png", b"\x89PNG"), (".txt", b"program "), (".json", b"{")],
)
def test_suffix_of_the_output_is_its_kind(
    ember_hw, run_json: Path, tmp_path: Path, capsys, suffix: str, start: bytes
) -> None:
    output = tmp_path / f"out{suffix}"
    assert ember_hw("report", run_json, "-o", output) == 0
    assert output.read_bytes().startswith(start)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"writing {output}" in shown.err


def test_other_suffix_and_other_files_are_sentences(
    ember_hw, run_json: Path, tmp_path: Path, capsys
) -> None:
    def refusal(*arguments: object) -> str:
        assert ember_hw("report", *arguments) == 1
        return capsys.readouterr().err.removeprefix("ember-hw: ").rstrip("\n")

    output = tmp_path / "out.pdf"
    assert refusal(run_json, "-o", output) == (
        "report must go to a file that ends in one of .html, .png, .json, .txt, "
        f"not {str(output)!r}"
    )
    missing = tmp_path / "none" / "out.html"
    assert refusal(run_json, "-o", missing) == (
        f"output must go to a folder that exists, not {str(missing.parent)!r}"
    )
    text = tmp_path / "text.json"
    text.write_text("cycles: 5")
    assert refusal(text) == (
        f"report {text} must be JSON, not text with: Expecting value: line 1 column 1 (char 0)"
    )
    text.write_bytes(b"\xff\xfe")
    assert refusal(text).startswith(f"report {text} must be JSON, not text with: 'utf-8' codec ")
    text.write_text("[]")
    assert refusal(text) == f"report {text} must be a JSON object, not list"
    text.write_text('{"suite": "gather"}')
    assert refusal(text) == (
        "kind of a report must be 'ember_hw run', not None; `ember-hw run --json` prints one"
    )
    text.write_text(untimed_report().to_json())
    assert refusal(text, "-o", tmp_path / "out.png").endswith(
        "ember-hw: a picture must be of a run with a clock, not of backend 'interpreter'"
    )
