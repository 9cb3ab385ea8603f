"""Waveforms of a window of cycles."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from ember_hw.errors import ToolError
from ember_hw.sim.model import SimulationError

from . import toy
from .toy import Program, run_program, toy_library

pytestmark = pytest.mark.verilator


def _clock_times(path: Path) -> list[int]:
    return [int(line[1:]) for line in path.read_text().splitlines() if line.startswith("#")]


@pytest.mark.slow
def test_trace_holds_the_window_and_survives_a_failure(open_model, tmp_path):
    library = toy_library(trace="vcd", optimise=False)
    model = open_model(library)
    model.open_trace(tmp_path / "window.vcd", first=100, end=120)
    run_program(model, Program(rows=20))
    model.close_trace()
    assert _clock_times(tmp_path / "window.vcd") == list(range(200, 240))

    model = open_model(library)
    model.open_trace(tmp_path / "failure.vcd")
    with pytest.raises(SimulationError):
        run_program(model, Program(misdeed=toy.FIXED_BURST))
    times = _clock_times(tmp_path / "failure.vcd")
    assert len(times) > 30
    assert all(second == first + 1 for first, second in pairwise(times))


def test_trace_needs_a_model_built_for_it(open_model, tmp_path):
    path = tmp_path / "none.vcd"
    message = (
        f"a trace needs a model built with trace and a path that can be written, not {str(path)!r}"
    )
    with pytest.raises(ToolError, match=f"^{re.escape(message)}$"):
        open_model().open_trace(path)
