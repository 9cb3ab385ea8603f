from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[2] / "README.md"


@pytest.mark.verilator
def test_example_prints_what_the_readme_says(capsys: pytest.CaptureFixture[str]) -> None:
    example = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", README.read_text(), re.DOTALL)
    assert example is not None
    exec(compile(example[1], str(README), "exec"), {})
    assert capsys.readouterr().out == example[2]


def test_every_path_that_the_readme_names_exists() -> None:
    named = re.findall(r"`((?:ember_hw|tools|docs|sim|cocotb_tests)/[\w/.]*)`", README.read_text())
    missing = [path for path in named if not (README.parent / path).exists()]
    assert missing == []
