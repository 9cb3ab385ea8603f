"""docs/tables.md: its example runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "tables.md").read_text()


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    found = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    exec(compile(found[1], "docs/tables.md", "exec"), {})
    # 3 rows of 64 halves, and of 64 codes with a scale and a bias of fp32.
    assert capsys.readouterr().out == "torch.float32 384\ntorch.float32 216\n"
