from __future__ import annotations

import json
from pathlib import Path

import pytest

from ember_hw.bench.registry import Job, Suite, all_suites
from ember_hw.bench.result import Result, Row


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """What suites were asked for; each finds one row that misses its bar."""
    asked: list[Job] = []

    def run(suite: Suite, job: Job) -> Result:
        asked.append(job)
        row = Row(
            workload="one bag",
            metric="utilisation",
            value=0.5,
            unit="1",
            reference_name="port",
            reference=1.0,
            bar=0.99,
        )
        return Result(suite=suite.name, commit="c0ffee", seed=job.seed, machine={}, rows=(row,))

    monkeypatch.setattr(Suite, "run", run)
    return asked


def test_bench_without_a_suite_lists_them(ember_hw, capsys) -> None:
    assert ember_hw("bench") == 0
    shown = capsys.readouterr().out
    for suite in all_suites().values():
        assert f"{suite.name:<12}{suite.summary}\n" in shown


def test_missed_bar_is_shown_but_is_an_error_only_with_check(ember_hw, jobs, capsys) -> None:
    assert ember_hw("bench", "gather") == 0
    shown = capsys.readouterr()
    assert "0.5000  0.99  port  BELOW\n" in shown.out
    assert "1 rows: worst ratio 0.5000, geomean 0.5000; 1 of 1 rows with a bar" in shown.out
    assert "loading suite gather" in shown.err
    assert ember_hw("bench", "gather", "--check") == 1


def test_options_reach_the_suite_and_the_result_goes_to_a_file(
    ember_hw, jobs, tmp_path: Path
) -> None:
    path = tmp_path / "result.json"
    options = ("--quick", "--seed", 7, "--only", "128-bit*", "--json", path)
    assert ember_hw("bench", "area", *options) == 0
    (job,) = jobs
    assert (job.quick, job.seed, job.only) == (True, 7, "128-bit*")
    written = json.loads(path.read_text())
    assert (written["schema"], written["suite"], written["seed"]) == (1, "area", 7)


def test_unknown_suite_is_a_sentence(ember_hw, capsys) -> None:
    assert ember_hw("bench", "gahter") == 1
    known = ", ".join(all_suites())
    assert capsys.readouterr().err == f"ember-hw: suite must be one of {known}, not 'gahter'\n"


def test_file_that_cannot_be_written_is_refused_before_the_run(
    ember_hw, jobs, tmp_path: Path, capsys
) -> None:
    assert ember_hw("bench", "gather", "--json", tmp_path / "none" / "result.json") == 1
    assert capsys.readouterr().err.endswith("can't be used: no such file or directory\n")
    assert jobs == []
