from __future__ import annotations

import pytest

from ember_hw.tests.pages import check_examples


def test_examples_print_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    check_examples("nn.md", capsys)
