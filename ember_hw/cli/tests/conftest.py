from __future__ import annotations

import sys

import pytest

from ember_hw import cli


@pytest.fixture
def ember_hw(monkeypatch: pytest.MonkeyPatch):
    """Runs a command line and returns its exit code."""

    def run(*arguments: object) -> int:
        monkeypatch.setattr(sys, "argv", ["ember-hw", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        code = ended.value.code
        assert code is None or isinstance(code, int)
        return code or 0

    return run
