"""The folder of files that are built once on a machine: Verilator's repaired copy, compiled models.

Everything below it can be deleted at any time and is built again when it is next needed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from ember_hw.errors import ToolError


def cache_folder() -> Path:
    """Return the cache's folder: `EMBER_HW_CACHE`, or else the platform's cache folder.

    Returns
    -------
    Path
        Absolute; it need not exist yet.

    Raises
    ------
    ToolError
        The path holds white space, which Make and Verilator's makefiles can't handle.
    """
    if chosen := os.environ.get("EMBER_HW_CACHE"):
        folder = Path(chosen).expanduser().absolute()
    elif sys.platform == "darwin":
        folder = Path.home() / "Library" / "Caches" / "ember_hw"
    else:
        platform_folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(platform_folder).absolute() / "ember_hw"
    if any(character.isspace() for character in str(folder)):
        raise ToolError(
            f"the cache folder must be a path without white space, not {str(folder)!r}; "
            "set EMBER_HW_CACHE to another folder"
        )
    return folder


def build_once(target: Path, build: Callable[[Path], None]) -> Path:
    """Return the folder `target`, filling it first if it isn't there.

    Concurrent callers, in this process or another one, wait for the one that builds. A build that
    fails or is killed leaves no `target`, so a folder that exists is complete.

    Parameters
    ----------
    target : Path
        Folder to return; its name is the key of its content.
    build : callable
        Fills the empty folder that it is given. That folder lies beside `target` and is renamed
        afterwards, so what it holds mustn't name its own path.
    """
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target.with_name(target.name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.is_dir():
            return target
        draft = Path(tempfile.mkdtemp(prefix=target.name + ".", dir=target.parent))
        try:
            build(draft)
            draft.chmod(0o755)
            draft.rename(target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return target
