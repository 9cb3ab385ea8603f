from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from ember_hw.demo.wheels import file_of
from ember_hw.errors import ToolError

CONTENT = b"a\tb\n"
CHOICE = {"folder": "things", "purpose": "some things"}


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """A pip that serves a wheel with one file; its calls."""
    monkeypatch.setenv("EMBER_HW_CACHE", str(tmp_path))
    made: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        made.append(command)
        folder = Path(command[command.index("--dest") + 1])
        with zipfile.ZipFile(folder / "things-1.0-py3-none-any.whl", "w") as archive:
            archive.writestr("things/data/one.txt", CONTENT)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    return made


def test_file_is_downloaded_once_and_the_wheel_is_not_kept(
    calls: list[list[str]], tmp_path: Path
) -> None:
    for _ in range(2):
        path = file_of(
            "things==1.0",
            "things/data/one.txt",
            sha256=hashlib.sha256(CONTENT).hexdigest(),
            **CHOICE,
        )
        assert path == tmp_path / "things" / "one.txt"
        assert path.read_bytes() == CONTENT
    assert [path.name for path in path.parent.iterdir()] == ["one.txt"]
    (command,) = calls
    assert command[:4] == [sys.executable, "-m", "pip", "download"]
    assert "--no-deps" in command
    assert command[-1] == "things==1.0"


def test_another_file_is_refused(calls: list[list[str]], tmp_path: Path) -> None:
    digest = hashlib.sha256(CONTENT).hexdigest()
    expected = (
        f"things/data/one.txt of things==1.0 must have SHA-256 00, not {digest}; "
        "the package index served another file"
    )
    with pytest.raises(ToolError, match=f"^{re.escape(expected)}$"):
        file_of("things==1.0", "things/data/one.txt", sha256="00", **CHOICE)
    assert not (tmp_path / "things").exists()


def test_failed_download_says_what_pip_said(
    calls: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 2, "", "ERROR: no index\n")

    monkeypatch.setattr(subprocess, "run", fail)
    expected = (
        "pip must be able to download things==1.0 for some things, and ended with status 2:\n"
        f"ERROR: no index\nCheck that `{sys.executable} -m pip` works and reaches a package index."
    )
    with pytest.raises(ToolError, match=f"^{re.escape(expected)}$"):
        file_of("things==1.0", "things/data/one.txt", sha256="00", **CHOICE)
