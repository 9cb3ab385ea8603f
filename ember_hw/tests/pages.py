"""Pages of `docs/`: their examples, and what these print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


def check_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Run the Python of a page from top to bottom; each text behind it must be what it prints."""
    page = (DOCS / name).read_text()
    blocks = re.findall(r"```(python|text)\n(.*?)```", page, re.DOTALL)
    assert blocks, "a page with examples"
    names: dict[str, object] = {}
    for language, text in blocks:
        if language == "python":
            capsys.readouterr()
            exec(compile(text, name, "exec"), names)
        else:
            assert capsys.readouterr().out == text
