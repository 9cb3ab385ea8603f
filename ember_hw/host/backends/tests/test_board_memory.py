"""A board whose memory has to be initialised is one when it is opened."""

from __future__ import annotations

import pytest

from ember_hw.boards.ddr3 import HOST_KIND
from ember_hw.boards.host import ddr3
from ember_hw.boards.host.board import Board
from ember_hw.boards.host.finder import Candidate
from ember_hw.boards.host.tests.ddr3_model import Lane, board_with
from ember_hw.errors import DeviceError
from ember_hw.host.backends import board as board_module
from ember_hw.host.backends.board import Backend
from ember_hw.registers import WATCHDOG


def _opened(monkeypatch: pytest.MonkeyPatch, *lanes: Lane) -> tuple[Backend, list[str]]:
    board, fake, _ = board_with(HOST_KIND, *lanes)
    fake.registers[WATCHDOG.address] = 0

    def found(candidate: Candidate) -> Board:
        return board

    def no_wait(seconds: float) -> None:
        """Don't wait."""

    monkeypatch.setattr(board_module, "open_board", found)
    monkeypatch.setattr(ddr3, "sleep", no_wait)
    told: list[str] = []
    return Backend(None, board="fake", port="fake", progress=told.append), told


def test_ddr3_is_initialised_when_the_board_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    backend, told = _opened(monkeypatch, Lane(1, (2, 3, 4)), Lane(1, (3,)))
    assert told[-1] == "DDR3: initialised"
    assert backend.memory == "DDR3 SDRAM of board fake (simulated)"
    backend.close()


def test_ddr3_that_cannot_be_read_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeviceError, match=r"^byte lane 0 of the DDR3 must read right with one of"):
        _opened(monkeypatch, Lane(0, ()), Lane(0, (1,)))
