from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from ember_hw.cli.progress import Steps


@pytest.fixture(params=[False, True], ids=["log", "terminal"])
def console(request: pytest.FixtureRequest) -> Console:
    return Console(file=io.StringIO(), force_terminal=request.param, highlight=False)


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_each_step_ends_with_its_time(console: Console) -> None:
    with Steps(console) as step:
        step("reading [x]")
        step("running")
    ends = re.findall(r"✓ (.*?)  \d+\.\d s", shown(console))
    assert ends == ["reading [x]", "running"]


def test_log_announces_a_step_when_it_begins() -> None:
    console = Console(file=io.StringIO(), width=60)
    with Steps(console) as step:
        step("building")
        assert shown(console) == "… building\n"


def test_step_that_fails_is_marked(console: Console) -> None:
    def fail() -> None:
        with Steps(console) as step:
            step("running")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert "✗ running" in shown(console)
