"""What a benchmark ran on, and which code it ran."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import ember_hw

_PACKAGE = Path(ember_hw.__file__).resolve().parent


def machine_facts() -> dict[str, Any]:
    """Return processor, cores, memory, system and Python as JSON-ready values."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def commit(package: Path = _PACKAGE) -> str:
    """Return the commit that the package's code is of.

    Parameters
    ----------
    package : Path
        The package's folder.

    Returns
    -------
    str
        A commit's 40 digits, with "-dirty" where tracked files differ from it; "version " and the
        version where the folder isn't part of a checkout.
    """
    tracked = _git(package, "ls-files", "--error-unmatch", "__init__.py")
    head = _git(package, "rev-parse", "HEAD")
    if tracked is None or head is None:  # installed, perhaps within somebody else's checkout
        try:
            return f"version {version('ember-hw')}"
        except PackageNotFoundError:
            return "unknown"
    changes = _git(package, "status", "--porcelain", "--untracked-files=no")
    return f"{head}-dirty" if changes else head


def _git(folder: Path, *arguments: str) -> str | None:
    """Return what git says, None where it fails or isn't there."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
