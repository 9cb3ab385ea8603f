"""Finds a C compiler and builds generated C into a library, once on a machine."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ember_hw.errors import ToolError
from ember_hw.sim.cache import build_once, cache_folder

__all__ = ["FLAGS", "build_library", "find_compiler"]

#: No contraction, no fast math: each operation is rounded by itself. Integers wrap.
FLAGS = (
    "-std=c11",
    "-O3",
    "-ffp-contract=off",
    "-fwrapv",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fPIC",
    "-shared",
)
_LIBRARY = "execute.so"
_TIMEOUT_SECONDS = 120


@cache
def find_compiler() -> tuple[str, ...] | None:
    """Return the command of a C compiler; None if there is none.

    The environment's `CC` comes first, then `cc`, `gcc`, `clang`, then the wheel `ziglang`.
    """
    if chosen := os.environ.get("CC"):
        command = tuple(shlex.split(chosen))
        if command and shutil.which(command[0]):
            return command
    for name in ("cc", "gcc", "clang"):
        if found := shutil.which(name):
            return (found,)
    if find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "cc")
    return None


@cache
def _version(command: tuple[str, ...]) -> str:
    """Return what tells this compiler from another one or another version of it."""
    result = subprocess.run(
        [*command, "--version"], capture_output=True, text=True, timeout=_TIMEOUT_SECONDS
    )
    return f"{shlex.join(command)} {result.stdout}"


def build_library(source: str) -> Path:
    """Return the shared library of a C source, from the cache or built now.

    Parameters
    ----------
    source : str
        A whole translation unit.

    Raises
    ------
    ToolError
        There is no C compiler, or it failed.
    """
    command = find_compiler()
    if command is None:
        raise ToolError(
            "a C compiler must be found for engine 'c' (CC, cc, gcc, clang or the package "
            "'ziglang'), and none is; install one or use engine 'numpy'"
        )
    text = "\n".join((source, " ".join(FLAGS), _version(command)))
    key = hashlib.sha256(text.encode()).hexdigest()[:24]

    def build(folder: Path) -> None:
        (folder / "execute.c").write_text(source)
        arguments = [*command, *FLAGS, "execute.c", "-o", _LIBRARY, "-lm"]
        result = subprocess.run(
            arguments, cwd=folder, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS
        )
        if result.returncode:
            raise ToolError(
                f"C compiler must build the execute side, and failed "
                f"({shlex.join(arguments)}):\n{result.stderr.strip()[-2000:]}"
            )

    return build_once(cache_folder() / "execute" / key, build) / _LIBRARY
