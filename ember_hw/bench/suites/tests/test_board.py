from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ember_hw.bench.registry import Job
from ember_hw.bench.suites import board
from ember_hw.bench.tests.fakes import Silent
from ember_hw.boards.links.uart import BAUD
from ember_hw.boards.sdram.memory import DOMAIN
from ember_hw.boards.simulated.board import CLOCK_HZ
from ember_hw.boards.simulated.terminal import SimulatedTerminal
from ember_hw.boards.simulated.top import SDRAM_CLOCKS_A_CYCLE
from ember_hw.boards.targets.ulx3s import TARGET
from ember_hw.demo.movielens import Bags
from ember_hw.host.device import Device

pytestmark = [pytest.mark.verilator, pytest.mark.timeout(900)]  # builds the model

JOB = Job(watcher=Silent(), quick=True)
ALL = board.WORKLOADS


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    bags = Bags(indices=np.array([5, 1, 9, 9, 2, 3]), offsets=np.array([0, 2, 2]))
    monkeypatch.setattr(board.movielens, "load", lambda: bags)
    monkeypatch.setattr(board.movielens, "NUM_EMBEDDINGS", 10)
    monkeypatch.setattr(board, "WORKLOADS", (replace(board.WORKLOADS[0], users=2),))


def test_users_pass_over_the_simulated_board() -> None:
    same, link, on_board, simulation = board.run(JOB)
    assert (same.value, same.ratio, same.bar) == (2, 1.0, 1.0)
    assert (same.params["lookups"], same.params["table_bytes"]) == (2, 10 * 32)
    assert link.value == link.params["sent_bytes"] + link.params["received_bytes"]
    assert link.params["sent_bytes"] > 10 * 32
    # The wire carries a byte in ten bits, both ways at once.
    assert on_board.value > 10 * link.params["sent_bytes"] / board.BAUD
    assert simulation.bar is None


def test_other_answers_and_broken_limits_miss_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Device.run

    def wrong(self: Device, *arguments: object, **options: object) -> object:
        rows = np.array(run(self, *arguments, **options))  # pyright: ignore[reportArgumentType]
        rows[-1, 0] += self.name.startswith("board")
        return rows

    monkeypatch.setattr(Device, "run", wrong)
    same, *_ = board.run(JOB)
    assert (same.value, same.is_below_bar) == (1, True)
    monkeypatch.setattr(SimulatedTerminal, "memory_violations", 1)
    same, *_ = board.run(JOB)
    assert same.value == 0


def test_no_workload_is_no_row() -> None:
    assert list(board.run(replace(JOB, only="nothing"))) == []


def test_the_ulx3s_is_simulated_as_it_is_built() -> None:
    boards = [workload for workload in ALL if workload.name.startswith("ULX3S")]
    assert [workload.users for workload in boards] == [16, 943]
    for workload in boards:
        assert workload.config == TARGET.config
        assert workload.memory == next(iter(TARGET.memories.values())).kind
        assert workload.baud == BAUD
    assert TARGET.config.execute == "reduce"
    assert TARGET.clock_mhz["sync"] == CLOCK_HZ / 1e6
    assert TARGET.clock_mhz[DOMAIN] == SDRAM_CLOCKS_A_CYCLE * TARGET.clock_mhz["sync"]
