"""Runs command-line tools inside the test's process, where starting them would take longest."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import NamedTuple

import pytest


class Result(NamedTuple):
    """Exit code and what went to the two outputs."""

    code: int
    out: str
    err: str


def run_in_process(main: Callable[[list[str]], int], arguments: list[str], stdin: str) -> Result:
    """Call a tool's entry point with streams of its own."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        for name, stream in (("stdin", io.StringIO(stdin)), ("stdout", out), ("stderr", err)):
            patch.setattr(f"sys.{name}", stream)
        code = main(arguments)
    return Result(code, out.getvalue(), err.getvalue())
