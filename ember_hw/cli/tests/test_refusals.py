"""Bad input of each kind, to each command: a sentence and a code, never a traceback."""

from __future__ import annotations

import json
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from ember_hw.host.tests.profiles import a_timed_report
from ember_hw.host.tests.programs import bag_program


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that are wrong in one way each, and some that are right."""
    folder = tmp_path_factory.mktemp("files")
    bag_program(np.zeros((10, 4), np.float32)).save(folder / "bag.ember")
    np.savez(folder / "good.npz", indices=np.array([1]), offsets=np.array([0]))
    np.savez(folder / "other.npz", a=np.arange(3))
    np.savez(folder / "objects.npz", a=np.array([object()], dtype=object))
    whole = (folder / "good.npz").read_bytes()
    (folder / "cut.npz").write_bytes(whole[:60])
    (folder / "damaged.npz").write_bytes(whole.replace(b"\x93NUMPY", b"\x93NUMPX"))
    for name in ("junk.npz", "foreign.ember"):
        with zipfile.ZipFile(folder / name, "w") as archive:
            archive.writestr("a.npy", "junk")
    texts = {
        "text.ember": "no program",
        "model.py": "import math\nbag = math.pi\n",
        "raises.py": "raise KeyError('bag')\n",
        "loops.mlir": "nonsense",
        "narrow.json": json.dumps({"data_width_bits": 7}),
        "list.json": "[1]",
        "key.json": '{"widht": 1}',
        "no.json": "{",
        "unit.txt": "unit9: enable=1\n",
        "field.txt": "unit0: speed=1\n",
        "run.json": a_timed_report().to_json(),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "latin.txt").write_bytes(b"unit0: \xff")
    (folder / "words.bin").write_bytes(bytes(8))
    (folder / "odd.bin").write_bytes(bytes(5))
    return folder


@dataclass(frozen=True)
class Case:
    """A command line, and what its error must match: whole, but for the folder's name."""

    line: str
    message: str
    code: int = 1


