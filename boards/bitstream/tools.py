"""Runs the open FPGA tools: YoWASP's from PyPI, or those in PATH."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

from ember_hw.errors import ToolError

#: Lines of the tools' logs that tell what goes on.
_HEADING = re.compile(
    r"(?:\d+\.)+ (Executing [\w ]+)|Info: ((?:Packing|Running|Creating|Routing) [\w ]+)"
)
_VERSION = re.compile(r"Yosys [\w.+-]+|nextpnr-\d[\w.+-]*|ecppack Version [\w.+-]+")
_LOG_LINES_SHOWN = 20
_POLL_SECONDS = 0.5
#: Parts of the work follow each other quickly; one is told only so often.
_TELL_SECONDS = 10.0


def find_tool(*names: str, needed_for: str, extra: str) -> str:
    """Return the first of some commands that is there, beside this Python or in PATH.

    Parameters
    ----------
    names : str
        Commands, the preferred first.
    needed_for : str
        The command of ember_hw that needs it.
    extra : str
        Of this package, which brings it.

    Raises
    ------
    ToolError
        None is there.
    """
    for name in names:
        beside = Path(sys.executable).parent / name
        path = str(beside) if beside.exists() else shutil.which(name)
        if path is not None:
            return path
    raise ToolError(
        f"{' or '.join(names)} must be there for `{needed_for}`, and isn't: "
        f"pip install 'ember-hw[{extra}]'"
    )


def tool_version(tool: str, option: str) -> str:
    """Return what a tool says of its version, "unknown" if nothing that is one."""
    done = subprocess.run([tool, option], capture_output=True, text=True, check=False)
    found = _VERSION.search(done.stdout + done.stderr)
    return found[0] if found else "unknown"


def content_key(*parts: str) -> str:
    """Return what names a result in the cache that depends on these texts alone."""
    return sha256("\0".join(parts).encode()).hexdigest()[:24]


def run_tool(
    command: Sequence[str], folder: Path, log_name: str, progress: Callable[[str], None]
) -> None:
    """Run a tool in a folder and tell now and then which part of its work its log has reached.

    Parameters
    ----------
    command : sequence of str
    folder : Path
        Where it runs. Its output goes into the file `output`.
    log_name : str
        Log that it writes there.
    progress : callable
        Told what it does.

    Raises
    ------
    ToolError
        It fails; the message holds its errors, or else the end of its log.
    """
    log = folder / log_name
    shown, told = "", time.monotonic() - _TELL_SECONDS
    with open(folder / "output", "w") as output:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        try:
            while process.poll() is None:
                time.sleep(_POLL_SECONDS)
                if time.monotonic() - told >= _TELL_SECONDS:
                    told, reached = time.monotonic(), heading(log)
                    if reached and reached != shown:
                        progress(reached)
                    shown = reached
        finally:
            process.kill()  # without effect on one that has ended
            process.wait()
    if process.returncode != 0:
        lines = _lines(log)
        errors = [line for line in lines if line.startswith("ERROR")]
        what = "its log says" if errors else "the end of its log"
        tail = "\n".join(errors or lines[-_LOG_LINES_SHOWN:]) or (folder / "output").read_text()
        raise ToolError(
            f"{Path(command[0]).name} must end with status 0, not {process.returncode}; "
            f"{what}:\n{tail}"
        )


def heading(log: Path) -> str:
    """Return the latest line of a log that begins a part of the work; empty if there is none."""
    for line in reversed(_lines(log)):
        if found := _HEADING.match(line):
            return found[found.lastindex or 0].rstrip(". ")
    return ""


def _lines(log: Path) -> list[str]:
    return log.read_text(errors="replace").splitlines()[-2_000:] if log.exists() else []
