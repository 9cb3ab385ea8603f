"""docs/tables.md: its examples run and print what it says."""

from __future__ import annotations

import pytest

from ember_hw.tests.pages import check_examples


def test_the_page_s_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    check_examples("tables.md", capsys)
