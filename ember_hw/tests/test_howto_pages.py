"""docs/howto: what each page says is done, step by step, in a copy of the sources."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "howto").glob("*.md"))
#: Opening of a block: its language, and the file that it is, if it is one.
_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SOURCES = ("ember_hw", "boards", "sim", "pyproject.toml")
_PROGRAMS = {
    "pytest": ("-m", "pytest", "-p", "no:cacheprovider"),
    "ember-opt": ("-m", "ember_hw.compiler.ember_opt"),
    "ember-hw": ("-c", "from ember_hw import cli; cli.main()"),
}


class Copy:
    """A copy of the sources, in which a page's steps are done."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in _SOURCES:
            source = ROOT / name
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "*.ipynb", "build")
                shutil.copytree(source, folder / name, symlinks=True, ignore=ignored)
            else:
                shutil.copy(source, folder / name)

    def run(self, *command: str, text: str | None = None) -> str:
        """Run a command in the copy, whose modules it imports; it must succeed."""
        environment = {**os.environ, "PYTHONPATH": str(self.folder)}
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            input=text,
            text=True,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def do(self, language: str, path: str, text: str) -> None:
        """Do what a block says: write a file, change some, run Python or commands."""
        if path:
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_text(text)
        elif language == "diff":
            for change in re.split(r"^(?=--- a/)", text, flags=re.MULTILINE)[1:]:
                self.run("git", "apply", "--recount", "-C1", "-", text=change)
        elif language == "python":
            self.run(sys.executable, "-c", text)
        elif language == "console":
            for line in text.splitlines():
                program, *arguments = shlex.split(line.removeprefix("$ "))
                self.run(sys.executable, *_PROGRAMS[program], *arguments)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_steps_of_a_page_lead_where_it_says(page: Path, tmp_path: Path) -> None:
    blocks = _BLOCK.findall(page.read_text())
    languages = {language for language, _, _ in blocks}
    assert {"python", "console"} <= languages, "a page with steps, and how to see that they worked"
    copy = Copy(tmp_path)
    for block in blocks:
        copy.do(*block)


@pytest.mark.skipif(not PAGES, reason="docs are no part of a wheel")
def test_the_index_lists_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    for page in PAGES:
        assert f"(howto/{page.name})" in index
