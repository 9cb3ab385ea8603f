from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from ember_hw import cli
from ember_hw.config import AcceleratorConfig
from ember_hw.isa import microcode_words


@pytest.fixture
def ember_hw(monkeypatch: pytest.MonkeyPatch):
    """Runs a command line and returns its exit code."""

    def run(*arguments: object) -> int:
        monkeypatch.setattr(sys, "argv", ["ember-hw", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        code = ended.value.code
        assert code is None or isinstance(code, int)
        return code or 0

    return run


def test_microcode_survives_the_assembler(ember_hw, tmp_path: Path, capsys) -> None:
    text, words = tmp_path / "bag.txt", tmp_path / "bag.bin"
    text.write_text("unit0: enable=1 step=2 lower_immediate=-3\n")
    assert ember_hw("asm", text, "-o", words, "--config", "tiny") == 0
    assert words.stat().st_size == 4 * microcode_words(AcceleratorConfig.preset("tiny"))
    capsys.readouterr()
    assert ember_hw("disasm", words, "--config", "tiny") == 0
    assert "unit0: enable=1 " in capsys.readouterr().out


def test_config_comes_from_a_file(tmp_path: Path) -> None:
    config = AcceleratorConfig.preset("tiny")
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(config.to_dict()))
    assert cli.read_config(str(path)) == config


def test_config_file_that_is_no_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text("data_width_bits = 64")
    expected = f"config file {path} must be JSON, not text with: "
    with pytest.raises(ValueError, match=re.escape(expected) + r"Expecting value: .*$"):
        cli.read_config(str(path))


def test_error_is_one_line_and_exit_code_1(ember_hw, tmp_path: Path, capsys) -> None:
    path = tmp_path / "odd.bin"
    path.write_bytes(b"12345")
    assert ember_hw("disasm", path) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == f"ember-hw: {path} must hold whole 32-bit words, not 5 bytes\n"


def test_debug_shows_the_traceback(ember_hw, tmp_path: Path, capsys) -> None:
    path = tmp_path / "odd.bin"
    path.write_bytes(b"12345")
    assert ember_hw("--debug", "disasm", path) == 1
    assert "Traceback" in capsys.readouterr().err


def test_wrong_usage_is_exit_code_2(ember_hw, capsys) -> None:
    assert ember_hw("disasm", "no such file") == 2
    assert "does not exist" in capsys.readouterr().err


def test_doctor_reports_json(ember_hw, capsys) -> None:
    assert ember_hw("doctor", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is True
    assert {"python", "torch", "verilator", "yosys", "perl"} <= {
        c["tool"] for c in report["checks"]
    }