_PRESETS = "preset must be one of default, small, tiny, .*, not 'huge'"
_NO_FOLDER = "output must go to a folder that exists, not 'none'"
CASES = [
    Case("nothing", r"No such command 'nothing'\.", 2),
    Case("--nothing", r"No such option: --nothing.*", 2),
    Case("doctor --nothing", r"No such option: --nothing.*", 2),
    Case("doctor more", r"Got unexpected extra argument.* \(more\)", 2),
    Case("demo --latency many", "Invalid value for '--latency': .*", 2),
    Case("demo --seed -1", "Invalid value for '--seed': .*", 2),
    Case("demo --memory drum", "memory must be one of ideal, random, .*, not 'drum'"),
    Case("demo --latency 0", "latency_cycles must be at least 1, not 0"),
    Case("compile", "Missing argument .*", 2),
    Case("compile model.py -o p", "model must be FILE.py:NAME, not 'model.py'"),
    Case("compile no.py:bag -o p", "model must name a file that exists, not 'no.py'"),
    Case("compile model.py:big -o p", "model.py must define 'big'; it defines math, bag"),
    Case(
        "compile raises.py:bag -o p",
        "raises.py must run without an exception, not end with KeyError: 'bag'",
    ),
    Case(
        "compile model.py:bag -o p",
        "model must be a torch.nn.Module or torch.export.ExportedProgram, not float",
    ),
    Case("compile model.py:bag -o p -O 4", "Invalid value for '--opt-level' / '-O': .*", 2),
    Case("compile model.py:bag -o p -c huge", _PRESETS),
    Case("compile model.py:bag -o none/p", _NO_FOLDER),
    Case("compile model.py:bag -o .", r"output must be a file, not the folder '\.'"),
    Case("compile model.py:bag -o p --inputs no.npz", "Invalid value for '--inputs': .*", 2),
    Case("compile loops.mlir -o p", "<text>:1:9: Operation nonsense is not registered"),
    Case("run", "Missing argument .*", 2),
    Case("run no.ember -b interpreter --inputs good.npz", ".*'no.ember' does not exist.*", 2),
    Case("run bag.ember --inputs good.npz", "Missing option '--backend' / '-b'.*", 2),
    Case(
        "run text.ember -b interpreter --inputs good.npz",
        "program file 'text.ember' must be a complete zip archive: File is not a zip file",
    ),
    Case(
        "run foreign.ember -b interpreter --inputs good.npz",
        "program file 'foreign.ember' must hold manifest.json; it does not",
    ),
    Case(
        "run bag.ember -b interpreter --inputs cut.npz",
        "inputs must be an .npz file, as numpy.savez writes it, not 'cut.npz'",
    ),
    Case(
        "run bag.ember -b interpreter --inputs damaged.npz",
        "inputs damaged.npz must be a whole .npz file, not one with: Bad CRC-32 .*",
    ),
    Case(
        "run bag.ember -b interpreter --inputs junk.npz",
        "array 'a' of junk.npz must be one of numpy's, not other bytes",
    ),
    Case(
        "run bag.ember -b interpreter --inputs objects.npz",
        "array 'a' of objects.npz must hold numbers: Object arrays cannot be loaded .*",
    ),
    Case(
        "run bag.ember -b interpreter --inputs other.npz",
        r"inputs of program 'bag' must be \(.*\), not 'a'",
    ),
    Case("run bag.ember -b gpu --inputs good.npz", "backend must be one of .*, not 'gpu'"),
    Case(
        "run bag.ember -b verilator --inputs good.npz --sink core",
        "sink must be one of ideal, core-like, not 'core'",
    ),
    Case("run bag.ember -b interpreter --inputs good.npz -o none/x.npy", _NO_FOLDER),
    Case("run bag.ember -b interpreter --inputs good.npz --report none/x.html", _NO_FOLDER),
    Case(
        "run bag.ember -b verilator --inputs good.npz --trace t.txt",
        "path must end in .vcd or .fst, not 't.txt'",
    ),
    Case(
        "run bag.ember -b verilator --inputs good.npz --trace none/t.vcd",
        r"trace must go to a file that can be written, not 'none/t.vcd' \(No such file .*\)",
    ),
    Case("report", "Missing argument .*", 2),
    Case("report no.html", ".*'no.html' does not exist.*", 2),
    Case("report no.json", "report no.json must be JSON, not text with: .*"),
    Case("report list.json", "report list.json must be a JSON object, not list"),
    Case("report narrow.json", "kind of a report must be 'ember_hw run', not None; .*"),
    Case("report run.json -o run.pdf", "report must go to a file that ends in .*, not 'run.pdf'"),
    Case("report run.json -o none/run.html", _NO_FOLDER),
    Case("verilog", "Invalid value: --output or --package must be given", 2),
    Case("verilog -o v -c huge", _PRESETS),
    Case("verilog -o v -c missing.json", "file 'missing.json' can't be used: no such file .*"),
    Case("verilog -o v -c no.json", "config file no.json must be JSON, not text with: .*"),
    Case("verilog -o v -c list.json", "config file list.json must be a JSON object, not list"),
    Case("verilog -o v -c key.json", "config key must be one of .*, not 'widht'"),
    Case("verilog -o v -c narrow.json", "data_width_bits must be one of .*, not 7"),
    Case("asm no.txt -o x", ".*'no.txt' does not exist.*", 2),
    Case("asm unit.txt -o x", "line 1: record must be one of .*, not 'unit9'"),
    Case("asm field.txt -o x", "field of record 'unit0' must be one of enable, .*, not 'speed'"),
    Case("asm latin.txt -o x", "latin.txt must be text in UTF-8, not bytes with: .*"),
    Case("asm unit.txt -o none/x", _NO_FOLDER),
    Case("disasm no.bin", ".*'no.bin' does not exist.*", 2),
    Case("disasm odd.bin", "odd.bin must hold whole 32-bit words, not 5 bytes"),
    Case("disasm words.bin", "microcode must be .* words for config 'default', not 2"),
    Case("disasm foreign.ember", "program file 'foreign.ember' must hold manifest.json; .*"),
    Case("bench gahter", "suite must be one of .*, not 'gahter'"),
    Case("bench gather --only none", "only must match a workload of suite 'gather', not 'none'"),
    Case("bench gather --json none/x.json", "file 'none/x.json' can't be used: no such file .*"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.line)
def test_bad_input_ends_with_a_sentence_and_a_code(
    ember_hw, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys, case: Case
) -> None:
    monkeypatch.chdir(folder)
    assert ember_hw(*case.line.split()) == case.code
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err
    assert "internal error" not in shown.err
    if case.code == 1:
        (message,) = re.findall(r"^ember-hw: (.*)\Z", shown.err, re.MULTILINE | re.DOTALL)
    else:
        (message,) = re.findall(r"^Error: (.*)\Z", shown.err, re.MULTILINE | re.DOTALL)
    assert re.fullmatch(case.message, message.rstrip("\n"), re.DOTALL)


def test_every_command_has_a_case() -> None:
    from ember_hw.cli import app

    names = {info.name or info.callback.__name__ for info in app.registered_commands}  # pyright: ignore[reportOptionalMemberAccess]
    elsewhere = {"build", "devices", "selftest"}  # tests of boards
    assert names - elsewhere == {case.line.split()[0] for case in CASES} & names


def test_error_that_nobody_foresaw_says_how_to_see_more(
    ember_hw, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    from ember_hw.compiler.program import Program

    def fail(_: Path) -> Program:
        raise KeyError("s0")

    monkeypatch.setattr(Program, "load", fail)
    assert ember_hw("disasm", folder / "bag.ember") == 1
    assert capsys.readouterr().err == (
        "ember-hw: internal error, KeyError: 's0'; `ember-hw --debug ...` shows where\n"
    )
    assert ember_hw("--debug", "disasm", folder / "bag.ember") == 1
    assert "Traceback" in capsys.readouterr().err
