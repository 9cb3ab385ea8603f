"""Every test here needs SymbiYosys and an SMT solver; a missing one is a failure."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

os.environ["AMARANTH_USE_YOSYS"] = "builtin"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folder = Path(__file__).parent
    for item in items:
        if folder in item.path.parents:
            item.add_marker(pytest.mark.formal)
