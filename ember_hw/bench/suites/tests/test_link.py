from __future__ import annotations

import re
from typing import Any

import pytest

from ember_hw.bench.registry import Job
from ember_hw.bench.suites import link
from ember_hw.bench.tests.fakes import Silent
from ember_hw.boards.simulated.exercise import ProbeExerciser
from ember_hw.errors import LinkError

#: The lookups on the simulated board are `ember_hw.host.backends.tests.test_board`'s here.
JOB = Job(watcher=Silent(), quick=True, only="[n1p]*")

pytestmark = [pytest.mark.verilator, pytest.mark.timeout(900)]  # builds the model


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "QUICK_FRAMES", 200)
    monkeypatch.setattr(link, "QUICK_PULLS", 3)


def test_nothing_is_lost_or_done_twice_whatever_the_channel_does() -> None:
    rows = list(link.run(JOB))
    assert [row.workload for row in rows if row.bar] == [*link.WORKLOADS, link.PULLED]
    assert all(row.ratio == 1.0 for row in rows if row.bar)
    faults: dict[str, dict[str, Any]] = {
        row.workload: dict(row.params) for row in rows if "faults" in row.params
    }
    assert sum(faults["no faults"]["faults"].values()) == 0
    assert all(faults["1 % of bytes"]["faults"].values())
    assert faults["1 % of bytes"]["repeats"] > 0


def test_a_wrong_answer_ends_the_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    expect = ProbeExerciser._expect
    calls: list[object] = []

    def wrong(self: ProbeExerciser, request: Any) -> Any:
        calls.append(request)
        status, payload = expect(self, request)
        return (status, payload + b"\0") if len(calls) == 50 else (status, payload)

    monkeypatch.setattr(ProbeExerciser, "_expect", wrong)
    with pytest.raises(LinkError, match=r"^answer to Request\(.*\) must be \(.*\), not Frame\("):
        list(link.run(Job(watcher=Silent(), quick=True, only="no faults")))


def test_rows_that_do_not_count_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    read = ProbeExerciser._read
    monkeypatch.setattr(
        ProbeExerciser,
        "_read",
        lambda self, operation, address, count: bytes(len(read(self, operation, address, count))),
    )
    message = f"queues must bring beats that count, not {bytes(27).hex(' ')}"
    with pytest.raises(LinkError, match=f"^{re.escape(message)}$"):
        list(link.run(Job(watcher=Silent(), quick=True, only="no faults")))


def test_no_workload_is_no_row() -> None:
    assert list(link.run(Job(watcher=Silent(), only="nothing"))) == []
