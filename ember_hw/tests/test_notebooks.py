"""Each notebook of `examples/` runs from top to bottom."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))  # none in a wheel


def run(path: Path) -> tuple[dict[str, Any], Any]:
    """Run the code of a notebook; return its names, and the value of its last expression."""
    names: dict[str, Any] = {"__name__": "__main__"}
    value: Any = None
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]), f"{path.name} {cell['id']}")
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"{path.name} {cell['id']}", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), path.name, "eval"), names)
    return names, value


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    torch._dynamo.reset()
    mpl.use("Agg")
    monkeypatch.setenv("EMBER_HW_QUICK", "1")


@pytest.mark.verilator
@pytest.mark.timeout(900)  # the first one builds the model
def test_first_lookup_is_the_same_on_both_backends(capsys: pytest.CaptureFixture[str]) -> None:
    names, value = run(EXAMPLES / "first_lookup.ipynb")
    printed = capsys.readouterr().out
    assert "(20, 16) True" in printed
    assert printed.rstrip().endswith("True")
    assert value is names["report"]
    assert names["report"].lookups == 400


def test_dlrm_looks_up_its_tables_in_one_call(capsys: pytest.CaptureFixture[str]) -> None:
    run(EXAMPLES / "dlrm_torch_compile.ipynb")
    printed = capsys.readouterr().out
    calls = [line.split()[-2] for line in printed.splitlines() if "4 bags from node" in line]
    assert sum(map(int, calls)) == 3


@pytest.mark.verilator
@pytest.mark.timeout(900)
def test_more_outstanding_reads_use_more_of_the_port() -> None:
    names, _ = run(EXAMPLES / "explore_the_design.ipynb")
    shares = [report.utilisation for report in names["reports"]]
    assert shares == sorted(shares)
    for share, most in zip(shares, names["law"], strict=True):
        assert 0.85 * most < share <= most


def test_every_notebook_is_run_and_has_no_outputs() -> None:
    tested = {"dlrm_torch_compile.ipynb", "explore_the_design.ipynb", "first_lookup.ipynb"}
    assert {path.name for path in NOTEBOOKS} in (tested, set())
    for path in NOTEBOOKS:
        for cell in json.loads(path.read_text())["cells"]:
            assert not cell.get("outputs")
