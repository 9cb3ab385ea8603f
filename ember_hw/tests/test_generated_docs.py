"""The pages that are written from definitions are up to date."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES: dict[str, str] = runpy.run_path(str(ROOT / "tools" / "generate_docs.py"))["pages"]()


@pytest.mark.parametrize("path", PAGES)
def test_page_is_up_to_date(path: str) -> None:
    assert (ROOT / path).read_text() == PAGES[path], "run python tools/generate_docs.py"
