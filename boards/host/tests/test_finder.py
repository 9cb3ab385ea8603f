from __future__ import annotations

import os
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from ember_hw.boards.host import finder
from ember_hw.boards.host.board import Board
from ember_hw.boards.host.client import LinkClient
from ember_hw.boards.host.finder import Candidate, FoundBoard, choose
from ember_hw.boards.host.tests.fakes import DESCRIPTION, FakeBoard
from ember_hw.errors import DeviceError, EmberError, LinkError


def found(port: str, serial: str, board: str | None = "fake", state: str = "idle") -> FoundBoard:
    description = None if board is None else replace(DESCRIPTION, board=board)
    return FoundBoard(Candidate(port, serial), description, state)


def fails(message: str, kind: type[EmberError]):
    return pytest.raises(kind, match=f"^{re.escape(message)}$")


def test_only_ports_of_known_chips_are_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    ports = [
        SimpleNamespace(device="/dev/ttyUSB1", vid=0x0403, pid=0x6015, serial_number=None),
        SimpleNamespace(device="/dev/ttyS0", vid=None, pid=None, serial_number=None),
        SimpleNamespace(device="/dev/ttyUSB0", vid=0x0403, pid=0x6010, serial_number="E1"),
        SimpleNamespace(device="/dev/ttyACM0", vid=0x1209, pid=0x0001, serial_number="X"),
    ]
    monkeypatch.setattr(finder.list_ports, "comports", lambda: ports)
    assert finder.candidates() == [Candidate("/dev/ttyUSB0", "E1"), Candidate("/dev/ttyUSB1", "")]


def test_what_is_found_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeBoard()
    monkeypatch.setattr(finder, "candidates", lambda: [Candidate("/dev/x", "S1")])
    monkeypatch.setattr(
        finder, "open_board", lambda candidate, **options: Board(LinkClient(fake, seed=1))
    )
    (one,) = finder.find_boards()
    assert fake.is_closed
    assert one.to_dict() == {
        "port": "/dev/x",
        "serial": "S1",
        "link": "UART",
        "state": "idle",
        "board": "fake",
        "gateware_id": "0x0000abcd",
        "config": "tiny",
        "config_hash": f"{DESCRIPTION.config.hash():#010x}",
        "isa_version": DESCRIPTION.isa_version,
        "clock_mhz": 50.0,
        "memory": "block RAM",
        "memory_bytes": 1 << 16,
        "proof": "simulated",
        "proof_text": "a simulation in Verilator, no board",
    }


def test_a_port_without_a_board_says_why() -> None:
    one = finder.look(Candidate("/dev/does-not-exist"))
    assert one.description is None
    assert one.state.startswith("port /dev/does-not-exist must be free and open, and isn't: ")
    assert one.to_dict()["state"] == one.state


def test_a_silent_port_is_told() -> None:
    master, slave = os.openpty()
    try:
        one = finder.look(Candidate(os.ttyname(slave)), patience_seconds=0.05)
    finally:
        os.close(master)
        os.close(slave)
    assert re.match(r"board at /dev/\S+ must answer within 0\.05 s, and was silent", one.state)


def test_a_port_that_breaks_is_told() -> None:
    master, slave = os.openpty()
    channel = finder.SerialChannel(os.ttyname(slave), 115_200)
    os.close(master)
    os.close(slave)
    with pytest.raises(LinkError, match=r"^port /dev/\S+ must stay connected, and broke: "):
        channel.read(0.1)
    with pytest.raises(LinkError, match=r"^port /dev/\S+ must stay connected, and broke: "):
        channel.write(b"x")
    channel.close()


def test_the_one_board_is_chosen() -> None:
    boards = [found("/dev/a", "1"), found("/dev/b", "2", None, "silent"), found("/dev/c", "3", "x")]
    assert choose(boards, "fake").port == "/dev/a"
    assert choose(boards, "", "3").port == "/dev/c"


def test_none_and_several_are_refused() -> None:
    with fails(
        "a board ulx3s must be connected, and isn't; ports with a known USB chip: /dev/b: silent",
        LinkError,
    ):
        choose([found("/dev/b", "2", None, "silent")], "ulx3s")
    with fails(
        "a board with serial 9 must be connected, and isn't; ports with a known USB chip: none",
        LinkError,
    ):
        choose([], "", "9")
    with fails("serial must choose one of 2 boards fake, which have 1, 2", DeviceError):
        choose([found("/dev/a", "1"), found("/dev/b", "2")], "fake")
