"""Each file of `examples/` runs, and prints what it should."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def dlrm(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    import torch

    torch._dynamo.reset()
    path = EXAMPLES / "dlrm.py"
    if not path.exists():
        pytest.skip("examples are no part of a wheel")
    spec = importlib.util.spec_from_file_location("dlrm_example", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "dlrm_example", module)
    spec.loader.exec_module(module)
    return module


def test_dlrm_looks_up_26_tables_with_one_call_a_batch(
    dlrm: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    dlrm.main()
    printed = capsys.readouterr().out
    calls = [line.split()[-2] for line in printed.splitlines() if "26 bags from node" in line]
    assert sum(map(int, calls)) == 3
    assert "on the device: embedding_bag" not in printed
    assert "logits within 1e-5 of torch's: True" in printed
