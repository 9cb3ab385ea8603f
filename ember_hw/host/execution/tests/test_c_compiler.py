from __future__ import annotations

from typing import Any

import pytest

from ember_hw.errors import ToolError
from ember_hw.host.execution import c_compiler


def test_a_source_is_compiled_once(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBER_HW_CACHE", str(tmp_path))
    first = c_compiler.build_library("int one;")
    made = first.stat().st_mtime_ns
    assert c_compiler.build_library("int one;") == first
    assert first.stat().st_mtime_ns == made
    assert c_compiler.build_library("int two;") != first


def test_what_the_compiler_says_is_in_the_error(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBER_HW_CACHE", str(tmp_path))
    message = r"(?s)^C compiler must build the execute side, and failed \(.*\):\n.*error"
    with pytest.raises(ToolError, match=message):
        c_compiler.build_library("int nothing")
