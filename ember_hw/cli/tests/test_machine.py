from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ember_hw.cli.machine import choose_memory, choose_trace
from ember_hw.sim.options import IdealMemory, Trace


def test_latency_makes_an_ideal_memory() -> None:
    assert choose_memory("ideal", None) == "ideal"
    assert choose_memory("ideal", 7) == IdealMemory(latency_cycles=7)


def test_trace_is_a_window_of_a_thousand_cycles() -> None:
    path = Path("run.vcd")
    assert choose_trace(None, None, None) == {}
    assert choose_trace(path, None, None) == {"trace": Trace(path=path, end=1_000)}
    assert choose_trace(path, 500, None) == {"trace": Trace(path=path, first=500, end=1_500)}
    assert choose_trace(path, None, 20) == {"trace": Trace(path=path, end=20)}


def test_trace_by_lookups_is_a_window_of_ten() -> None:
    wanted = Trace(path=Path("run.fst"), first=5, end=15, by="lookups")
    assert choose_trace(Path("run.fst"), 5, None, "lookups") == {"trace": wanted}


@pytest.mark.parametrize(
    ("choose", "arguments", "message"),
    [
        (choose_memory, ("dram", 7), "--latency must be left out with memory 'dram', not 7"),
        (choose_memory, ("ideal", 0), "latency_cycles must be at least 1, not 0"),
        (
            choose_trace,
            (None, 5, None),
            "--trace must name a file with --trace-start, --trace-end or --trace-by",
        ),
        (
            choose_trace,
            (None, None, 5),
            "--trace must name a file with --trace-start, --trace-end or --trace-by",
        ),
        (
            choose_trace,
            (None, None, None, "lookups"),
            "--trace must name a file with --trace-start, --trace-end or --trace-by",
        ),
        (choose_trace, (Path("run.vcd"), 5, 5), "end must be at least 6, not 5"),
        (choose_trace, (Path("run.txt"), 0, 5), "path must end in .vcd or .fst, not 'run.txt'"),
        (
            choose_trace,
            (Path("run.vcd"), 0, 5, "rows"),
            "by must be cycles or lookups, not 'rows'",
        ),
    ],
)
def test_choices_that_make_no_sense_are_refused(
    choose: Any, arguments: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        choose(*arguments)
