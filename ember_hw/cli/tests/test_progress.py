from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from ember_hw.cli import progress
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


def test_long_lines_of_a_log_stay_whole() -> None:
    console = Console(file=io.StringIO(), width=20)
    with Steps(console) as step:
        step("opening the access unit")
    assert shown(console).startswith(
        "… opening the access unit\n✓ opening the access unit  0.0 s\n"
    )


def test_log_announces_a_step_when_it_begins() -> None:
    console = Console(file=io.StringIO(), width=60)
    with Steps(console) as step:
        step("building")
        assert shown(console) == "… building\n"


def test_terminal_shows_details_and_how_far_a_run_is() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=120, highlight=False)
    with Steps(console) as step:
        step("opening")
        step.detail("compiling the model")
        step._live.refresh()
        step("running")
        step.reached(2_000, 5_000, 9_000)
        step._live.refresh()
    assert "compiling the model" in shown(console)
    assert "2,000 of 5,000 in 9,000 cycles" in shown(console)


def test_log_has_details_and_a_line_of_a_long_run_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    console = Console(file=io.StringIO(), width=60)
    with Steps(console) as step:
        step("running")
        step.detail("compiling the model")
        for now in (1.0, 9.0, 11.0, 12.0, 22.0):
            step.reached(int(now), 22, None)
    assert shown(console).strip().splitlines() == [
        "… running",
        "…   compiling the model",
        "…   11 of 22",
        "…   22 of 22",
        "✓ running  22.0 s",
    ]


def test_step_that_fails_is_marked(console: Console) -> None:
    def fail() -> None:
        with Steps(console) as step:
            step("running")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert "✗ running" in shown(console)
