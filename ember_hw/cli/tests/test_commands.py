from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ember_hw as package
from ember_hw.cli.files import read_config
from ember_hw.compiler.program import Nest, Program
from ember_hw.config import AcceleratorConfig
from ember_hw.demo import run as demo_run
from ember_hw.demo.run import DemoResult
from ember_hw.demo.tests.results import a_report, a_result
from ember_hw.isa import Microcode, microcode_words
from ember_hw.sim.options import IdealMemory


def an_empty_program() -> Program:
    config = AcceleratorConfig.preset("tiny")
    return Program("empty", config, 2, (Nest("empty", Microcode(config)),))


def test_microcode_survives_the_assembler(ember_hw, tmp_path: Path, capsys) -> None:
    text, words = tmp_path / "bag.txt", tmp_path / "bag.bin"
    text.write_text("unit0: enable=1 step=2 lower_immediate=-3\n")
    assert ember_hw("asm", text, "-o", words, "--config", "tiny") == 0
    assert words.stat().st_size == 4 * microcode_words(AcceleratorConfig.preset("tiny"))
    capsys.readouterr()
    assert ember_hw("disasm", words, "--config", "tiny") == 0
    assert "unit0: enable=1 " in capsys.readouterr().out


def test_program_is_disassembled_with_its_own_config(ember_hw, tmp_path: Path, capsys) -> None:
    path = tmp_path / "bag.ember"
    an_empty_program().save(path)
    assert ember_hw("disasm", path) == 0
    assert "header: " in capsys.readouterr().out


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


def test_verdict_of_the_demo_is_the_exit_code(
    ember_hw, tmp_path: Path, capsys, monkeypatch
) -> None:
    picture = tmp_path / "demo.png"
    asked: dict[str, Any] = {}

    def run(watcher: object, **options: Any) -> DemoResult:
        asked.update(options)
        return a_result(report=a_report(seed=options["seed"]))

    monkeypatch.setattr(demo_run, "run", run)
    choices = ("-O", 2, "--latency", 30, "--sink", "core-like", "--execute", "fabric")
    assert ember_hw("demo", "--seed", 4, *choices, "--plot", picture, "--json") == 0
    memory = IdealMemory(latency_cycles=30)
    assert asked == {
        **{"seed": 4, "opt_level": 2, "memory": memory, "sink": "core-like"},
        "execute": "fabric",
    }
    shown = capsys.readouterr()
    assert json.loads(shown.out)["seed"] == 4
    assert "drawing" in shown.err
    assert picture.exists()
    monkeypatch.setattr(demo_run, "run", lambda watcher, **_: a_result(mismatches=1))
    assert ember_hw("demo", "--plot", picture) == 1
    assert "WRONG" in capsys.readouterr().out


def test_compile_takes_module_and_examples_from_the_file(
    ember_hw, tmp_path: Path, capsys, monkeypatch
) -> None:
    calls: list[tuple[object, Any]] = []
    executes: list[object] = []

    def compile_(module: object, examples: Any, *, execute: str, **_: object) -> Program:
        calls.append((module, examples))
        executes.append(execute)
        return an_empty_program()

    monkeypatch.setattr(package, "compile", compile_, raising=False)
    source, inputs = tmp_path / "model.py", tmp_path / "inputs.npz"
    source.write_text("bag = 'a bag'\nexample_inputs = (1, 2)\n")
    program = tmp_path / "bag.ember"
    assert ember_hw("compile", f"{source}:bag", "-o", program, "--json") == 0
    assert json.loads(capsys.readouterr().out)["opt_level"] == 2
    assert (Program.load(program).name, Program.load(program).seed) == ("empty", None)

    np.savez(inputs, indices=np.arange(3), offsets=np.zeros(1, np.int64))
    options = ("--inputs", inputs, "--execute", "host")
    assert ember_hw("compile", f"{source}:bag", "-o", program, *options) == 0
    assert executes == ["auto", "host"]
    (_, from_file), (_, from_arrays) = calls
    assert from_file == (1, 2)
    assert [array.tolist() for array in from_arrays] == [[0, 1, 2], [0]]


def test_seed_of_compile_makes_the_weights_and_is_kept(
    ember_hw, tmp_path: Path, capsys, monkeypatch
) -> None:
    drawn: list[float] = []

    def compile_(module: float, *_: object, **__: object) -> Program:
        drawn.append(module)
        return an_empty_program()

    monkeypatch.setattr(package, "compile", compile_, raising=False)
    source, program = tmp_path / "model.py", tmp_path / "bag.ember"
    source.write_text("import torch\nbag = float(torch.rand(()))\n")
    for seed in (7, 7, 8):
        assert ember_hw("compile", f"{source}:bag", "-o", program, "--seed", seed, "--json") == 0
        assert json.loads(capsys.readouterr().out)["seed"] == Program.load(program).seed == seed
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize(
    "command",
    ["demo", "doctor", "compile", "run", "report", "verilog", "asm", "disasm", "bench"],
)
def test_help_of_a_command_has_examples_and_its_summary_is_whole(
    ember_hw, capsys, command: str
) -> None:
    assert ember_hw(command, "--help") == 0
    shown = capsys.readouterr().out
    assert f"Examples:\n    ember-hw {command}" in shown
    assert ember_hw("--help") == 0
    (line,) = re.findall(rf"^  {command} .*$", capsys.readouterr().out, re.MULTILINE)
    assert line.endswith(".")
    assert not line.endswith("..")


@pytest.mark.rtl
def test_verilog_comes_with_its_config(ember_hw, tmp_path: Path) -> None:
    assert ember_hw("verilog", "--config", "tiny", "-o", tmp_path / "out") == 0
    assert "module access_unit(" in (tmp_path / "out" / "access_unit.v").read_text()
    assert read_config(str(tmp_path / "out" / "config.json")).name == "tiny"
