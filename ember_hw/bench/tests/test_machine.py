from __future__ import annotations

import json
import subprocess
from pathlib import Path

from ember_hw.bench.machine import commit, machine_facts


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True)


def test_commit_tells_whether_the_checkout_differs(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "package")
    git(tmp_path, "commit", "-q", "-m", "first")
    clean = commit(package)
    assert len(clean) == 40
    (package / "__init__.py").write_text("changed")
    assert commit(package) == f"{clean}-dirty"


def test_package_inside_another_checkout_is_known_by_its_version(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "__init__.py").write_text("")  # not tracked
    assert commit(tmp_path).startswith("version ")


def test_machine_facts_are_json() -> None:
    facts = json.loads(json.dumps(machine_facts()))
    assert facts["cores"] >= 1
    assert facts["processor"]
