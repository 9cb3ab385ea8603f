"""What a board does wrong, played by one in Python."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from ember_hw.boards.host.board import Board
from ember_hw.boards.host.client import LinkClient
from ember_hw.boards.host.tests.fakes import CONFIG, DESCRIPTION, FakeBoard
from ember_hw.boards.links.frame import Beat
from ember_hw.errors import DeviceError, LinkError
from ember_hw.host.backends import board as module
from ember_hw.host.backends import selftest
from ember_hw.host.backends.board import Backend
from ember_hw.host.backends.selftest import Verdict, run_selftest
from ember_hw.host.launch import Launch
from ember_hw.isa import Microcode
from ember_hw.registers import (
    ARGUMENTS_ADDRESS,
    COMPLETED,
    CONTROL,
    MICROCODE_ADDRESS,
    STATUS,
    WATCHDOG,
    State,
)

_WRITABLE = (
    *(CONTROL.address, WATCHDOG.address, COMPLETED.address),
    *range(ARGUMENTS_ADDRESS, ARGUMENTS_ADDRESS + 4 * CONFIG.exports, 4),
    *range(MICROCODE_ADDRESS, MICROCODE_ADDRESS + 4 * len(Microcode(CONFIG).encode()), 4),
)


def opened(monkeypatch: pytest.MonkeyPatch, **values: Any) -> tuple[FakeBoard, Backend]:
    """Return a board in Python and the backend that has it open."""
    fake = FakeBoard(registers=dict.fromkeys(_WRITABLE, 0))
    fake.registers |= values.pop("registers", {})

    def open_fake(candidate: object) -> Board:
        return Board(LinkClient(fake, seed=1))

    monkeypatch.setattr(module, "open_board", open_fake)
    backend = Backend(None, board="fake", port="/dev/fake")
    for name, value in values.items():
        setattr(fake, name, value)
    return fake, backend


def skip(backend: Backend, seed: int) -> str:
    """Test nothing."""
    return ""


def fails(message: str, kind: type[Exception]) -> Any:
    return pytest.raises(kind, match=f"^{re.escape(message)}$")


def test_the_board_says_which_config_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    fake, backend = opened(monkeypatch)
    assert backend.config == CONFIG
    assert backend.memory == "block RAM of board fake (simulated)"
    assert fake.registers[WATCHDOG.address] == 3_000_000_000  # a minute
    backend.close()
    backend.close()
    assert fake.is_closed


def test_a_unit_that_does_not_come_to_rest_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with fails(
        "state of board 'fake' must be at rest after an abort, not RUNNING; reset the board",
        DeviceError,
    ):
        opened(monkeypatch, registers={STATUS.address: State.RUNNING})


def test_queues_that_end_within_a_beat_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    fake, backend = opened(monkeypatch)
    fake.queue += bytes([Beat.ROW, 1, 2, 3])
    with fails("queues must end with a whole beat, and ended within one", LinkError):
        list(backend.execute(Launch(Microcode(CONFIG), (), ())))


def test_memory_that_reads_wrong_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    _, backend = opened(monkeypatch)
    read = backend.board.read_memory
    base, content = DESCRIPTION.memory_base, np.random.default_rng(0).integers(0, 256, 64, np.uint8)

    def wrong(address: int, count: int) -> bytes:
        found = bytearray(read(address, count))
        if count > 8:
            found[8] ^= 0xFF
        return bytes(found)

    monkeypatch.setattr(backend.board, "read_memory", wrong)
    monkeypatch.setattr(selftest, "_test_gather", skip)
    verdicts = {one.test: one for one in run_selftest(backend, memory_bytes=64)}
    assert verdicts["address lines"] == Verdict("address lines", True, "14 beats at powers of two")
    assert verdicts["memory"] == Verdict(
        "memory",
        False,
        f"memory at {base + 8:#x} must be {content[8]:#04x}, not {content[8] ^ 0xFF:#04x}; "
        "1 of 64 bytes are wrong",
    )


def test_rows_that_are_wrong_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    _, backend = opened(monkeypatch)

    class Wrong:
        """Pools everything to zeros."""

        def __init__(self, name: str, backend: Backend) -> None:
            """Take what a device takes."""

        def run(self, program: object, inputs: object) -> Any:
            """Return zeros."""
            return np.zeros((6, 8), np.float32)

    monkeypatch.setattr(selftest, "Device", Wrong)
    verdicts = {one.test: one for one in run_selftest(backend, memory_bytes=64)}
    assert not verdicts["gather"].is_good
    assert re.fullmatch(r"pooled rows must be exact, and \d of 6 aren't", verdicts["gather"].detail)
