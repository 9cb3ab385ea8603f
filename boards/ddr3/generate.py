"""Generates a LiteDRAM core, deterministically and without a second driver of any wire."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

from ember_hw.boards.ddr3.chip import Ddr3Chip
from ember_hw.boards.ddr3.litedram_script import MODULE, REFUSED
from ember_hw.errors import ToolError

#: The extra of this package that brings LiteDRAM, and what it brings.
EXTRA = "ddr3"
PACKAGES = ("litedram", "litex", "migen")
_SCRIPT = "ember_hw.boards.ddr3.litedram_script"
_SHOWN_LINES = 20

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_ASSIGN = re.compile(r"assign [^;]*;", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Order:
    """What is to be generated.

    Attributes
    ----------
    kind : str
        "core": all of it, up to the pads. "controller": the controller alone, with DFI instead of a
        PHY, for simulations.
    chip : Ddr3Chip
    ports : int
        Native ports.
    clock_mhz : float
        Of the controller; the chip's is twice that.
    input_mhz : float
        Oscillator of the board.
    device : str
        FPGA, as its maker calls it.
    cpu : str or None
        Initialises the chip; None: the host does.
    """

    kind: str
    chip: Ddr3Chip
    ports: int
    clock_mhz: float
    input_mhz: float = 100.0
    device: str = "LFE5UM5G-85F-8BG554I"
    cpu: str | None = None


def check_installed(needed_for: str) -> None:
    """Refuse to go on without LiteDRAM.

    Parameters
    ----------
    needed_for : str
        What needs it.

    Raises
    ------
    ToolError
        It isn't there.
    """
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise ToolError(
            f"{', '.join(missing)} must be there for {needed_for}, and isn't: "
            f"pip install 'ember-hw[{EXTRA}]'"
        )


def generate(order: Order, *, needed_for: str) -> dict[str, str]:
    """Return files by name: Verilog with the module `MODULE`, and what it reads.

    The same order and versions give the same text.

    Parameters
    ----------
    order : Order
    needed_for : str
        What needs it, as errors name it.

    Raises
    ------
    ToolError
        LiteDRAM, or what an init CPU needs, isn't there; or LiteDRAM fails.
    """
    check_installed(needed_for)
    with tempfile.TemporaryDirectory() as folder:
        wanted, made = Path(folder) / "order.json", Path(folder) / "made"
        made.mkdir()
        wanted.write_text(json.dumps(asdict(order)))
        # Names and order of what Migen writes depend on hashes of text; an init CPU's program tells
        # when it was compiled.
        environment = {**os.environ, "PYTHONHASHSEED": "0", "SOURCE_DATE_EPOCH": "0"}
        command = [sys.executable, "-m", _SCRIPT, str(wanted), str(made)]
        done = subprocess.run(
            command, env=environment, cwd=folder, capture_output=True, text=True, check=False
        )
        if (made / REFUSED).exists():
            raise ToolError((made / REFUSED).read_text())
        if done.returncode != 0:
            tail = "\n".join((done.stdout + done.stderr).splitlines()[-_SHOWN_LINES:])
            raise ToolError(
                f"LiteDRAM's generator must end with status 0, not {done.returncode}; "
                f"the end of what it says:\n{tail}"
            )
        files = {path.name: path.read_text() for path in sorted(made.iterdir())}
    files[f"{MODULE}.v"] = without_repetition(files[f"{MODULE}.v"])
    return files


def without_repetition(text: str) -> str:
    r"""Return Verilog without comments, and with each assignment once.

    LiteX writes some assignments twice, which synthesis takes for two drivers of a wire; and a date
    into a comment.

    Examples
    --------
    >>> without_repetition("assign a = b; // 2026\nassign c = d;\nassign a = b;\n")
    'assign a = b;\nassign c = d;\n'
    """
    seen: set[str] = set()

    def once(found: re.Match[str]) -> str:
        assignment = found[0]
        if assignment in seen:
            return ""
        seen.add(assignment)
        return assignment

    text = _ASSIGN.sub(once, _COMMENT.sub("", text))
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines() if line.strip())
